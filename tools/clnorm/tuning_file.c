#include "tuning_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/comment.h"
#include "config_text.h"
#include "output_file.h"

static bool out_of_memory(const struct tuning_file *file, struct fault *fault) {
    return fault_set(fault, EXIT_FAILED, "%s: out of memory", file->path ? file->path : "the tuning file");
}

static bool add_line(struct tuning_file *file, const char *line, struct fault *fault) {
    if (file->count == file->capacity) {
        const size_t capacity = file->capacity ? 2 * file->capacity : 16;
        char **const lines = realloc(file->lines, capacity * sizeof *lines);
        if (!lines)
            return out_of_memory(file, fault);
        file->lines = lines;
        file->capacity = capacity;
    }
    file->lines[file->count] = strdup(line);
    return file->lines[file->count++] || out_of_memory(file, fault);
}

static void free_lines(struct tuning_file *file) {
    for (size_t i = 0; i < file->count; i++)
        free(file->lines[i]);
    file->count = file->first_row = 0;
}

void tuning_file_free(struct tuning_file *file) {
    free_lines(file);
    free(file->lines);
    free(file->path);
    *file = (struct tuning_file){0};
}

/* An empty line or a comment. */
static bool is_skipped(const char *line) {
    return !*line || *line == '#';
}

size_t tuning_file_rows(const struct tuning_file *file) {
    size_t rows = 0;
    for (size_t i = file->first_row; i < file->count; i++)
        rows += !is_skipped(file->lines[i]);
    return rows;
}

/* ----------------------------------------------------------------------------------------------------------- reading */

enum { LINE_CAPACITY = 1024, HEAD = 3 };

static bool make_path(struct tuning_file *file, const char *path, const clnorm_device_info *device, struct fault *fault) {
    const size_t length = path ? strlen(path) : clnorm_tuning_path(device, NULL, 0);
    if (path && !length)
        return fault_set(fault, EXIT_REQUEST, "--out '': expected the name of a file");
    if (!length)
        return fault_set(fault, EXIT_REQUEST,
                         "--out: expected a file, since the environment gives no path of a tuning file");
    file->path = malloc(length + 1);
    if (!file->path)
        return out_of_memory(file, fault);
    if (path)
        memcpy(file->path, path, length + 1);
    else
        clnorm_tuning_path(device, file->path, length + 1);
    return true;
}

/* A line of the head, counted from 0. */
static void head_line(const clnorm_device_info *device, unsigned part, char line[LINE_CAPACITY]) {
    const char *const words[HEAD] = {"clnorm tuning ", "device ", "driver "};
    const char *const values[HEAD] = {"1", device->name, device->driver};
    (void)snprintf(line, LINE_CAPACITY, "%s%s", words[part], values[part]);
}

/* Adds the head to a file without rows. */
static bool add_head(struct tuning_file *file, const clnorm_device_info *device, struct fault *fault) {
    bool done =
        file->count > 0 || add_line(file, "# Configs that were measured on this device: written by clnorm tune.", fault);
    for (unsigned part = 0; done && part < HEAD; part++) {
        char line[LINE_CAPACITY];
        head_line(device, part, line);
        done = add_line(file, line, fault);
    }
    file->first_row = file->count;
    return done;
}

static bool refuse(const struct tuning_file *file, const char *why, struct fault *fault) {
    return fault_set(fault, EXIT_REQUEST, "%s: line %zu: %s; --force replaces the file", file->path, file->count, why);
}

static bool check_head_line(const struct tuning_file *file, const clnorm_device_info *device, unsigned part,
                            const char *line, struct fault *fault) {
    char expected[LINE_CAPACITY];
    char why[2 * LINE_CAPACITY];
    head_line(device, part, expected);
    (void)snprintf(why, sizeof why, "'%.200s'; expected '%.200s'", line, expected);
    return !strcmp(line, expected) || refuse(file, why, fault);
}

static bool check_row(const struct tuning_file *file, const char *row, struct fault *fault) {
    const char *const colon = strstr(row, ": ");
    if (!colon || colon == row || colon - row >= TUNING_KEY)
        return refuse(file, "expected OPERATION DTYPE COLUMNS: KNOB=VALUE,...", fault);
    char words[LINE_CAPACITY];
    const size_t length = cln_before_comment(colon + 2, strlen(colon + 2));
    (void)snprintf(words, sizeof words, "%.*s", (int)length, colon + 2);
    clnorm_config config;
    return !clnorm_config_parse(words, &config) || refuse(file, clnorm_error_detail(), fault);
}

/* Reads the lines, with the checks of the library. */
static bool read_lines(struct tuning_file *file, const clnorm_device_info *device, FILE *stream, struct fault *fault) {
    char line[LINE_CAPACITY];
    unsigned head = 0;
    while (fgets(line, sizeof line, stream)) {
        const size_t length = strcspn(line, "\r\n");
        const bool cut = !line[length] && !feof(stream);
        line[length] = '\0';
        if (!add_line(file, line, fault))
            return false;
        if (cut)
            return refuse(file, "the line is too long", fault);
        if (is_skipped(line))
            continue;
        if (head < HEAD ? !check_head_line(file, device, head, line, fault) : !check_row(file, line, fault))
            return false;
        head += head < HEAD;
        file->first_row = head == HEAD && !file->first_row ? file->count : file->first_row;
    }
    if (ferror(stream))
        return fault_set(fault, EXIT_REQUEST, "%s: %s", file->path, strerror(errno));
    if (head == 0)
        return add_head(file, device, fault);
    return head == HEAD || refuse(file, "the head of the file is incomplete", fault);
}

/* NULL: there is no such file, or fault has the reason. A pipe is refused without waiting for a writer. */
static FILE *open_file(const struct tuning_file *file, struct fault *fault) {
    struct stat facts;
    const int descriptor = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT)
        return NULL;
    FILE *stream = NULL;
    if (descriptor < 0 || fstat(descriptor, &facts))
        fault_set(fault, EXIT_REQUEST, "%s: %s", file->path, strerror(errno));
    else if (!S_ISREG(facts.st_mode))
        fault_set(fault, EXIT_REQUEST, "%s: not a regular file; it is not replaced", file->path);
    else if (!(stream = fdopen(descriptor, "r")))
        out_of_memory(file, fault);
    if (!stream && descriptor >= 0)
        (void)close(descriptor);
    return stream;
}

static void make_folders(const char *path) {
    char *const part = strdup(path);
    for (char *at = part; at && *at; at++)
        if (*at == '/' && at > part) {
            *at = '\0';
            (void)mkdir(part, S_IRWXU);
            *at = '/';
        }
    free(part);
}

static bool read_file(struct tuning_file *file, const clnorm_device_info *device, bool force, struct fault *fault) {
    FILE *const stream = open_file(file, fault);
    if (!stream)
        return !*fault->text && add_head(file, device, fault);
    bool done = read_lines(file, device, stream, fault);
    (void)fclose(stream);
    if (!done && force) {
        *fault = (struct fault){0};
        free_lines(file);
        done = add_head(file, device, fault);
    }
    return done;
}

bool tuning_file_read(struct tuning_file *file, const char *path, const clnorm_device_info *device, bool force,
                      struct fault *fault) {
    *file = (struct tuning_file){.force = force};
    bool done = make_path(file, path, device, fault) && read_file(file, device, force, fault);
    if (done) {
        make_folders(file->path);
        done = output_file_check(file->path, fault);
    }
    if (!done)
        tuning_file_free(file);
    return done;
}

/* ---------------------------------------------------------------------------------------------------------- changing */

static bool has_key(const char *line, const char *key) {
    const size_t length = strlen(key);
    return !strncmp(line, key, length) && line[length] == ':';
}

/* Removes the rows of a key. Returns the index of the first one; the new count where there was none. */
static size_t remove_rows(struct tuning_file *file, const char *key) {
    size_t kept = file->first_row;
    size_t first = file->count;
    for (size_t i = file->first_row; i < file->count; i++) {
        if (!has_key(file->lines[i], key)) {
            file->lines[kept++] = file->lines[i];
            continue;
        }
        first = first == file->count ? kept : first;
        free(file->lines[i]);
    }
    first = first < kept ? first : kept;
    file->count = kept;
    return first;
}

bool tuning_file_put(struct tuning_file *file, const char *key, const clnorm_config *config, double share,
                     struct fault *fault) {
    const size_t place = remove_rows(file, key);
    if (!config)
        return true;
    char words[CONFIG_TEXT];
    char row[TUNING_KEY + sizeof words + 64];
    clnorm_config_text(config, words, sizeof words);
    (void)snprintf(row, sizeof row, "%s: %s # %.3f of the time of the library's choice", key, words, share);
    if (!add_line(file, row, fault))
        return false;
    char *const added = file->lines[file->count - 1];
    memmove((void *)(file->lines + place + 1), (const void *)(file->lines + place),
            (file->count - 1 - place) * sizeof *file->lines);
    file->lines[place] = added;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- writing */

bool tuning_file_write(const struct tuning_file *file, struct fault *fault) {
    struct output_file output;
    if (!output_file_open(&output, file->path, fault))
        return false;
    bool good = true;
    for (size_t i = 0; good && i < file->count; i++)
        good = fprintf(output.stream, "%s\n", file->lines[i]) > 0;
    return output_file_close(&output, good, fault);
}

/* A lock that ends when the descriptor is closed. -1: the folder has none, as on some network file systems. */
static int lock_folder(const char *path) {
    const char *const slash = strrchr(path, '/');
    char *const folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    if (descriptor >= 0)
        while (flock(descriptor, LOCK_EX) && errno == EINTR)
            ;
    return descriptor;
}

bool tuning_file_update(struct tuning_file *file, const clnorm_device_info *device, const char *key,
                        const clnorm_config *config, double share, struct fault *fault) {
    const int lock = lock_folder(file->path);
    free_lines(file);
    const bool done = read_file(file, device, file->force, fault) && tuning_file_put(file, key, config, share, fault) &&
                      tuning_file_write(file, fault);
    file->force = file->force && !done;
    if (lock >= 0)
        (void)close(lock);
    return done;
}
