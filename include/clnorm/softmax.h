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
 * Entries of −∞ are masked: their y is exactly 0, and a row of nothing else is all 0. A row with a NaN or +∞ in it is all
 * NaN. Arithmetic is in f32, in f64 for F64 tensors; y is rounded to nearest even.
 *
 * Few very wide rows are shared by several work-groups, forward and backward: the plan then has two kernels, and a
 * workspace for the sums of config.chunks pieces of each row. */
typedef struct clnorm_softmax_desc {
    size_t size;       /* sizeof(clnorm_softmax_desc) */
    uint64_t rows;     /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;     /* 1 and up */
    uint64_t x_stride; /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride; /* likewise */
    clnorm_dtype x_dtype;
    clnorm_dtype y_dtype; /* CLNORM_DTYPE_NONE: as x */
    clnorm_config config; /* forced knobs of the forward; all 0 as a rule */
} clnorm_softmax_desc;

/* A descriptor of nothing yet: f32. Set rows and cols. */
static inline clnorm_softmax_desc clnorm_softmax_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_softmax_desc desc;
    desc.size = sizeof(clnorm_softmax_desc);
    desc.rows = desc.cols = desc.x_stride = desc.y_stride = 0;
    desc.x_dtype = CLNORM_F32;
    desc.y_dtype = CLNORM_DTYPE_NONE;
    desc.config = automatic;
    return desc;
}
#define CLNORM_SOFTMAX_DESC_INIT clnorm_softmax_desc_init()

CLNORM_API clnorm_status clnorm_softmax_forward_plan_create(clnorm_context *context, const clnorm_softmax_desc *desc,
                                                            clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_softmax_forward(clnorm_context *context, cl_command_queue queue,
                                                const clnorm_softmax_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                                const cl_event *wait_list, cl_event *event);

/* Its gradient, from what it gave: dx = y · (dy − Σ(y · dy)), Σ over the row. */
typedef struct clnorm_softmax_backward_desc {
    size_t size;        /* sizeof(clnorm_softmax_backward_desc) */
    uint64_t rows;      /* 0 and up */
    uint64_t cols;      /* 1 and up */
    uint64_t y_stride;  /* elements from one row to the next, at least cols; 0: cols */
    uint64_t dy_stride; /* likewise */
    uint64_t dx_stride; /* likewise */
    clnorm_dtype y_dtype;
    clnorm_dtype dy_dtype; /* CLNORM_DTYPE_NONE: as y */
    clnorm_dtype dx_dtype; /* likewise */
    clnorm_config config;  /* forced knobs, those that the forward has; all 0 as a rule */
} clnorm_softmax_backward_desc;

/* A descriptor of nothing yet: f32. Set rows and cols. */
static inline clnorm_softmax_backward_desc clnorm_softmax_backward_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_softmax_backward_desc desc;
    desc.size = sizeof(clnorm_softmax_backward_desc);
    desc.rows = desc.cols = desc.y_stride = desc.dy_stride = desc.dx_stride = 0;
    desc.y_dtype = CLNORM_F32;
    desc.dy_dtype = desc.dx_dtype = CLNORM_DTYPE_NONE;
    desc.config = automatic;
    return desc;
}
#define CLNORM_SOFTMAX_BACKWARD_DESC_INIT clnorm_softmax_backward_desc_init()

CLNORM_API clnorm_status clnorm_softmax_backward_plan_create(clnorm_context *context,
                                                             const clnorm_softmax_backward_desc *desc, clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_softmax_backward(clnorm_context *context, cl_command_queue queue,
                                                 const clnorm_softmax_backward_desc *desc, const clnorm_args *args,
                                                 cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
