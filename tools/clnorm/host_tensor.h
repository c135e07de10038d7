/* A tensor in host memory, and a file's list of them. */
#ifndef HOST_TENSOR_H
#define HOST_TENSOR_H

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
    void *map; /* NULL: the bytes belong to someone else */
    size_t map_size;
    struct tensor *tensors; /* sorted by name */
    size_t count;
};

/* Sets count and size from element and shape. false: they do not fit 63 bits, or end within a byte. */
bool tensor_measure(struct tensor *tensor);

enum { SHAPE_TEXT = 24 * TENSOR_RANK };

/* "[30522, 384]". Returns text. */
char *tensor_shape_text(const struct tensor *tensor, char text[SHAPE_TEXT]);

/* Memory for count tensors, all zero. */
bool tensor_file_reserve(struct tensor_file *file, size_t count, struct fault *fault);

/* Sorts the tensors by name. */
void tensor_file_sort(struct tensor_file *file);

#endif
