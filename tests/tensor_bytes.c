#include "tensor_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char two_tensors[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                           "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[24,30]},"
                           "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}  ";

struct bytes copy_of(const void *at, size_t size) {
    const struct bytes copy = {malloc(size ? size : 1), size};
    assert_non_null(copy.at);
    memcpy(copy.at, at, size);
    return copy;
}

struct bytes safetensors(const char *header, size_t size) {
    const size_t length = strlen(header);
    const struct bytes file = {malloc(8 + length + size), 8 + length + size};
    assert_non_null(file.at);
    for (unsigned i = 0; i < 8; i++)
        file.at[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(file.at + 8, header, length);
    for (size_t i = 0; i < size; i++)
        file.at[8 + length + i] = (unsigned char)i;
    return file;
}

struct bytes npy(unsigned char version, const char *header, size_t size) {
    const size_t length = strlen(header);
    const size_t start = version == 1 ? 10 : 12;
    const struct bytes file = {calloc(1, start + length + size), start + length + size};
    assert_non_null(file.at);
    memcpy(file.at, "\x93NUMPY", 6);
    file.at[6] = version;
    file.at[8] = (unsigned char)length;
    file.at[9] = (unsigned char)(length >> 8);
    memcpy(file.at + start, header, length);
    return file;
}

static const char *path_of(enum tensor_format format) {
    return format == FORMAT_NPY ? "folder/x.npy" : "folder/x.safetensors";
}

bool accepts(enum tensor_format format, struct bytes bytes) {
    struct tensor_file file;
    struct fault fault = {0};
    const bool done = tensor_file_parse(&file, format, path_of(format), bytes.at, bytes.size, &fault);
    volatile unsigned char read = 0; /* a sanitizer reports a byte outside of the allocation */
    for (size_t i = 0; i < file.count; i++) {
        const struct tensor *const tensor = &file.tensors[i];
        assert_ptr_equal(tensor_file_find(&file, tensor->name), tensor);
        assert_true(tensor->data >= bytes.at && tensor->data + tensor->size <= bytes.at + bytes.size);
        for (uint64_t b = 0; b < tensor->size; b++)
            read = tensor->data[b];
    }
    if (!done) {
        assert_int_equal(fault.code, EXIT_REQUEST);
        assert_true(!strncmp(fault.text, path_of(format), strlen(path_of(format))));
        assert_true(strlen(fault.text) > strlen(path_of(format)) + 2);
        assert_null(strchr(fault.text, '\n'));
        assert_null(file.tensors);
    } else {
        assert_string_equal(fault.text, "");
    }
    tensor_file_close(&file);
    free(bytes.at);
    (void)read;
    return done;
}

void assert_refused(enum tensor_format format, struct bytes bytes, const char *part) {
    struct tensor_file file;
    struct fault fault = {0};
    assert_false(tensor_file_parse(&file, format, path_of(format), bytes.at, bytes.size, &fault));
    if (!strstr(fault.text, part))
        fail_msg("\"%s\" does not contain \"%s\"", fault.text, part);
    assert_false(accepts(format, bytes));
}
