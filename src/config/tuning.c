#include "config/tuning.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/comment.h"
#include "base/context.h"
#include "base/status.h"
#include "config/choose_row.h"
#include "config/database.h"
#include "config/resources.h"

enum { LINE_CAPACITY = 1024, MOST_ROWS = 1 << 17 };

struct row {
    char key[CLN_TUNING_KEY];
    struct cln_config config;
    unsigned line;
};

struct cln_tuning {
    char *path;
    char refusal[256]; /* why the file is not used; "" if it is */
    struct row *rows;
    size_t count, capacity;
};

/* ------------------------------------------------------------------------------------------------------------- path */

/* The device's name as a file name: lower-case letters and digits, words joined by '-'. */
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
    const size_t room = path ? capacity : 0;
    const char *const wish = getenv("CLNORM_TUNING");
    const char *const config_home = getenv("XDG_CONFIG_HOME");
    const char *const home = getenv("HOME");
    if (room)
        *path = '\0';
    if (!device || (wish && !strcmp(wish, "0")))
        return 0;
    char slug[sizeof device->name];
    write_slug(device->name, slug, sizeof slug);
    int length = 0;
    if (wish && *wish)
        length = snprintf(path, room, "%s", wish);
    else if (config_home && *config_home == '/') /* the XDG specification ignores relative paths */
        length = snprintf(path, room, "%s/clnorm/%s.tuning", config_home, slug);
    else if (home && *home == '/')
        length = snprintf(path, room, "%s/.config/clnorm/%s.tuning", home, slug);
    return length < 0 ? 0 : (size_t)length;
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static bool refuse(struct cln_tuning *tuning, unsigned line, const char *why) {
    (void)snprintf(tuning->refusal, sizeof tuning->refusal, "line %u: %.230s", line, why);
    return false;
}

/* Opens the file for reading if it is a regular one. Without O_NONBLOCK the open of a pipe would wait for its writer. */
static FILE *open_file(struct cln_tuning *tuning) {
    struct stat facts;
    const int descriptor = open(tuning->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool readable = descriptor >= 0 && !fstat(descriptor, &facts);
    if (!readable && errno != ENOENT && errno != ENOTDIR)
        (void)strerror_r(errno, tuning->refusal, sizeof tuning->refusal);
    if (readable && !S_ISREG(facts.st_mode)) {
        (void)snprintf(tuning->refusal, sizeof tuning->refusal, "it is not a regular file");
        readable = false;
    }
    FILE *const file = readable ? fdopen(descriptor, "r") : NULL;
    if (!file && descriptor >= 0)
        (void)close(descriptor);
    return file;
}

static bool add_row(struct cln_tuning *tuning, const struct row *row) {
    if (tuning->count == tuning->capacity) {
        const size_t capacity = tuning->capacity ? 2 * tuning->capacity : 16;
        struct row *const rows = capacity <= MOST_ROWS ? realloc(tuning->rows, capacity * sizeof *rows) : NULL;
        if (!rows)
            return refuse(tuning, row->line, "too many rows for the memory");
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
    char *const knobs = colon + 2;
    knobs[cln_before_comment(knobs, strlen(knobs))] = '\0';
    struct cln_failure before;
    cln_failure_keep(&before);
    const clnorm_status status = cln_config_parse(knobs, &row.config);
    if (status)
        refuse(tuning, line, clnorm_error_detail());
    cln_failure_restore(&before);
    return !status && add_row(tuning, &row);
}

/* Checks line number part of the head of the file. */
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
    unsigned head = 0, line = 1;
    for (; fgets(text, sizeof text, file); line++) {
        const size_t length = strcspn(text, "\r\n");
        if (!text[length] && !feof(file))
            return refuse(tuning, line, "the line is too long");
        text[length] = '\0';
        if (!*text || *text == '#')
            continue;
        if (head < HEAD ? !read_head(tuning, device, text, head++, line) : !read_row(tuning, text, line))
            return false;
    }
    if (ferror(file))
        return refuse(tuning, line, "it cannot be read");
    return head == HEAD || refuse(tuning, line > 1 ? line - 1 : 1, "the head of the file ends here");
}

struct cln_tuning *cln_tuning_read(const clnorm_device_info *device) {
    const size_t length = clnorm_tuning_path(device, NULL, 0);
    struct cln_tuning *const tuning = length ? calloc(1, sizeof *tuning) : NULL;
    if (!tuning)
        return NULL;
    tuning->path = malloc(length + 1);
    if (tuning->path)
        clnorm_tuning_path(device, tuning->path, length + 1);
    FILE *const file = tuning->path ? open_file(tuning) : NULL;
    if (!file && !*tuning->refusal) {
        cln_tuning_destroy(tuning);
        return NULL;
    }
    if (file && !read_lines(tuning, device, file))
        tuning->count = 0;
    if (file)
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

/* Whether x has at most 64 KiB for each compute unit. */
static bool are_few(const clnorm_device_info *device, const struct cln_workload *work) {
    return cln_x_bytes(work) <= (uint64_t)device->compute_units << 16;
}

/* "rms_norm bf16", or with a wider dtype "rms_norm f8e4m3/bf16". */
static void write_name(const struct cln_tuning_key *key, char text[CLN_TUNING_KEY]) {
    char norm[CLN_TUNING_KEY - 32];
    (void)snprintf(norm, sizeof norm, "%s%s%s_norm%s%s%s%s%s", key->residual ? "add_" : "", key->dropout ? "dropout_" : "",
                   key->norm == CLNORM_LAYER_NORM ? "layer" : "rms", key->gated ? "_gated" : "",
                   key->activated ? "_activated" : "", key->rope ? "_rope" : "", key->quantized ? "_quantized" : "",
                   key->backward ? "_backward" : "");
    (void)snprintf(text, CLN_TUNING_KEY, "%s %s%s%s", key->name ? key->name : norm, clnorm_dtype_name(key->dtype),
                   key->widest ? "/" : "", key->widest ? clnorm_dtype_name(key->widest) : "");
}

/* "rms_norm bf16 4096 few", or of images "group_norm bf16 320x1024/32 last few" */
static void write_key(const struct cln_tuning_key *key, bool few, char text[CLN_TUNING_KEY]) {
    char name[CLN_TUNING_KEY], image[CLN_TUNING_KEY] = "";
    write_name(key, name);
    if (key->spatial)
        (void)snprintf(image, sizeof image, "x%" PRIu64 "/%" PRIu64 "%s", key->spatial, key->groups,
                       key->channels_last ? " last" : "");
    (void)snprintf(text, CLN_TUNING_KEY, "%.70s %" PRIu64 "%s%s", name, key->group_size, image, few ? " few" : "");
}

/* The key of the same problem without its widest dtype. */
static struct cln_tuning_key with_any_widest(const struct cln_tuning_key *key) {
    struct cln_tuning_key any = *key;
    any.widest = CLNORM_DTYPE_NONE;
    return any;
}

size_t clnorm_plan_tuning_key(const clnorm_plan *plan, char *text, size_t capacity) {
    const int length = snprintf(text, capacity, "%s", plan ? plan->tuning_key : "");
    return length < 0 ? 0 : (size_t)length;
}

/* The last row of a key counts, so that a user can try a config by appending a row. */
static const struct row *last_row(const struct cln_tuning *tuning, const struct cln_tuning_key *key, bool few) {
    char text[CLN_TUNING_KEY];
    write_key(key, few, text);
    size_t i = tuning->count;
    while (i > 0 && strcmp(tuning->rows[i - 1].key, text) != 0)
        i--;
    return i > 0 ? &tuning->rows[i - 1] : NULL;
}

/* The most specific row. One without "few" is for any number of rows, and one with a single dtype for any widest dtype. */
static const struct row *find_row(const struct cln_tuning *tuning, const struct cln_tuning_key *key, bool few) {
    const struct cln_tuning_key any = with_any_widest(key);
    const struct {
        const struct cln_tuning_key *key;
        bool few;
    } names[] = {{key, few}, {key, false}, {&any, few}, {&any, false}};
    const struct row *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = last_row(tuning, names[i].key, names[i].few);
    return found;
}

static bool is_forced(const struct cln_config *config) {
    static const struct cln_config automatic = {0};
    return memcmp(config, &automatic, sizeof automatic) != 0;
}

/* Chooses the config by the row's knobs. Returns whether they suit the work. */
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

/* Chooses by the user's file. */
static bool choose_by_file(clnorm_plan *plan, const struct cln_tuning_key *key, cln_choose_fn choose, bool few) {
    const struct cln_tuning *const tuning = plan->context->tuning;
    if (!tuning)
        return false;
    const struct row *const row = find_row(tuning, key, few);
    if (*tuning->refusal)
        (void)snprintf(plan->note, sizeof plan->note, "%.240s is not used: %s", tuning->path, tuning->refusal);
    return row && choose_by_row(plan, row, choose, &plan->work);
}

/* The dtype of the same size for which rows are measured. */
static clnorm_dtype measured_dtype(clnorm_dtype dtype) {
    return dtype == CLNORM_F16 ? CLNORM_BF16 : dtype == CLNORM_F8_E5M2 ? CLNORM_F8_E4M3 : dtype;
}

/* Chooses by the shipped database. With less than a segment for each compute unit the model decides. */
static bool choose_by_database(clnorm_plan *plan, const struct cln_tuning_key *key, cln_choose_fn choose, bool few) {
    const struct cln_workload *const work = &plan->work;
    const clnorm_device_info *const device = &plan->context->device;
    const char *const rows = cln_database_rows(cln_database_files, device);
    if (!rows || work->rows * work->groups < device->compute_units)
        return false;
    struct cln_tuning_key alike = *key;
    alike.name = key->like ? key->like : key->name;
    alike.dtype = measured_dtype(key->dtype);
    alike.widest = measured_dtype(key->widest);
    const struct cln_tuning_key any = with_any_widest(&alike);
    char name[CLN_TUNING_KEY], name_of_any[CLN_TUNING_KEY];
    write_name(&alike, name);
    write_name(&any, name_of_any);
    const bool chosen = cln_config_choose_row(device, work, rows, name, few, choose, &plan->config) ||
                        (key->widest && cln_config_choose_row(device, work, rows, name_of_any, few, choose, &plan->config));
    if (chosen && !*plan->note)
        (void)snprintf(plan->note, sizeof plan->note, "from the library's database");
    return chosen;
}

clnorm_status cln_tuning_choose(clnorm_plan *plan, const struct cln_tuning_key *key, cln_choose_fn choose,
                                const struct cln_workload *work, const clnorm_config *desc_config) {
    const bool few = are_few(&plan->context->device, work);
    struct cln_config forced;
    write_key(key, few, plan->tuning_key);
    plan->work = *work;
    const clnorm_status status = cln_config_open(desc_config, &forced);
    if (status)
        return status;
    if (!is_forced(&forced) && (choose_by_file(plan, key, choose, few) || choose_by_database(plan, key, choose, few)))
        return CLNORM_SUCCESS;
    return choose(&plan->context->device, work, &forced, &plan->config);
}

size_t clnorm_plan_candidates(const clnorm_plan *plan, clnorm_config *configs, size_t capacity) {
    struct cln_config ranked[CLN_MOST_RANKED];
    if (!plan || !*plan->tuning_key)
        return 0;
    const size_t count = cln_config_rank(&plan->context->device, &plan->work, ranked, CLN_MOST_RANKED);
    for (size_t i = 0; i < count && i < capacity; i++)
        configs[i] = cln_config_close(&ranked[i]);
    return count;
}
