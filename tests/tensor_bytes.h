/* The bytes of tensor files, to be parsed. They lie in allocations of just their size, so that a sanitizer sees a read past
 * them. */
#ifndef TEST_TENSOR_BYTES_H
#define TEST_TENSOR_BYTES_H

#include "tensor_file.h"

struct bytes {
    unsigned char *at;
    size_t size;
};

struct bytes copy_of(const void *at, size_t size);

/* A safetensors file of a header and size bytes of data that count 0, 1, 2, … */
struct bytes safetensors(const char *header, size_t size);

/* A header of two tensors, of 30 bytes. */
extern const char two_tensors[];

/* A NumPy file of a header and size zeros. */
struct bytes npy(unsigned char version, const char *header, size_t size);

/* Parses and frees bytes; reads every byte of every tensor. What is refused is refused as a wrong request, in a line that
 * begins with the file's name. */
bool accepts(enum tensor_format format, struct bytes bytes);

/* Refuses bytes with a line that has part in it. */
void assert_refused(enum tensor_format format, struct bytes bytes, const char *part);

#endif
