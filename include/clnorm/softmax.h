/* Softmax over the last dimension, forward and backward. */
#ifndef CLNORM_SOFTMAX_H
#define CLNORM_SOFTMAX_H

#include "clnorm/context.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Softmax over the last dimension:
 *
 *   y = exp(x − max) / Σexp(x − max),   max and Σ over the row
 *
 * Elements of −∞ are masked: their y is exactly 0. A row of −∞ alone is all 0. A row with a NaN or +∞ is all NaN.
 * Arithmetic is in f32, in f64 for F64 tensors; y is rounded to nearest even. y may be x itself. Thread safety and errors
 * as in plan.h.
 *
 * Few wide rows, and on some GPUs many, are split among several work-groups, forward and backward. The plan then has two
 * kernels, and a workspace for the sums of each row's pieces (chunks and row_split in config.h). */
typedef struct clnorm_softmax_desc {
    uint64_t size; /* sizeof(clnorm_softmax_desc) */
    uint64_t rows; /* 0 and up; 0 is a success that does nothing */
    uint64_t cols; /* 1 and up */
    clnorm_tensor x;
    clnorm_tensor y;          /* dtype CLNORM_DTYPE_NONE: as x */
    uint32_t batch_invariant; /* 0 or 1: a row's y does not depend on the number of rows: see config.h */
    uint32_t reserved;        /* 0 */
    clnorm_config config;     /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_softmax_desc;

/* f32. Set rows and cols. */
#define CLNORM_SOFTMAX_DESC_INIT \
    { sizeof(clnorm_softmax_desc), 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, 0, 0, CLNORM_CONFIG_AUTOMATIC }
CLNORM_API void clnorm_softmax_desc_init(clnorm_softmax_desc *desc);

CLNORM_API clnorm_status clnorm_softmax_forward_validate(clnorm_context *context, const clnorm_softmax_desc *desc,
                                                         clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_softmax_forward_plan_create(clnorm_context *context, const clnorm_softmax_desc *desc,
                                                            clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_softmax_forward(clnorm_context *context, cl_command_queue queue,
                                                const clnorm_softmax_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                                const cl_event *wait_list, cl_event *event);

/* The gradient, from the forward's y: dx = y · (dy − Σ(y · dy)), Σ over the row. dx may be y or dy itself. */
typedef struct clnorm_softmax_backward_desc {
    uint64_t size; /* sizeof(clnorm_softmax_backward_desc) */
    uint64_t rows; /* 0 and up */
    uint64_t cols; /* 1 and up */
    clnorm_tensor y;
    clnorm_tensor dy;         /* dtype CLNORM_DTYPE_NONE: as y */
    clnorm_tensor dx;         /* dtype CLNORM_DTYPE_NONE: as y */
    uint32_t batch_invariant; /* as in the forward, of dx */
    uint32_t reserved;        /* 0 */
    clnorm_config config;     /* forced knobs, those of the forward; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_softmax_backward_desc;

/* f32. Set rows and cols. */
#define CLNORM_SOFTMAX_BACKWARD_DESC_INIT                                                                            \
    {                                                                                                                \
        sizeof(clnorm_softmax_backward_desc), 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 0, 0, \
            CLNORM_CONFIG_AUTOMATIC                                                                                  \
    }
CLNORM_API void clnorm_softmax_backward_desc_init(clnorm_softmax_backward_desc *desc);

CLNORM_API clnorm_status clnorm_softmax_backward_validate(clnorm_context *context, const clnorm_softmax_backward_desc *desc,
                                                          clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_softmax_backward_plan_create(clnorm_context *context,
                                                             const clnorm_softmax_backward_desc *desc, clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_softmax_backward(clnorm_context *context, cl_command_queue queue,
                                                 const clnorm_softmax_backward_desc *desc, const clnorm_args *args,
                                                 cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
