#include "host_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tensor_measure(struct tensor *tensor) {
    uint64_t count = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(count, tensor->shape[i], &count))
            return false;
    uint64_t bits;
    if (__builtin_mul_overflow(count, (uint64_t)tensor->element->bits, &bits) || bits > INT64_MAX || bits % 8 ||
        bits / 8 > SIZE_MAX)
        return false;
    tensor->count = count;
    tensor->size = bits / 8;
    return true;
}

char *tensor_shape_text(const struct tensor *tensor, char text[SHAPE_TEXT]) {
    int at = snprintf(text, SHAPE_TEXT, "[");
    for (unsigned i = 0; i < tensor->rank; i++)
        at += snprintf(text + at, SHAPE_TEXT - (size_t)at, "%s%llu", i ? ", " : "", (unsigned long long)tensor->shape[i]);
    (void)snprintf(text + at, SHAPE_TEXT - (size_t)at, "]");
    return text;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

void tensor_file_sort(struct tensor_file *file) {
    if (file->count)
        qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
}

bool tensor_file_reserve(struct tensor_file *file, size_t count, struct fault *fault) {
    file->tensors = calloc(count ? count : 1, sizeof *file->tensors);
    return file->tensors || fault_set(fault, EXIT_FAILED, "%s: out of memory for %zu tensors", file->path, count);
}
