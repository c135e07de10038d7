/* A libFuzzer target for the parsers of tensor files. It needs no corpus: inputs begin as the valid files below.
 *
 *   clang -g -O1 -std=c11 -D_POSIX_C_SOURCE=200809L -fsanitize=fuzzer,address,undefined -Iinclude -Itools/clnorm \
 *       tests/fuzz_tensor_file.c tools/clnorm/{fault,element,json_reader,tensor_file,safetensors,npy}.c LIBCLNORM -lm \
 *       -lOpenCL
 *   ./a.out -max_total_time=300 -max_len=4096
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_file.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const headers[] = {
    "{}",
    "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[24,30]}}",
    "{\"q\":{\"dtype\":\"F8_E4M3\",\"shape\":[0,5],\"data_offsets\":[0,0]},"
    "\"x\":{\"dtype\":\"F64\",\"shape\":[1,1,2],\"data_offsets\":[0,16]}}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (3,)}",
    "{\"descr\": \"<f2\", \"fortran_order\": False, \"shape\": ()}",
};
enum { HEADERS = sizeof headers / sizeof *headers, SAFETENSORS = 3, DATA = 30 };

/* A valid file of one of the headers. capacity: room for any of them. */
static size_t put_seed(uint8_t *data, unsigned seed) {
    const unsigned i = seed % HEADERS;
    const size_t length = strlen(headers[i]);
    const size_t start = i < SAFETENSORS ? 8 : 10;
    memset(data, 0, start + length + DATA);
    if (i >= SAFETENSORS)
        memcpy(data, "\x93NUMPY\1", 7);
    data[i < SAFETENSORS ? 0 : 8] = (uint8_t)length;
    memcpy(data + start, headers[i], length);
    return start + length + DATA;
}

/* Most mutants get a header length that fits, since few get past that check by chance. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
    if (size < 16 && capacity >= 512)
        return put_seed(data, seed);
    size = LLVMFuzzerMutate(data, size, capacity);
    const uint8_t *const brace = memchr(data, '}', size);
    if (size < 16 || !brace || seed % 4 == 0)
        return size;
    const uint8_t *last = brace;
    for (const uint8_t *at = brace; at; at = memchr(at + 1, '}', size - (size_t)(at + 1 - data)))
        last = at;
    const bool npy = data[0] == 0x93;
    const size_t start = npy ? 10 : 8;
    const size_t length = last + 1 > data + start ? (size_t)(last + 1 - data) - start : 0;
    uint8_t *const field = npy ? data + 8 : data;
    for (unsigned i = 0; i < (npy ? 2U : 8U); i++)
        field[i] = (uint8_t)((uint64_t)length >> 8 * i);
    return size;
}

static void check(enum tensor_format format, const uint8_t *data, size_t size) {
    struct tensor_file file;
    struct fault fault = {0};
    const bool done = tensor_file_parse(&file, format, "input", data, size, &fault);
    if (done != (fault.text[0] == '\0') || strpbrk(fault.text, "\n\r\x1b"))
        abort();
    for (size_t i = 0; i < file.count; i++) {
        const struct tensor *const tensor = &file.tensors[i];
        if (tensor->data < data || tensor->size > size || tensor->data + tensor->size > data + size)
            abort();
        if (tensor_file_find(&file, tensor->name) != tensor)
            abort();
    }
    tensor_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(FORMAT_SAFETENSORS, data, size);
    check(FORMAT_NPY, data, size);
    return 0;
}
