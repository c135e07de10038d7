/* Contents of tensor files for tests of the parsers. Each lies in an allocation of exactly its size, so that a sanitizer
 * reports a read past its end. */
#ifndef TEST_TENSOR_BYTES_H
#define TEST_TENSOR_BYTES_H

#include "tensor_file.h"

struct bytes {
    unsigned char *at;
    size_t size;
};

struct bytes copy_of(const void *at, size_t size);

/* A safetensors file: a header and size bytes of data, 0, 1, 2, … */
struct bytes safetensors(const char *header, size_t size);

/* A header of two tensors with 30 bytes of data. */
extern const char two_tensors[];

/* A NumPy file: a header and size bytes of zeros. */
struct bytes npy(unsigned char version, const char *header, size_t size);

/* Parses and frees bytes. Returns whether the parser accepts them; then every byte of every tensor is read. A refusal
 * must be EXIT_REQUEST with one line that begins with the file's name. */
bool accepts(enum tensor_format format, struct bytes bytes);

/* Checks that the parser refuses bytes with a line that contains part. */
void assert_refused(enum tensor_format format, struct bytes bytes, const char *part);

#endif
