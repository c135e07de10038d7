/* Writes tensors to a file that appears complete or not at all; see output_file.h. */
#ifndef TENSOR_WRITE_H
#define TENSOR_WRITE_H

#include "tensor_file.h"

/* The end of the path decides the format: a .safetensors file holds all tensors, an .npy file the first one. */
bool tensor_write(const char *path, const struct tensor *const *tensors, size_t count, struct fault *fault);

/* Whether the path can be written, and its format can hold a first tensor of this element type. Called before the work. */
bool tensor_write_check(const char *path, const struct element *element, struct fault *fault);

#endif
