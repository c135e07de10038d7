#include "tuning.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "status.h"

enum { LINE_CAPACITY = 1024, MOST_ROWS = 100000 };

struct row {
    char key[CLN_TUNING_KEY];
    clnorm_config config;
    unsigned line;
};

struct cln_tuning {
    char *path;
    char refusal[256]; /* why the file is not used; "" */
    struct row *rows;
    size_t count, capacity;
};

/* ------------------------------------------------------------------------------------------------------ where it is */

/* The device's name as a file's: small letters and digits, what is between them a '-'. */
static void write_slug(const char *name, char *slug, size_t capacity) {
    size_t length = 0;
    for (; *name && length + 1 < capacity; name++) {
        const unsigned char c = (unsigned char)*name;
        if (isalnum(c))
            slug[length++] = (char)tolower(c);
        else if (length && slug[length - 1] != '-')
            slug[length++] = '-';
    }
    while (length && slug[length - 1] == '-')
        length--;
    slug[length] = '\0';
}

size_t clnorm_tuning_path(const clnorm_device_info *device, char *path, size_t capacity) {
    const char *const wish = getenv("CLNORM_TUNING");
    const char *const config_home = getenv("XDG_CONFIG_HOME");
    const char *const home = getenv("HOME");
    char slug[sizeof device->name];
    write_slug(device->name, slug, sizeof slug);
    int length = 0;
    if (wish && *wish)
        length = snprintf(path, capacity, "%s", strcmp(wish, "0") != 0 ? wish : "");
    else if (config_home && *config_home == '/') /* its specification has relative paths ignored */
        length = snprintf(path, capacity, "%s/clnorm/%s.tuning", config_home, slug);
    else if (home && *home == '/')
        length = snprintf(path, capacity, "%s/.config/clnorm/%s.tuning", home, slug);
    else
        length = snprintf(path, capacity, "%s", "");
    return length < 0 ? 0 : (size_t)length;
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static bool refuse(struct cln_tuning *tuning, unsigned line, const char *why) {
    (void)snprintf(tuning->refusal, sizeof tuning->refusal, "line %u: %.230s", line, why);
    return false;
}

static bool add_row(struct cln_tuning *tuning, const struct row *row) {
    if (tuning->count == tuning->capacity) {
        const size_t capacity = tuning->capacity ? 2 * tuning->capacity : 16;
        struct row *const rows = capacity <= MOST_ROWS ? realloc(tuning->rows, capacity * sizeof *rows) : NULL;
        if (!rows)
            return refuse(tuning, row->line, "no memory for so many rows");
        tuning->rows = rows;
        tuning->capacity = capacity;
    }
    tuning->rows[tuning->count++] = *row;
    return true;
}

static bool read_row(struct cln_tuning *tuning, char *text, unsigned line) {
    struct row row = {.line = line};
    char *const colon = strstr(text, ": ");
    const size_t length = colon ? (size_t)(colon - text) : 0;
    if (length == 0 || length >= sizeof row.key)
        return refuse(tuning, line, "expected OPERATION DTYPE COLUMNS: KNOB=VALUE,...");
    memcpy(row.key, text, length);
    colon[2 + strcspn(colon + 2, " #")] = '\0';
    struct cln_failure before;
    cln_failure_keep(&before);
    const clnorm_status status = clnorm_config_parse(colon + 2, &row.config);
    if (status)
        refuse(tuning, line, clnorm_error_detail());
    cln_failure_restore(&before);
    return !status && add_row(tuning, &row);
}

/* The head of the file, a line at a time: what the line must be. */
static bool read_head(struct cln_tuning *tuning, const clnorm_device_info *device, const char *text, unsigned part,
                      unsigned line) {
    char expected[LINE_CAPACITY];
    const char *const words[] = {"clnorm tuning ", "device ", "driver "};
    const char *const values[] = {"1", device->name, device->driver};
    (void)snprintf(expected, sizeof expected, "%s%s", words[part], values[part]);
    if (!strcmp(text, expected))
        return true;
    char why[160];
    (void)snprintf(why, sizeof why, "expected \"%.100s\"", expected);
    return refuse(tuning, line, why);
}

static bool read_lines(struct cln_tuning *tuning, const clnorm_device_info *device, FILE *file) {
    enum { HEAD = 3 };
    char text[LINE_CAPACITY];
    unsigned head = 0;
    for (unsigned line = 1; fgets(text, sizeof text, file); line++) {
        const size_t length = strcspn(text, "\r\n");
        if (!text[length] && !feof(file))
            return refuse(tuning, line, "it is too long");
        text[length] = '\0';
        if (!*text || *text == '#')
            continue;
        if (head < HEAD ? !read_head(tuning, device, text, head++, line) : !read_row(tuning, text, line))
            return false;
    }
    return head == HEAD || refuse(tuning, head, "the head of the file ends here");
}

struct cln_tuning *cln_tuning_read(const clnorm_device_info *device) {
    const size_t length = clnorm_tuning_path(device, NULL, 0);
    struct cln_tuning *const tuning = length ? calloc(1, sizeof *tuning) : NULL;
    if (!tuning)
        return NULL;
    tuning->path = malloc(length + 1);
    if (tuning->path)
        clnorm_tuning_path(device, tuning->path, length + 1);
    FILE *const file = tuning->path ? fopen(tuning->path, "re") : NULL;
    if (!file) {
        cln_tuning_destroy(tuning);
        return NULL;
    }
    if (!read_lines(tuning, device, file))
        tuning->count = 0;
    (void)fclose(file);
    return tuning;
}

void cln_tuning_destroy(struct cln_tuning *tuning) {
    if (!tuning)
        return;
    free(tuning->rows);
    free(tuning->path);
    free(tuning);
}

/* ---------------------------------------------------------------------------------------------------------- choosing */

static void write_key(const struct cln_tuning_key *key, char text[CLN_TUNING_KEY]) {
    char norm[CLN_TUNING_KEY - 32];
    (void)snprintf(norm, sizeof norm, "%s%s%s_norm%s%s%s%s", key->residual ? "add_" : "", key->dropout ? "dropout_" : "",
                   key->norm == CLNORM_LAYER_NORM ? "layer" : "rms", key->gated ? "_gated" : "",
                   key->activated ? "_activated" : "", key->quantized ? "_quantized" : "",
                   key->backward ? "_backward" : "");
    (void)snprintf(text, CLN_TUNING_KEY, "%s %s %" PRIu64, key->name ? key->name : norm, clnorm_dtype_name(key->dtype),
                   key->group_size);
}

size_t clnorm_plan_tuning_key(const clnorm_plan *plan, char *text, size_t capacity) {
    const int length = snprintf(text, capacity, "%s", plan ? plan->tuning_key : "");
    return length < 0 ? 0 : (size_t)length;
}

/* The last row wins, so that one can be tried by adding it. */
static const struct row *find_row(const struct cln_tuning *tuning, const char *key) {
    for (size_t i = tuning->count; i-- > 0;)
        if (!strcmp(tuning->rows[i].key, key))
            return &tuning->rows[i];
    return NULL;
}

static bool is_forced(const clnorm_config *config) {
    static const clnorm_config automatic = {0};
    return memcmp(config, &automatic, sizeof automatic) != 0;
}

/* Whether the row's knobs suit the work; config is then chosen by them. */
static bool choose_by_row(clnorm_plan *plan, const struct row *row, cln_choose_fn choose, const struct cln_workload *work) {
    const char *const path = plan->context->tuning->path;
    struct cln_failure before;
    cln_failure_keep(&before);
    const bool suits = !choose(&plan->context->device, work, &row->config, &plan->config);
    if (suits)
        (void)snprintf(plan->note, sizeof plan->note, "tuned by line %u of %.400s", row->line, path);
    else
        (void)snprintf(plan->note, sizeof plan->note, "line %u of %.200s is not used: %.200s", row->line, path,
                       clnorm_error_detail());
    cln_failure_restore(&before);
    return suits;
}

clnorm_status cln_tuning_choose(clnorm_plan *plan, const struct cln_tuning_key *key, cln_choose_fn choose,
                                const struct cln_workload *work, const clnorm_config *forced) {
    const struct cln_tuning *const tuning = plan->context->tuning;
    write_key(key, plan->tuning_key);
    if (tuning && !is_forced(forced)) {
        const struct row *const row = find_row(tuning, plan->tuning_key);
        if (*tuning->refusal)
            (void)snprintf(plan->note, sizeof plan->note, "%.240s is not used: %s", tuning->path, tuning->refusal);
        if (row && choose_by_row(plan, row, choose, work))
            return CLNORM_SUCCESS;
    }
    return choose(&plan->context->device, work, forced, &plan->config);
}
