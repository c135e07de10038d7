#include "grid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/comment.h"
#include "config_text.h"
#include "kept_file.h"
#include "report.h"
#include "tuning_file.h"

enum { LINE = 512 };

/* ------------------------------------------------------------------------------------------------------------ the head */

/* The line of a database file whose terms match the device. */
static const char *match_line(const clnorm_device_info *device, char text[LINE]) {
    const bool nvidia = device->compute_capability != 0;
    (void)snprintf(text, LINE, "match platform=%s %s=%u", clnorm_platform_family_name(device->family),
                   nvidia ? "capability" : "vector", nvidia ? device->compute_capability : device->native_vector_float);
    return text;
}

static bool write_head(const struct grid_file *file) {
    char match[LINE];
    return fprintf(file->stream, "# %s, driver %s, measured by clnorm tune --grid\nclnorm database 1\n%s\n",
                   file->device->name, file->device->driver, match_line(file->device, match)) > 0;
}

/* --------------------------------------------------------------------------------------------------------- opening */

static bool fail(const struct grid_file *file, struct fault *fault) {
    return fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", file->path, strerror(errno));
}

/* Opens a regular file for appending, for this run alone. A pipe is refused without waiting for a reader. */
static bool open_alone(struct grid_file *file, struct fault *fault) {
    struct stat facts;
    file->stream = kept_file_open(file->path, O_RDWR | O_APPEND | O_NONBLOCK, "a+", &file->made, fault);
    return file->stream &&
           ((!fstat(fileno(file->stream), &facts) && S_ISREG(facts.st_mode)) ||
            fault_set(fault, EXIT_REQUEST, "%s: expected a regular file, whose rows can be read again", file->path));
}

static bool read_rows(struct grid_file *file, struct fault *fault) {
    (void)fseek(file->stream, 0, SEEK_END);
    const long size = ftell(file->stream);
    file->rows = size < 0 ? NULL : calloc((size_t)size + 2, 1);
    if (!file->rows)
        return fault_set(fault, EXIT_FAILED, "%s: out of memory", file->path);
    rewind(file->stream);
    file->rows[0] = '\n';
    if (fread(file->rows + 1, 1, (size_t)size, file->stream) != (size_t)size)
        return fault_set(fault, EXIT_FAILED, "%s: cannot be read", file->path);
    (void)fseek(file->stream, 0, SEEK_END); /* C wants it between reading and writing */
    return strlen(file->rows) == (size_t)size + 1 ||
           fault_set(fault, EXIT_REQUEST, "%s: expected a file of text, without NUL; --force replaces it", file->path);
}

/* A line, without its end, and its number. */
static bool check_row(const struct grid_file *file, const char *line, size_t length, size_t number, struct fault *fault) {
    char text[LINE] = "";
    clnorm_config config;
    if (length < sizeof text)
        memcpy(text, line, length);
    const char *const colon = strstr(text, ": ");
    if (!length || *line == '#')
        return true;
    if (!colon || colon - text >= TUNING_KEY)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: line %zu: expected OPERATION DTYPE COLUMNS: KNOB=VALUE,...; --force replaces the file",
                         file->path, number);
    text[cln_before_comment(text, strlen(text))] = '\0';
    return !clnorm_config_parse(colon + 2, &config) ||
           fault_set(fault, EXIT_REQUEST, "%s: line %zu: %s; --force replaces the file", file->path, number,
                     clnorm_error_detail());
}

/* Whether the rows of the file are of this device. */
static bool check_rows(const struct grid_file *file, struct fault *fault) {
    static const char version[] = "\nclnorm database 1\n";
    char own[LINE];
    const char *const head = strstr(file->rows, version);
    const char *line = head ? head + sizeof version - 1 : "";
    size_t length = strcspn(line, "\n"), number = 1;
    if (strncmp(line, "match ", 6) != 0 || !line[length])
        return fault_set(fault, EXIT_REQUEST, "%s: expected a file of clnorm tune --grid; --force replaces it", file->path);
    match_line(file->device, own);
    if (length != strlen(own) || strncmp(line, own, length) != 0)
        return fault_set(fault, EXIT_REQUEST, "%s: '%.*s'; expected '%s', of this device; --force replaces the file",
                         file->path, (int)length, line, own);
    for (const char *at = file->rows + 1; at < line; at++)
        number += *at == '\n';
    for (line += length + 1; *line; line += length + 1) {
        length = strcspn(line, "\n");
        number++;
        if (!line[length])
            return true; /* without an end */
        if (!check_row(file, line, length, number, fault))
            return false;
    }
    return true;
}

/* Drops what follows the last end of a line. */
static bool drop_cut_row(struct grid_file *file, struct fault *fault) {
    char *const end = strrchr(file->rows, '\n');
    if (!end[1] || file->replace)
        return true;
    end[1] = '\0';
    return !ftruncate(fileno(file->stream), (off_t)(end - file->rows)) || fail(file, fault);
}

bool grid_file_open(struct grid_file *file, const char *path, const clnorm_device_info *device, bool force,
                    struct fault *fault) {
    *file = (struct grid_file){.path = path, .device = device};
    if (!open_alone(file, fault))
        return false;
    const bool read = read_rows(file, fault);
    if (!file->rows)
        return false;
    file->replace = !read || (file->rows[1] && !check_rows(file, fault));
    if (file->replace && (!force || fault->code != EXIT_REQUEST))
        return false;
    if (file->replace) {
        *fault = (struct fault){0};
        file->rows[1] = '\0';
    }
    return drop_cut_row(file, fault);
}

/* ------------------------------------------------------------------------------------------------------------- the rows */

bool grid_file_has(const struct grid_file *file, const char *key) {
    char start[TUNING_KEY + 3];
    (void)snprintf(start, sizeof start, "\n%s:", key);
    return strstr(file->rows, start) != NULL;
}

static bool remember(struct grid_file *file, const char *key, struct fault *fault) {
    const size_t length = strlen(file->rows);
    char *const grown = realloc(file->rows, length + strlen(key) + 3);
    if (!grown)
        return fault_set(fault, EXIT_FAILED, "out of memory for the grid's rows");
    (void)sprintf(grown + length, "\n%s:", key);
    file->rows = grown;
    return true;
}

/* Whether a knob follows from the others, or from the number of rows, so that a row of the database leaves it out. */
static bool is_derived(const clnorm_config *config, const char *knob, uint64_t cols) {
    enum { LONG_RUN = 64 }; /* rows; a longer run is all rows of a work-group */
    static const char *const always[] = {"isa", "reduce", "stores", "iterations", "chunks", NULL};
    for (int i = 0; always[i]; i++)
        if (!strcmp(knob, always[i]))
            return true;
    const bool backward = config_number(config, "groups_per_cu") != 0;
    const uint64_t tile = config_number(config, "tile"); /* group norm has none */
    if (!strcmp(knob, "tile") || !strcmp(knob, "row_split"))
        return !tile || tile == cols;
    if (!strcmp(knob, "unroll"))
        return backward || config_has(config, "keep", "registers");
    return !strcmp(knob, "run_length") &&
           (config_number(config, knob) > LONG_RUN || config_has(config, "accumulator", "columns") ||
            config_has(config, "accumulator", "memory"));
}

/* "rms_norm bf16 4096: vec=8,lanes=128" */
static void write_row(const char *key, const clnorm_config *config, uint64_t cols, char row[LINE]) {
    char text[CONFIG_TEXT];
    char *rest;
    int length = snprintf(row, LINE, "%s: ", key);
    const char *comma = "";
    clnorm_config_text(config, text, sizeof text);
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char knob[32];
        (void)snprintf(knob, sizeof knob, "%.*s", (int)strcspn(word, "="), word);
        if (is_derived(config, knob, cols))
            continue;
        length += snprintf(row + length, LINE - (size_t)length, "%s%s", comma, word);
        comma = ",";
    }
}

/* Empties a file that is replaced, and gives a file without rows its head. */
static bool begin(struct grid_file *file) {
    const bool empty = !file->rows[1];
    const bool emptied = !file->replace || !ftruncate(fileno(file->stream), 0);
    file->replace = false;
    return emptied && (!empty || write_head(file));
}

bool grid_file_add(struct grid_file *file, const char *key, const clnorm_config *config, uint64_t cols, double us,
                   struct fault *fault) {
    char row[LINE], time[US_TEXT];
    write_row(key, config, cols, row);
    if (!begin(file) || fprintf(file->stream, "%s # %s us\n", row, us_text(us, time)) < 0 || fflush(file->stream))
        return fail(file, fault);
    return remember(file, key, fault);
}

bool grid_file_close(struct grid_file *file, bool good, struct fault *fault) {
    bool done = good && file->rows;
    if (done && !begin(file))
        done = fail(file, fault);
    if (file->made && !done && (!file->rows || !file->rows[1]))
        (void)unlink(file->path);
    if (file->stream && fclose(file->stream) && done)
        done = fail(file, fault);
    free(file->rows);
    *file = (struct grid_file){0};
    return done;
}
