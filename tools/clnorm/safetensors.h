/* .safetensors: many tensors, by name. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "host_tensor.h"

/* Appends to file->tensors what the bytes hold. */
bool safetensors_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault);

#endif
