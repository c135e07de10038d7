/* Tuning files: the tool reads every file that the library uses, and the library uses every file that the tool writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "config/tuning.h"
#include "fuzz.h"
#include "tuning_file.h"

static char path[128];
static clnorm_device_info device;

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count, (void)arguments;
    clnorm_device_info_init(&device);
    (void)snprintf(device.name, sizeof device.name, "Made up 1");
    (void)snprintf(device.driver, sizeof device.driver, "1.0");
    (void)snprintf(path, sizeof path, "%s/file", fuzz_folder());
    return setenv("CLNORM_TUNING", path, 1);
}

static clnorm_status take(const clnorm_device_info *of, const struct cln_workload *work, const struct cln_config *forced,
                          struct cln_config *config) {
    (void)of, (void)work;
    *config = *forced;
    return CLNORM_SUCCESS;
}

/* Whether the library uses the file. */
static bool is_used(void) {
    static const struct cln_tuning_key key = {.norm = CLNORM_RMS_NORM, .dtype = CLNORM_BF16, .group_size = 4096};
    static const struct cln_workload work = {.rows = 1, .groups = 1, .group_size = 4096, .x_size = 2};
    static const clnorm_config automatic = CLNORM_CONFIG_AUTOMATIC;
    clnorm_context context = {.device = device, .tuning = cln_tuning_read(&device)};
    clnorm_plan plan = {.context = &context};
    if (cln_tuning_choose(&plan, &key, take, &work, &automatic))
        abort();
    cln_tuning_destroy(context.tuning);
    return !strstr(plan.note, "is not used: ");
}

/* Writes the lines as tuning_file_write does, but does not sync them to disk. */
static void write_lines(const struct tuning_file *file) {
    (void)unlink(path);
    FILE *const stream = fopen(path, "wx");
    if (!stream)
        abort();
    for (size_t i = 0; i < file->count; i++)
        if (fprintf(stream, "%s\n", file->lines[i]) < 0)
            abort();
    if (fclose(stream))
        abort();
}

static void check_rewritten(struct tuning_file *file) {
    struct fault fault = {0};
    clnorm_config config;
    if (clnorm_config_parse("vec=4,lanes=64", &config) ||
        !tuning_file_put(file, "rms_norm bf16 4096", &config, 0.5, &fault))
        abort();
    write_lines(file);
    if (!is_used())
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tuning_file file;
    struct fault fault = {0};
    fuzz_write(path, data, size);
    const bool used = is_used();
    const bool taken = tuning_file_read(&file, path, &device, false, &fault);
    if (taken == (fault.text[0] != '\0') || strpbrk(fault.text, "\n\r\x1b"))
        abort();
    if (used && !taken)
        abort();
    if (taken) {
        check_rewritten(&file);
        tuning_file_free(&file);
    }
    return 0;
}
