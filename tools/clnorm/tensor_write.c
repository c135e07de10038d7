#include "tensor_write.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "output_file.h"

bool tensor_write_check(const char *path, const struct element *element, struct fault *fault) {
    const enum tensor_format format = tensor_format_of(path);
    if (format == FORMAT_UNKNOWN)
        return fault_set(fault, EXIT_REQUEST, "%s: expected a file name that ends in .safetensors or .npy", path);
    if (format == FORMAT_NPY && !element->npy)
        return fault_set(fault, EXIT_REQUEST, "%s: npy has no %s; write .safetensors%s", path, element->name,
                         cln_dtype_fp8(element->dtype) ? "" : " or choose another --dtype");
    return output_file_check(path, fault);
}

static int wider_first(const void *a, const void *b) {
    const unsigned left = (*(const struct tensor *const *)a)->element->bits;
    const unsigned right = (*(const struct tensor *const *)b)->element->bits;
    return (left < right) - (left > right);
}

/* The header's text for tensors in this order, newly allocated; NULL when out of memory. */
static char *safetensors_header(const struct tensor *const *tensors, size_t count) {
    json_t *const header = json_object();
    uint64_t begin = 0;
    bool done = header;
    for (size_t i = 0; done && i < count; i++) {
        json_t *const shape = json_array();
        for (unsigned d = 0; d < tensors[i]->rank; d++)
            done = !json_array_append_new(shape, json_integer((json_int_t)tensors[i]->shape[d])) && done;
        const uint64_t end = begin + tensors[i]->size;
        json_t *const entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensors[i]->element->name, "shape", shape,
                                        "data_offsets", (json_int_t)begin, (json_int_t)end);
        done = !json_object_set_new(header, tensors[i]->name, entry) && done;
        begin = end;
    }
    char *const text = done ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

/* Tensors with wider elements come first and the header is padded, so that every tensor is aligned to its elements. */
static bool put_safetensors(FILE *stream, const struct tensor *const *tensors, size_t count) {
    const struct tensor **const order = malloc(count * sizeof *order);
    if (!order)
        return false;
    memcpy(order, tensors, count * sizeof *order);
    qsort(order, count, sizeof *order, wider_first);
    char *const header = safetensors_header(order, count);
    bool done = header;
    if (done) {
        const size_t length = strlen(header);
        const uint64_t padded = (length + 7) / 8 * 8;
        for (unsigned i = 0; i < 8; i++)
            fputc((int)(padded >> 8 * i & 0xff), stream);
        fprintf(stream, "%-*s", (int)padded, header);
    }
    for (size_t i = 0; done && i < count; i++)
        done = fwrite(order[i]->data, 1, (size_t)order[i]->size, stream) == order[i]->size;
    free(header);
    free(order);
    return done;
}

/* Version 1.0, padded so that the data begin at a multiple of 64 bytes. */
static bool put_npy(FILE *stream, const struct tensor *tensor) {
    char dict[128 + SHAPE_TEXT];
    int length = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", tensor->element->npy);
    for (unsigned i = 0; i < tensor->rank; i++)
        length += snprintf(dict + length, sizeof dict - (size_t)length, "%s%" PRIu64, i ? ", " : "", tensor->shape[i]);
    length += snprintf(dict + length, sizeof dict - (size_t)length, "%s), }", tensor->rank == 1 ? "," : "");
    const int padded = (10 + length + 1 + 63) / 64 * 64 - 10; /* with the newline at its end */
    fprintf(stream, "\x93NUMPY");
    const unsigned char version_and_length[] = {1, 0, (unsigned char)(padded & 0xff), (unsigned char)(padded >> 8)};
    fwrite(version_and_length, 1, sizeof version_and_length, stream);
    fprintf(stream, "%-*s\n", padded - 1, dict);
    return fwrite(tensor->data, 1, (size_t)tensor->size, stream) == tensor->size;
}

bool tensor_write(const char *path, const struct tensor *const *tensors, size_t count, struct fault *fault) {
    struct output_file file;
    if (!tensor_write_check(path, tensors[0]->element, fault) || !output_file_open(&file, path, fault))
        return false;
    const bool good = tensor_format_of(path) == FORMAT_NPY ? put_npy(file.stream, tensors[0])
                                                           : put_safetensors(file.stream, tensors, count);
    return output_file_close(&file, good, fault);
}
