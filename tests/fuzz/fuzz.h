/* Common parts of the fuzz targets: libFuzzer's functions, and a folder for parsers that read files. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* A copy of the input with a '\0' at its end; the caller frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A temporary folder of this process; exit removes it. */
const char *fuzz_folder(void);

/* Writes, or overwrites, the whole file of a path. */
void fuzz_write(const char *path, const uint8_t *data, size_t size);

#endif
