/* Element-wise kernels as an application has them between calls of the library: 16-byte accesses, arithmetic in f32 (in f64
 * on doubles). */
#ifndef PLAIN_KERNELS_H
#define PLAIN_KERNELS_H

#include "session.h"

struct plain_kernels {
    cl_program program;
    cl_kernel add, dropout, gate;
    cl_uint vector; /* elements of an access */
};

/* The caller frees the kernels, also after a failure. */
bool plain_kernels_make(struct plain_kernels *kernels, const struct session *session, clnorm_dtype dtype,
                        struct fault *fault);

/* Also frees what plain_kernels_make could not finish. */
void plain_kernels_free(struct plain_kernels *kernels);

/* A launch of one of the kernels over count elements. other: the second input; any buffer for dropout, which has none. */
struct plain_call {
    cl_kernel kernel;
    cl_mem in, other, out;
    uint64_t count;
};

/* event: NULL, or released by the caller. */
bool plain_kernels_enqueue(const struct plain_kernels *kernels, const struct session *session,
                           const struct plain_call *call, cl_event *event, struct fault *fault);

#endif
