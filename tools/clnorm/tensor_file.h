/* Tensors in files: .safetensors, many by name, and .npy, one with the name of the file. A file is mapped, not read;
 * nothing in it is believed before it was checked against the file's size, so that every tensor's bytes lie within the
 * mapping. */
#ifndef TENSOR_FILE_H
#define TENSOR_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "element.h"
#include "fault.h"

enum { TENSOR_RANK = 16 };

/* Row-major. */
struct tensor {
    const char *name; /* a file's tensors own theirs */
    const struct element *element;
    unsigned rank;
    uint64_t shape[TENSOR_RANK];
    uint64_t count;            /* elements: the product of shape */
    uint64_t size;             /* bytes */
    const unsigned char *data; /* any alignment */
};

struct tensor_file {
    char *path;
    void *map; /* NULL when the bytes are somebody else's */
    size_t map_size;
    struct tensor *tensors; /* by name */
    size_t count;
};

enum tensor_format { FORMAT_UNKNOWN, FORMAT_SAFETENSORS, FORMAT_NPY };

/* By the end of the file's name. */
enum tensor_format tensor_format_of(const char *path);

/* Maps and reads a file. On failure *file is empty, and closing it is allowed. */
bool tensor_file_open(struct tensor_file *file, const char *path, struct fault *fault);

/* The same of bytes that stay where they are until the file is closed. */
bool tensor_file_parse(struct tensor_file *file, enum tensor_format format, const char *path, const void *bytes,
                       size_t size, struct fault *fault);

void tensor_file_close(struct tensor_file *file);

/* NULL where there is no such tensor. */
const struct tensor *tensor_file_find(const struct tensor_file *file, const char *name);

/* Sets count and size from element and shape. false: they do not fit 63 bits, or end within a byte. */
bool tensor_measure(struct tensor *tensor);

enum { SHAPE_TEXT = 24 * TENSOR_RANK };

/* "[30522, 384]". Returns text. */
char *tensor_shape_text(const struct tensor *tensor, char text[SHAPE_TEXT]);

/* One parser each: they append to file->tensors what the bytes hold. */
bool safetensors_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault);
bool npy_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault);

/* Room for count tensors, all zero. */
bool tensor_file_reserve(struct tensor_file *file, size_t count, struct fault *fault);

#endif
