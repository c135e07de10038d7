/* Element-wise kernels as an application would have them beside separate calls of the library: 16-byte accesses, arithmetic
 * in f32 (f64 on doubles). */
#ifndef PLAIN_KERNELS_H
#define PLAIN_KERNELS_H

#include "session.h"

struct plain_kernels {
    cl_program program;
    cl_kernel add, dropout, gate;
    cl_uint vector; /* elements of an access */
};

/* On failure what there is of it is to be freed. */
bool plain_kernels_make(struct plain_kernels *kernels, const struct session *session, clnorm_dtype dtype,
                        struct fault *fault);

/* Takes half-made ones. */
void plain_kernels_free(struct plain_kernels *kernels);

/* One launch of one of them over count elements. other: of dropout, which has none, any buffer. event: NULL, or released by
 * the caller. */
struct plain_call {
    cl_kernel kernel;
    cl_mem in, other, out;
    uint64_t count;
};
bool plain_kernels_enqueue(const struct plain_kernels *kernels, const struct session *session,
                           const struct plain_call *call, cl_event *event, struct fault *fault);

#endif
