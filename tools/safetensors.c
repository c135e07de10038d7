/* safetensors: the header's length in 8 bytes, little-endian; the header, a JSON object that gives each tensor its dtype,
 * shape and place; the data, of which every byte belongs to just one tensor. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_file.h"

static const uint64_t header_cap = 100000000; /* bytes; the format's own limit */

/* Where the tensors of a file live. */
struct region {
    const char *path;
    const unsigned char *data;
    uint64_t size;
};

static bool read_shape(struct tensor *tensor, const json_t *shape, const char *path, struct fault *fault) {
    if (!json_is_array(shape))
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': shape must be a list of sizes", path, tensor->name);
    const size_t rank = json_array_size(shape);
    if (rank > TENSOR_RANK)
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': rank %zu, at most %d is read", path, tensor->name, rank,
                         TENSOR_RANK);
    tensor->rank = (unsigned)rank;
    for (unsigned i = 0; i < rank; i++) {
        const json_t *const size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return fault_set(fault, EXIT_REQUEST,
                             "%s: tensor '%.200s': size %u of its shape must be a whole number, 0 or more", path,
                             tensor->name, i);
        tensor->shape[i] = (uint64_t)json_integer_value(size);
    }
    return true;
}

static bool read_place(struct tensor *tensor, const json_t *offsets, const struct region *region, struct fault *fault) {
    const json_t *const first = json_array_get(offsets, 0);
    const json_t *const second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': data_offsets must be two whole numbers", region->path,
                         tensor->name);
    const json_int_t begin = json_integer_value(first);
    const json_int_t end = json_integer_value(second);
    if (begin < 0 || end < begin || (uint64_t)end > region->size)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: tensor '%.200s': data_offsets [%lld, %lld] do not lie within the %" PRIu64 " bytes of data",
                         region->path, tensor->name, (long long)begin, (long long)end, region->size);
    if ((uint64_t)(end - begin) != tensor->size) {
        char shape[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST,
                         "%s: tensor '%.200s': data_offsets span %lld bytes, but %s of shape %s takes %" PRIu64,
                         region->path, tensor->name, (long long)(end - begin), tensor->element->name,
                         tensor_shape_text(tensor, shape), tensor->size);
    }
    tensor->data = region->data + begin;
    return true;
}

static bool read_tensor(struct tensor *tensor, const json_t *entry, const struct region *region, struct fault *fault) {
    const char *const path = region->path;
    const char *const dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype)
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': it has no dtype", path, tensor->name);
    tensor->element = element_by_name(dtype);
    if (!tensor->element)
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': unknown dtype '%.40s'", path, tensor->name, dtype);
    if (!read_shape(tensor, json_object_get(entry, "shape"), path, fault))
        return false;
    if (!tensor_measure(tensor)) {
        char shape[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': %s of shape %s is no whole number of bytes below 2^60",
                         path, tensor->name, dtype, tensor_shape_text(tensor, shape));
    }
    return read_place(tensor, json_object_get(entry, "data_offsets"), region, fault);
}

static bool check_metadata(const json_t *metadata, const char *path, struct fault *fault) {
    if (!json_is_object(metadata))
        return fault_set(fault, EXIT_REQUEST, "%s: __metadata__ must be an object of strings", path);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value) {
        if (!json_is_string(value))
            return fault_set(fault, EXIT_REQUEST, "%s: __metadata__ '%.200s' must be a string", path, key);
    }
    return true;
}

static int by_place(const void *a, const void *b) {
    const struct tensor *const left = a;
    const struct tensor *const right = b;
    if (left->data != right->data)
        return left->data < right->data ? -1 : 1;
    return (left->size > right->size) - (left->size < right->size);
}

/* Every byte of the data belongs to one tensor: a gap or an overlap is a file that was cut, joined or made up. */
static bool check_cover(struct tensor_file *file, const struct region *region, struct fault *fault) {
    qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    const unsigned char *end = region->data;
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *const tensor = &file->tensors[i];
        if (tensor->data < end)
            return fault_set(fault, EXIT_REQUEST, "%s: tensors '%.200s' and '%.200s' overlap", region->path,
                             file->tensors[i - 1].name, tensor->name);
        if (tensor->data > end)
            return fault_set(fault, EXIT_REQUEST, "%s: the %td bytes of data before tensor '%.200s' belong to no tensor",
                             region->path, tensor->data - end, tensor->name);
        end = tensor->data + tensor->size;
    }
    const uint64_t left = region->size - (uint64_t)(end - region->data);
    return !left ||
           fault_set(fault, EXIT_REQUEST, "%s: the last %" PRIu64 " bytes of data belong to no tensor", region->path, left);
}

static bool read_header(struct tensor_file *file, json_t *header, const struct region *region, struct fault *fault) {
    if (!tensor_file_reserve(file, json_object_size(header), fault))
        return false;
    const char *key;
    json_t *entry;
    json_object_foreach(header, key, entry) {
        if (!strcmp(key, "__metadata__")) {
            if (!check_metadata(entry, region->path, fault))
                return false;
            continue;
        }
        struct tensor *const tensor = &file->tensors[file->count];
        tensor->name = strdup(key);
        if (!tensor->name)
            return fault_set(fault, EXIT_FAILED, "%s: out of memory", region->path);
        file->count++;
        if (!read_tensor(tensor, entry, region, fault))
            return false;
    }
    return check_cover(file, region, fault);
}

bool safetensors_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault) {
    const char *const path = file->path;
    if (size < 8)
        return fault_set(fault, EXIT_REQUEST, "%s: %" PRIu64 " bytes are too few for a safetensors header", path, size);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > header_cap)
        return fault_set(fault, EXIT_REQUEST, "%s: a header of %" PRIu64 " bytes; safetensors allows %" PRIu64, path,
                         length, header_cap);
    if (length > size - 8)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: a header of %" PRIu64 " bytes in a file that has %" PRIu64 " after its length", path, length,
                         size - 8);
    if (length == 0 || bytes[8] != '{')
        return fault_set(fault, EXIT_REQUEST, "%s: the header does not begin with '{'", path);
    json_error_t error;
    json_t *const header = json_loadb((const char *)bytes + 8, length, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return fault_set(fault, EXIT_REQUEST, "%s: header, byte %d: %s", path, error.position, error.text);
    const struct region region = {path, bytes + 8 + length, size - 8 - length};
    const bool done = read_header(file, header, &region, fault);
    json_decref(header);
    return done;
}
