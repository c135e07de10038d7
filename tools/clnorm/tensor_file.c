#include "tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"
#include "safetensors.h"

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text);
    const size_t end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

enum tensor_format tensor_format_of(const char *path) {
    if (ends_with(path, ".safetensors"))
        return FORMAT_SAFETENSORS;
    return ends_with(path, ".npy") ? FORMAT_NPY : FORMAT_UNKNOWN;
}

bool tensor_file_parse(struct tensor_file *file, enum tensor_format format, const char *path, const void *bytes,
                       size_t size, struct fault *fault) {
    *file = (struct tensor_file){.path = strdup(path)};
    bool done = file->path || fault_set(fault, EXIT_FAILED, "%s: out of memory", path);
    if (done && format == FORMAT_SAFETENSORS)
        done = safetensors_parse(file, bytes, size, fault);
    else if (done)
        done = npy_parse(file, bytes, size, fault);
    if (done)
        tensor_file_sort(file);
    else
        tensor_file_close(file);
    return done;
}

/* Maps a regular file that is not empty. */
static bool map_file(const char *path, void **map, size_t *size, struct fault *fault) {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return fault_set(fault, EXIT_REQUEST, "%s: %s", path, strerror(errno));
    struct stat status;
    bool done = false;
    if (fstat(descriptor, &status))
        fault_set(fault, EXIT_REQUEST, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode))
        fault_set(fault, EXIT_REQUEST, "%s: not a regular file", path);
    else if (status.st_size <= 0)
        fault_set(fault, EXIT_REQUEST, "%s: the file is empty", path);
    else if ((off_t)(size_t)status.st_size != status.st_size)
        fault_set(fault, EXIT_REQUEST, "%s: the file is too large for this host", path);
    else {
        *size = (size_t)status.st_size;
        *map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        done = *map != MAP_FAILED || fault_set(fault, EXIT_REQUEST, "%s: cannot be mapped: %s", path, strerror(errno));
    }
    close(descriptor);
    return done;
}

bool tensor_file_open(struct tensor_file *file, const char *path, struct fault *fault) {
    *file = (struct tensor_file){0};
    const enum tensor_format format = tensor_format_of(path);
    if (format == FORMAT_UNKNOWN)
        return fault_set(fault, EXIT_REQUEST, "%s: expected a file name that ends in .safetensors or .npy", path);
    void *map = NULL;
    size_t size = 0;
    if (!map_file(path, &map, &size, fault))
        return false;
    if (!tensor_file_parse(file, format, path, map, size, fault)) {
        munmap(map, size);
        return false;
    }
    file->map = map;
    file->map_size = size;
    return true;
}

void tensor_file_close(struct tensor_file *file) {
    for (size_t i = 0; i < file->count; i++)
        free((char *)file->tensors[i].name);
    free(file->tensors);
    free(file->path);
    if (file->map)
        munmap(file->map, file->map_size);
    *file = (struct tensor_file){0};
}

static int against_name(const void *name, const void *tensor) {
    return strcmp(name, ((const struct tensor *)tensor)->name);
}

const struct tensor *tensor_file_find(const struct tensor_file *file, const char *name) {
    return file->count == 0 ? NULL : bsearch(name, file->tensors, file->count, sizeof *file->tensors, against_name);
}
