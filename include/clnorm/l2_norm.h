/* L2 normalisation, forward and backward. */
#ifndef CLNORM_L2_NORM_H
#define CLNORM_L2_NORM_H

#include "clnorm/context.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How eps keeps the length of a segment of zeros from being 0. */
typedef enum clnorm_eps_mode {
    CLNORM_EPS_ADD = 1, /* length = √(Σx² + eps), as in fla's l2norm */
    CLNORM_EPS_FLOOR    /* length = max(√Σx², eps), as in PyTorch's normalize and ggml_l2_norm */
} clnorm_eps_mode;

/* Divides each segment of group_size neighbouring elements by its length:
 *
 *   y = x / length · weight
 *
 * Arithmetic and sums are in f32, in f64 for F64 tensors. x is multiplied by the rounded reciprocal of the length; y is
 * rounded to nearest even. A NaN makes its segment NaN. An
 * infinity becomes NaN, and its segment's other elements 0. A segment of zeros with eps 0 is NaN. y may be x itself. Thread
 * safety and errors as in plan.h.
 *
 * The sum of squares is in f32 too. Past 3.4e38 (|x| of 1.8e19, or 4096 of 1e18) the length is infinite and y is 0. Squares
 * below 1.2e-38 may count as 0: |x| of 1e-23 with an eps of 0 gives a length of 0, and an infinite y. */
typedef struct clnorm_l2_norm_desc {
    uint64_t size;          /* sizeof(clnorm_l2_norm_desc) */
    uint64_t rows;          /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;          /* 1 and up */
    uint64_t group_size;    /* elements of a segment, a divisor of cols; 0: cols */
    uint64_t weight_rows;   /* row r takes row (r / weight_repeat) mod weight_rows of the weight: see norm.h; 0: one row */
    uint64_t weight_repeat; /* neighbouring rows that take the same row of the weight; 0: 1; 0 without weight_rows */
    clnorm_tensor x;
    clnorm_tensor y;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor weight; /* [weight_rows, cols]; CLNORM_DTYPE_NONE: no weight (ones) */
    double eps;           /* 0 to the largest number of f32 (of f64 with F64 tensors) */
    clnorm_eps_mode eps_mode;
    uint32_t save_norm;       /* 1: write norm, the length of each segment */
    uint32_t batch_invariant; /* 0 or 1: a row's results do not depend on the number of rows: see config.h */
    uint32_t reserved;        /* 0 */
    clnorm_config config;     /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_l2_norm_desc;

/* f32, CLNORM_EPS_ADD with 1e-12. Set rows and cols. */
#define CLNORM_L2_NORM_DESC_INIT                                                                                      \
    {                                                                                                                 \
        sizeof(clnorm_l2_norm_desc), 0, 0, 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 1e-12, \
            CLNORM_EPS_ADD, 0, 0, 0, CLNORM_CONFIG_AUTOMATIC                                                          \
    }
CLNORM_API void clnorm_l2_norm_desc_init(clnorm_l2_norm_desc *desc);

CLNORM_API clnorm_status clnorm_l2_norm_validate(clnorm_context *context, const clnorm_l2_norm_desc *desc,
                                                 clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_l2_norm_plan_create(clnorm_context *context, const clnorm_l2_norm_desc *desc,
                                                    clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_l2_norm(clnorm_context *context, cl_command_queue queue, const clnorm_l2_norm_desc *desc,
                                        const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                        cl_event *event);

/* The gradients, with x̂ = x / length, g = weight · dy and Σ over a segment:
 *
 *   dx = (g − x̂ · Σ(x̂ · g)) / length;   dx = g / eps where the length is eps (CLNORM_EPS_FLOOR)
 *   dweight = Σ dy · x̂, over the rows that take that row of the weight
 *
 * The lengths are the forward's norm with norm_given, and are else computed again from x, into the workspace. dweight's sum
 * over rows is that of CLNORM_REDUCTION_PARTIAL in norm.h, and has the same bits from run to run. With 0 rows it is 0. dx
 * may be x or dy itself. Thread safety and errors as in plan.h. */
typedef struct clnorm_l2_norm_backward_desc {
    uint64_t size;          /* sizeof(clnorm_l2_norm_backward_desc) */
    uint64_t rows;          /* 0 and up */
    uint64_t cols;          /* 1 and up */
    uint64_t group_size;    /* as in the forward */
    uint64_t weight_rows;   /* as in the forward, of dweight too */
    uint64_t weight_repeat; /* as in the forward */
    clnorm_tensor x;
    clnorm_tensor dy;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor weight;  /* as in the forward */
    clnorm_tensor dx;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor dweight; /* [weight_rows, cols]; CLNORM_DTYPE_NONE: not computed */
    double eps;            /* as in the forward */
    clnorm_eps_mode eps_mode;
    uint32_t norm_given;      /* 1: read norm, as the forward saved it with the same eps and eps_mode */
    uint32_t batch_invariant; /* as in the forward, of dx */
    uint32_t reserved;        /* 0 */
    clnorm_config config;     /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_l2_norm_backward_desc;

/* f32, CLNORM_EPS_ADD with 1e-12, no dweight. Set rows and cols. */
#define CLNORM_L2_NORM_BACKWARD_DESC_INIT                                                                               \
    {                                                                                                                   \
        sizeof(clnorm_l2_norm_backward_desc), 0, 0, 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 1e-12, CLNORM_EPS_ADD, 0, 0, 0, CLNORM_CONFIG_AUTOMATIC             \
    }
CLNORM_API void clnorm_l2_norm_backward_desc_init(clnorm_l2_norm_backward_desc *desc);

CLNORM_API clnorm_status clnorm_l2_norm_backward_validate(clnorm_context *context, const clnorm_l2_norm_backward_desc *desc,
                                                          clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_l2_norm_backward_plan_create(clnorm_context *context,
                                                             const clnorm_l2_norm_backward_desc *desc, clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_l2_norm_backward(clnorm_context *context, cl_command_queue queue,
                                                 const clnorm_l2_norm_backward_desc *desc, const clnorm_args *args,
                                                 cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
