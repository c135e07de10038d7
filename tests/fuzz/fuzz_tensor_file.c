/* Tensor files, each input as both formats: every tensor's bytes lie within the file, and its name finds it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tensor_file.h"

/* Most mutants get the right header length: few would pass its check by chance. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
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
