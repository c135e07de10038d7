/* .npy: one tensor, with the name of the file. */
#ifndef NPY_H
#define NPY_H

#include "host_tensor.h"

/* Appends to file->tensors what the bytes hold. */
bool npy_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault);

#endif
