/* GELU, forward and backward. */
#ifndef CLNORM_GELU_H
#define CLNORM_GELU_H

#include "clnorm/context.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gaussian error linear units: Hendrycks, Gimpel 2016, arXiv:1606.08415. Φ is the distribution function of the standard
 * normal distribution. Both forms are −0 at −∞ and ∞ at ∞; where |x| is large, y is exactly x or 0. */
typedef enum clnorm_gelu_form {
    CLNORM_GELU_ERF = 1, /* x · Φ(x) = x/2 · (1 + erf(x / √2)) */
    CLNORM_GELU_TANH     /* x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) */
} clnorm_gelu_form;

/* y = gelu(x), element by element. Arithmetic is in f32, in f64 for F64 tensors; y is rounded to nearest even. y may be x
 * itself. Thread safety and errors as in plan.h. */
typedef struct clnorm_gelu_desc {
    uint64_t size; /* sizeof(clnorm_gelu_desc) */
    uint64_t rows; /* 0 and up; 0 is a success that does nothing */
    uint64_t cols; /* 1 and up; without gaps between rows, any rows x cols with this number of elements is the same */
    clnorm_tensor x;
    clnorm_tensor y; /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_gelu_form form;
    uint32_t reserved;    /* 0 */
    clnorm_config config; /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_gelu_desc;

/* f32, CLNORM_GELU_ERF. Set rows and cols. */
#define CLNORM_GELU_DESC_INIT \
    { sizeof(clnorm_gelu_desc), 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_GELU_ERF, 0, CLNORM_CONFIG_AUTOMATIC }
CLNORM_API void clnorm_gelu_desc_init(clnorm_gelu_desc *desc);

CLNORM_API clnorm_status clnorm_gelu_forward_validate(clnorm_context *context, const clnorm_gelu_desc *desc,
                                                      clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_gelu_forward_plan_create(clnorm_context *context, const clnorm_gelu_desc *desc,
                                                         clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_gelu_forward(clnorm_context *context, cl_command_queue queue, const clnorm_gelu_desc *desc,
                                             const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                             cl_event *event);

/* dx = dy · gelu′(x); gelu′ is exactly 0 at −∞ and 1 at ∞, and gelu′(0) = 1/2. dx may be x or dy itself. */
typedef struct clnorm_gelu_backward_desc {
    uint64_t size; /* sizeof(clnorm_gelu_backward_desc) */
    uint64_t rows; /* 0 and up */
    uint64_t cols; /* 1 and up */
    clnorm_tensor x;
    clnorm_tensor dy;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor dx;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_gelu_form form; /* as in the forward */
    uint32_t reserved;     /* 0 */
    clnorm_config config;  /* as in the forward */
} clnorm_gelu_backward_desc;

/* f32, CLNORM_GELU_ERF. Set rows and cols. */
#define CLNORM_GELU_BACKWARD_DESC_INIT                                                                      \
    {                                                                                                       \
        sizeof(clnorm_gelu_backward_desc), 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            CLNORM_GELU_ERF, 0, CLNORM_CONFIG_AUTOMATIC                                                     \
    }
CLNORM_API void clnorm_gelu_backward_desc_init(clnorm_gelu_backward_desc *desc);

CLNORM_API clnorm_status clnorm_gelu_backward_validate(clnorm_context *context, const clnorm_gelu_backward_desc *desc,
                                                       clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_gelu_backward_plan_create(clnorm_context *context, const clnorm_gelu_backward_desc *desc,
                                                          clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_gelu_backward(clnorm_context *context, cl_command_queue queue,
                                              const clnorm_gelu_backward_desc *desc, const clnorm_args *args,
                                              cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
