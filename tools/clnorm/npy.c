/* An npy file has the magic, a version, the header's length, the header (a Python dict of descr, fortran_order and shape)
 * and the data. */
#include "npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The unread part of the header. */
struct reader {
    const char *at, *end;
};

static void skip_spaces(struct reader *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t'))
        reader->at++;
}

/* Takes a character, and the spaces before it, if it is the next one. */
static bool take(struct reader *reader, char wanted) {
    skip_spaces(reader);
    const bool there = reader->at < reader->end && *reader->at == wanted;
    reader->at += there;
    return there;
}

static bool take_word(struct reader *reader, const char *word) {
    skip_spaces(reader);
    const size_t length = strlen(word);
    const bool there = (size_t)(reader->end - reader->at) >= length && !memcmp(reader->at, word, length);
    if (there)
        reader->at += length;
    return there;
}

/* Takes a string in single or double quotes, without escapes. */
static bool take_string(struct reader *reader, char *text, size_t capacity) {
    skip_spaces(reader);
    if (reader->at == reader->end || (*reader->at != '\'' && *reader->at != '"'))
        return false;
    const char quote = *reader->at++;
    size_t length = 0;
    while (reader->at < reader->end && *reader->at != quote && *reader->at != '\\' && length + 1 < capacity)
        text[length++] = *reader->at++;
    text[length] = '\0';
    const bool closed = reader->at < reader->end && *reader->at == quote;
    reader->at += closed;
    return closed;
}

static bool take_number(struct reader *reader, uint64_t *number) {
    skip_spaces(reader);
    if (reader->at == reader->end || !isdigit((unsigned char)*reader->at))
        return false;
    *number = 0;
    for (; reader->at < reader->end && isdigit((unsigned char)*reader->at); reader->at++)
        if (__builtin_mul_overflow(*number, UINT64_C(10), number) ||
            __builtin_add_overflow(*number, (uint64_t)(*reader->at - '0'), number))
            return false;
    return true;
}

/* Takes "()", "(3,)", "(3, 4)". */
static bool take_shape(struct reader *reader, struct tensor *tensor) {
    if (!take(reader, '('))
        return false;
    bool comma = true;
    while (!take(reader, ')')) {
        if (!comma || tensor->rank == TENSOR_RANK || !take_number(reader, &tensor->shape[tensor->rank]))
            return false;
        tensor->rank++;
        comma = take(reader, ',');
    }
    return tensor->rank != 1 || comma;
}

struct header {
    char descr[32];
    bool fortran;
    bool seen[3]; /* descr, fortran_order, shape */
};

static bool take_entry(struct reader *reader, struct header *header, struct tensor *tensor) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    if (!take_string(reader, key, sizeof key) || !take(reader, ':'))
        return false;
    int i = 0;
    while (i < 3 && strcmp(keys[i], key) != 0)
        i++;
    if (i == 3 || header->seen[i])
        return false;
    header->seen[i] = true;
    if (i == 0)
        return take_string(reader, header->descr, sizeof header->descr);
    if (i == 2)
        return take_shape(reader, tensor);
    header->fortran = take_word(reader, "True");
    return header->fortran || take_word(reader, "False");
}

static bool take_header(struct reader *reader, struct header *header, struct tensor *tensor) {
    if (!take(reader, '{'))
        return false;
    bool comma = true;
    while (!take(reader, '}')) {
        if (!comma || !take_entry(reader, header, tensor))
            return false;
        comma = take(reader, ',');
    }
    skip_spaces(reader);
    return reader->at == reader->end && header->seen[0] && header->seen[1] && header->seen[2];
}

/* Finds the header. Version 1 has 2 bytes of length, 2 and 3 have 4. */
static bool find_header(struct reader *reader, const char *path, const unsigned char *bytes, uint64_t size,
                        struct fault *fault) {
    if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fault_set(fault, EXIT_REQUEST, "%s: expected an npy file, which begins with \\x93NUMPY", path);
    const unsigned version = bytes[6];
    if (version < 1 || version > 3 || bytes[7] != 0)
        return fault_set(fault, EXIT_REQUEST, "%s: npy version %u.%u; expected 1.0, 2.0 or 3.0", path, version,
                         (unsigned)bytes[7]);
    const unsigned start = version == 1 ? 10 : 12;
    uint64_t length = 0;
    for (unsigned i = start - 1; i >= 8; i--)
        length = length << 8 | bytes[i];
    if (length > size - start)
        return fault_set(fault, EXIT_REQUEST, "%s: an npy header of %" PRIu64 " bytes in a file of %" PRIu64, path, length,
                         size);
    *reader = (struct reader){(const char *)bytes + start, (const char *)bytes + start + length};
    return true;
}

/* "x" of "folder/x.npy"; the caller frees it. */
static char *stem(const char *path) {
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    const char *const dot = strrchr(name, '.');
    return strndup(name, dot ? (size_t)(dot - name) : strlen(name));
}

bool npy_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault) {
    const char *const path = file->path;
    struct reader reader = {NULL, NULL};
    if (!find_header(&reader, path, bytes, size, fault) || !tensor_file_reserve(file, 1, fault))
        return false;
    const unsigned char *const data = (const unsigned char *)reader.end;
    const uint64_t data_size = size - (uint64_t)(data - bytes);
    struct tensor *const tensor = file->tensors;
    struct header header = {0};
    if (!take_header(&reader, &header, tensor))
        return fault_set(fault, EXIT_REQUEST,
                         "%s: npy header: expected a dict of descr, fortran_order and shape only, with at most %d sizes",
                         path, TENSOR_RANK);
    tensor->element = element_by_npy(header.descr);
    if (!tensor->element)
        return fault_set(fault, EXIT_REQUEST, "%s: descr '%s'; expected '<f2', '<f4' or '<f8' (bf16: use safetensors)",
                         path, header.descr);
    if (header.fortran)
        return fault_set(fault, EXIT_REQUEST,
                         "%s: fortran_order is True; expected a row-major array: save its numpy.ascontiguousarray", path);
    char shape[SHAPE_TEXT];
    if (!tensor_measure(tensor) || tensor->size != data_size)
        return fault_set(fault, EXIT_REQUEST, "%s: %" PRIu64 " bytes of data do not match '%s' of shape %s", path,
                         data_size, header.descr, tensor_shape_text(tensor, shape));
    tensor->data = data;
    tensor->name = stem(path);
    file->count = tensor->name != NULL;
    return tensor->name || fault_set(fault, EXIT_FAILED, "%s: out of memory", path);
}
