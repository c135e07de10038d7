/* Files of type .safetensors: any number of named tensors. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "host_tensor.h"

/* Reads the tensors of a file's bytes into file->tensors; their data stays in the bytes. */
bool safetensors_parse(struct tensor_file *file, const unsigned char *bytes, uint64_t size, struct fault *fault);

#endif
