/* The tool's own kernels: one fills tensors with random numbers, one copies. */
#ifndef DEVICE_KERNELS_H
#define DEVICE_KERNELS_H

#include "session.h"

struct device_kernels {
    cl_program program;
    cl_kernel fill, copy;
};

/* After a failure there is nothing to free. */
bool device_kernels_make(struct device_kernels *kernels, const struct session *session, struct fault *fault);

/* May be called again, and with kernels that are 0. */
void device_kernels_free(struct device_kernels *kernels);

/* Fills a buffer with random numbers of magnitude 0 to 1; for F64 1 to 2, for 8-bit dtypes 0 to 2. */
bool device_fill(const struct device_kernels *kernels, const struct session *session, cl_mem mem, clnorm_dtype dtype,
                 uint64_t count, cl_uint seed, struct fault *fault);

/* Copies 16 bytes at a time; bytes is a multiple of 16. event: released by the caller. */
bool device_copy(const struct device_kernels *kernels, const struct session *session, cl_mem from, cl_mem to,
                 uint64_t bytes, cl_event *event, struct fault *fault);

#endif
