/* Tensors in files: .safetensors has many, .npy one, which gets the file's name. A file is mapped, not read. Every size and
 * offset in it is checked against the file's size, so that a tensor's bytes lie within the mapping. */
#ifndef TENSOR_FILE_H
#define TENSOR_FILE_H

#include "host_tensor.h"

enum tensor_format { FORMAT_UNKNOWN, FORMAT_SAFETENSORS, FORMAT_NPY };

/* The format by the end of the file's name. */
enum tensor_format tensor_format_of(const char *path);

/* Maps and reads a file. On failure *file is empty, and closing it is allowed. */
bool tensor_file_open(struct tensor_file *file, const char *path, struct fault *fault);

/* Reads the tensors of bytes that stay valid until the file is closed. */
bool tensor_file_parse(struct tensor_file *file, enum tensor_format format, const char *path, const void *bytes,
                       size_t size, struct fault *fault);

void tensor_file_close(struct tensor_file *file);

/* NULL where there is no such tensor. */
const struct tensor *tensor_file_find(const struct tensor_file *file, const char *name);

#endif
