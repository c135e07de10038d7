#include "tuning_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_text.h"

static bool out_of_memory(const struct tuning_file *file, struct fault *fault) {
    return fault_set(fault, EXIT_FAILED, "%s: out of memory", file->path ? file->path : "the tuning file");
}

static bool add_row(struct tuning_file *file, const char *row, struct fault *fault) {
    if (file->count == file->capacity) {
        const size_t capacity = file->capacity ? 2 * file->capacity : 16;
        char **const rows = realloc(file->rows, capacity * sizeof *rows);
        if (!rows)
            return out_of_memory(file, fault);
        file->rows = rows;
        file->capacity = capacity;
    }
    file->rows[file->count] = strdup(row);
    return file->rows[file->count++] || out_of_memory(file, fault);
}

void tuning_file_free(struct tuning_file *file) {
    for (size_t i = 0; i < file->count; i++)
        free(file->rows[i]);
    free(file->rows);
    free(file->head);
    free(file->path);
    *file = (struct tuning_file){0};
}

/* ----------------------------------------------------------------------------------------------------------- reading */

static bool make_path(struct tuning_file *file, const char *path, const clnorm_device_info *device, struct fault *fault) {
    const size_t length = path ? strlen(path) : clnorm_tuning_path(device, NULL, 0);
    if (!length)
        return fault_set(fault, EXIT_REQUEST, "--out: expected a file, since the environment names none to read");
    file->path = malloc(length + 1);
    if (!file->path)
        return out_of_memory(file, fault);
    if (path)
        memcpy(file->path, path, length + 1);
    else
        clnorm_tuning_path(device, file->path, length + 1);
    return true;
}

static bool make_head(struct tuning_file *file, const clnorm_device_info *device, struct fault *fault) {
    static const char format[] = "# How kernels run best on this device, by measurement: written by clnorm tune.\n"
                                 "clnorm tuning 1\ndevice %s\ndriver %s\n";
    const size_t capacity = sizeof format + sizeof device->name + sizeof device->driver;
    file->head = malloc(capacity);
    if (!file->head)
        return out_of_memory(file, fault);
    (void)snprintf(file->head, capacity, format, device->name, device->driver);
    return true;
}

/* The rows of a file whose head is this one's; a file of other words than ours has none. */
static bool read_rows(struct tuning_file *file, FILE *stream, struct fault *fault) {
    char *line = NULL;
    size_t capacity = 0;
    bool done = true;
    const char *head = file->head;
    while (done && getline(&line, &capacity, stream) > 0) {
        const size_t length = strlen(line);
        if (*head) {
            if (strncmp(head, line, length) != 0)
                break;
            head += length;
            continue;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (*line)
            done = add_row(file, line, fault);
    }
    free(line);
    return done;
}

bool tuning_file_read(struct tuning_file *file, const char *path, const clnorm_device_info *device, struct fault *fault) {
    *file = (struct tuning_file){0};
    bool done = make_path(file, path, device, fault) && make_head(file, device, fault);
    FILE *const stream = done ? fopen(file->path, "re") : NULL;
    if (stream) {
        done = read_rows(file, stream, fault);
        (void)fclose(stream);
    }
    if (!done)
        tuning_file_free(file);
    return done;
}

/* ---------------------------------------------------------------------------------------------------------- changing */

bool tuning_file_put(struct tuning_file *file, const char *key, const clnorm_config *config, double share,
                     struct fault *fault) {
    const size_t length = strlen(key);
    size_t kept = 0;
    for (size_t i = 0; i < file->count; i++)
        if (strncmp(file->rows[i], key, length) != 0 || file->rows[i][length] != ':')
            file->rows[kept++] = file->rows[i];
        else
            free(file->rows[i]);
    file->count = kept;
    if (!config)
        return true;
    char words[CONFIG_TEXT];
    char row[TUNING_KEY + sizeof words + 64];
    clnorm_config_text(config, words, sizeof words);
    (void)snprintf(row, sizeof row, "%s: %s # %.3f of the time of the library's choice", key, words, share);
    return add_row(file, row, fault);
}

/* ----------------------------------------------------------------------------------------------------------- writing */

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

bool tuning_file_write(const struct tuning_file *file, struct fault *fault) {
    char *const temporary = malloc(strlen(file->path) + sizeof ".new");
    if (!temporary)
        return out_of_memory(file, fault);
    (void)sprintf(temporary, "%s.new", file->path);
    make_folders(file->path);
    FILE *const stream = fopen(temporary, "we");
    bool done = stream && fputs(file->head, stream) != EOF;
    for (size_t i = 0; done && i < file->count; i++)
        done = fprintf(stream, "%s\n", file->rows[i]) > 0;
    if (stream && fclose(stream))
        done = false;
    done = done && !rename(temporary, file->path);
    if (!done)
        fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", file->path, strerror(errno));
    free(temporary);
    return done;
}
