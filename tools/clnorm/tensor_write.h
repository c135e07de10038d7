/* Writes tensors to a file that appears complete or not at all; see output_file.h. */
#ifndef TENSOR_WRITE_H
#define TENSOR_WRITE_H

#include "tensor_file.h"

/* The format is that of the path: a .safetensors file takes them all, an .npy file the first one. */
bool tensor_write(const char *path, const struct tensor *const *tensors, size_t count, struct fault *fault);

/* Whether the path can be written, and can take a first tensor of this element type; asked before the work is done. */
bool tensor_write_check(const char *path, const struct element *element, struct fault *fault);

#endif
