/* A safetensors file has the header's length in 8 bytes, little-endian; the header, a JSON object with each tensor's dtype,
 * shape and offsets; and the data, of which every byte belongs to exactly one tensor. */
#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"

static const uint64_t header_cap = 100000000; /* bytes; the format's own limit */

/* The data of a file. */
struct region {
    const char *path;
    const unsigned char *data;
    uint64_t size;
};

/* The members of a tensor's entry, which come in any order. */
struct entry {
    char *dtype;
    uint64_t offsets[2];
    bool seen[3]; /* dtype, shape, data_offsets */
};

/* Refuses the next value, unless the reader has failed: then its own error counts. */
static bool refuse_value(const struct json_reader *reader, const struct tensor *tensor, const char *path, const char *what,
                         struct fault *fault) {
    return !reader->error && fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': %s", path, tensor->name, what);
}

static bool read_shape(struct json_reader *reader, struct tensor *tensor, const char *path, struct fault *fault) {
    if (json_peek(reader) != '[')
        return refuse_value(reader, tensor, path, "shape must be a list of sizes", fault);
    reader->at++;
    for (bool first = true; json_next(reader, ']', first); first = false) {
        char what[64];
        (void)snprintf(what, sizeof what, "rank above %d, the maximum", TENSOR_RANK);
        if (tensor->rank == TENSOR_RANK)
            return refuse_value(reader, tensor, path, what, fault);
        (void)snprintf(what, sizeof what, "shape[%u] must be a whole number, 0 or more", tensor->rank);
        if (!json_read_whole(reader, &tensor->shape[tensor->rank]))
            return refuse_value(reader, tensor, path, what, fault);
        tensor->rank++;
    }
    return !reader->error;
}

static bool read_offsets(struct json_reader *reader, struct entry *entry, const struct tensor *tensor, const char *path,
                         struct fault *fault) {
    unsigned count = 0;
    bool whole = json_peek(reader) == '[';
    reader->at += whole;
    for (; whole && json_next(reader, ']', count == 0); count++)
        whole = count < 2 && json_read_whole(reader, &entry->offsets[count]);
    return (whole && count == 2 && !reader->error) ||
           refuse_value(reader, tensor, path, "data_offsets must be two whole numbers", fault);
}

static bool read_value(struct json_reader *reader, int key, struct entry *entry, struct tensor *tensor, const char *path,
                       struct fault *fault) {
    if (key == 1)
        return read_shape(reader, tensor, path, fault);
    if (key == 2)
        return read_offsets(reader, entry, tensor, path, fault);
    if (json_peek(reader) != '"')
        return refuse_value(reader, tensor, path, "dtype must be a string", fault);
    return json_read_string(reader, &entry->dtype);
}

/* Reads a tensor's entry. Members of other names are skipped. */
static bool read_entry(struct json_reader *reader, struct entry *entry, struct tensor *tensor, const char *path,
                       struct fault *fault) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    if (json_peek(reader) != '{')
        return refuse_value(reader, tensor, path, "expected an object of dtype, shape and data_offsets", fault);
    reader->at++;
    for (bool first = true; json_next(reader, '}', first); first = false) {
        char *name = NULL;
        if (!json_read_string(reader, &name))
            return false;
        int key = 0;
        while (key < 3 && strcmp(keys[key], name) != 0)
            key++;
        free(name);
        if (key < 3 && entry->seen[key])
            return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': a duplicate %s", path, tensor->name, keys[key]);
        if (!json_take(reader, ':') || !(key < 3 ? read_value(reader, key, entry, tensor, path, fault) : json_skip(reader)))
            return false;
        if (key < 3)
            entry->seen[key] = true;
    }
    for (int key = 0; key < 3 && !reader->error; key++)
        if (!entry->seen[key])
            return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': it has no %s", path, tensor->name, keys[key]);
    return !reader->error;
}

static bool place_tensor(struct tensor *tensor, const struct entry *entry, const struct region *region,
                         struct fault *fault) {
    char shape[SHAPE_TEXT];
    const uint64_t begin = entry->offsets[0];
    const uint64_t end = entry->offsets[1];
    tensor->element = element_by_name(entry->dtype);
    if (!tensor->element)
        return fault_set(fault, EXIT_REQUEST, "%s: tensor '%.200s': unknown dtype '%.40s'", region->path, tensor->name,
                         entry->dtype);
    if (!tensor_measure(tensor))
        return fault_set(fault, EXIT_REQUEST,
                         "%s: tensor '%.200s': %s of shape %s is not a whole number of bytes below 2^60", region->path,
                         tensor->name, tensor->element->name, tensor_shape_text(tensor, shape));
    if (end < begin || end > region->size)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: tensor '%.200s': data_offsets [%" PRIu64 ", %" PRIu64 "] do not lie within the %" PRIu64
                         " bytes of data",
                         region->path, tensor->name, begin, end, region->size);
    if (end - begin != tensor->size)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: tensor '%.200s': data_offsets span %" PRIu64 " bytes, but %s of shape %s takes %" PRIu64,
                         region->path, tensor->name, end - begin, tensor->element->name, tensor_shape_text(tensor, shape),
                         tensor->size);
    tensor->data = region->data + begin;
    return true;
}

static bool read_metadata(struct json_reader *reader, const char *path, struct fault *fault) {
    if (json_peek(reader) != '{')
        return !reader->error && fault_set(fault, EXIT_REQUEST, "%s: __metadata__ must be an object of strings", path);
    reader->at++;
    for (bool first = true; json_next(reader, '}', first); first = false) {
        char *key = NULL;
        if (!json_read_string(reader, &key))
            return false;
        const bool string = json_take(reader, ':') && json_peek(reader) == '"';
        if (!string && !reader->error)
            fault_set(fault, EXIT_REQUEST, "%s: __metadata__ '%.200s' must be a string", path, key);
        free(key);
        if (!string || !json_read_string(reader, NULL))
            return false;
    }
    return !reader->error;
}

static int by_place(const void *a, const void *b) {
    const struct tensor *const left = a;
    const struct tensor *const right = b;
    if (left->data != right->data)
        return left->data < right->data ? -1 : 1;
    return (left->size > right->size) - (left->size < right->size);
}

/* Requires that every byte of the data belongs to one tensor. A file with gaps or overlaps was cut, joined or forged. */
static bool check_cover(struct tensor_file *file, const struct region *region, struct fault *fault) {
    if (file->count)
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

/* Adds a tensor that is all zero. */
static struct tensor *add_tensor(struct tensor_file *file, size_t *capacity, struct fault *fault) {
    if (file->count == *capacity) {
        const size_t grown = *capacity ? 2 * *capacity : 16;
        struct tensor *const tensors = realloc(file->tensors, grown * sizeof *tensors);
        if (!tensors) {
            fault_set(fault, EXIT_FAILED, "%s: out of memory for %zu tensors", file->path, grown);
            return NULL;
        }
        file->tensors = tensors;
        *capacity = grown;
    }
    struct tensor *const tensor = &file->tensors[file->count++];
    *tensor = (struct tensor){0};
    return tensor;
}

/* The file takes over the name. */
static bool read_tensor(struct json_reader *reader, struct tensor_file *file, size_t *capacity, char *name,
                        const struct region *region, struct fault *fault) {
    struct tensor *const tensor = add_tensor(file, capacity, fault);
    if (!tensor) {
        free(name);
        return false;
    }
    tensor->name = name;
    struct entry entry = {0};
    const bool done =
        read_entry(reader, &entry, tensor, region->path, fault) && place_tensor(tensor, &entry, region, fault);
    free(entry.dtype);
    return done;
}

static bool read_header(struct json_reader *reader, struct tensor_file *file, const struct region *region,
                        struct fault *fault) {
    size_t capacity = 0;
    bool has_metadata = false;
    reader->at++; /* the '{' that find_header has seen */
    for (bool first = true; json_next(reader, '}', first); first = false) {
        char *name = NULL;
        if (!json_read_string(reader, &name))
            return false;
        const bool metadata = !strcmp(name, "__metadata__");
        const bool colon = json_take(reader, ':');
        if (metadata || !colon)
            free(name);
        if (colon && metadata && has_metadata)
            return fault_set(fault, EXIT_REQUEST, "%s: a duplicate __metadata__", region->path);
        has_metadata = has_metadata || metadata;
        if (!colon || !(metadata ? read_metadata(reader, region->path, fault)
                                 : read_tensor(reader, file, &capacity, name, region, fault)))
            return false;
    }
    if ((json_peek(reader) || reader->at < reader->end) && !reader->error) /* the next character may be a NUL */
        reader->error = "the header continues after its last '}'";
    return !reader->error;
}

static bool check_names(struct tensor_file *file, struct fault *fault) {
    tensor_file_sort(file);
    for (size_t i = 1; i < file->count; i++)
        if (!strcmp(file->tensors[i - 1].name, file->tensors[i].name))
            return fault_set(fault, EXIT_REQUEST, "%s: a duplicate tensor '%.200s'", file->path, file->tensors[i].name);
    return true;
}

/* Reads the length of the header. */
static bool find_header(const char *path, const unsigned char *bytes, uint64_t size, uint64_t *length,
                        struct fault *fault) {
    if (size < 8)
        return fault_set(fault, EXIT_REQUEST, "%s: %" PRIu64 " bytes are too few for a safetensors header", path, size);
    *length = 0;
    for (int i = 7; i >= 0; i--)
        *length = *length << 8 | bytes[i];
    if (*length > header_cap)
        return fault_set(fault, EXIT_REQUEST, "%s: a header of %" PRIu64 " bytes; safetensors allows %" PRIu64, path,
                         *length, header_cap);
    if (*length > size - 8)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: a header of %" PRIu64 " bytes in a file that has %" PRIu64 " after its length", path, *length,
                         size - 8);
    if (*length == 0 || bytes[8] != '{')
        return fault_set(fault, EXIT_REQUEST, "%s: the header does not begin with '{'", path);
    return true;
}

bool safetensors_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault) {
    uint64_t length = 0;
    if (!find_header(file->path, bytes, size, &length, fault))
        return false;
    const char *const header = (const char *)bytes + 8;
    struct json_reader reader = {.at = header, .end = header + length};
    const struct region region = {file->path, bytes + 8 + length, size - 8 - length};
    if (!read_header(&reader, file, &region, fault))
        return reader.error ? fault_set(fault, EXIT_REQUEST, "%s: header, byte %td: %s", file->path, reader.at - header,
                                        reader.error)
                            : false;
    return check_names(file, fault) && check_cover(file, &region, fault);
}
