/* What the fuzz targets share: libFuzzer's functions, and a folder for parsers that read files. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* A copy of the input that ends in '\0', to be freed. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A folder of this process's own, which exit removes. */
const char *fuzz_folder(void);

/* Writes, or overwrites, the whole file of a path. */
void fuzz_write(const char *path, const uint8_t *data, size_t size);

#endif
