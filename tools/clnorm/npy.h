/* Files of type .npy: one tensor, which gets the file's name. */
#ifndef NPY_H
#define NPY_H

#include "host_tensor.h"

/* Reads the tensor of a file's bytes into file->tensors; its data stays in the bytes. */
bool npy_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault);

#endif
