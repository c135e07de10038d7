/* Group and instance normalisation, forward and backward. */
#ifndef CLNORM_GROUP_NORM_H
#define CLNORM_GROUP_NORM_H

#include "clnorm/context.h"
#include "clnorm/norm.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a sample's elements lie in memory. */
typedef enum clnorm_layout {
    CLNORM_LAYOUT_FIRST = 1, /* channels first: [channels, spatial] */
    CLNORM_LAYOUT_LAST       /* channels last: [spatial, channels] */
} clnorm_layout;

/* Normalises each sample of a batch, a group of neighbouring channels at a time: Wu, He 2018, arXiv:1803.08494. With one
 * channel in each group it is instance norm: Ulyanov, Vedaldi, Lempitsky 2016, arXiv:1607.08022.
 *
 *   s = x + residual, or x without a residual
 *   mean = Σs / n,   rstd = 1 / √(Σ(s − mean)² / n + eps),   over the n = cols / groups · spatial elements of a group
 *   y = activation((s − mean) · rstd · weight + bias), with the weight and bias of the channel
 *
 * A tensor has rows samples of cols channels. Each channel has spatial positions, the product of all other dimensions. The
 * shape is [rows, cols, spatial...] or [rows, spatial..., cols], as layout says. A tensor's stride is from sample to
 * sample, 0 or at least cols · spatial. weight and bias are [cols]. args.mean and args.rstd are [rows, groups], as in
 * PyTorch's native_group_norm and ONNX's GroupNormalization-21, in f32 (f64 with F64 tensors). ggml_group_norm is this
 * operation with CLNORM_LAYOUT_FIRST, without weight and bias.
 *
 * An x or y of 8 bits (F8_E4M3 or F8_E5M2, not with F64) has one scale for the tensor, CLNORM_SCALING_TENSOR, or one for
 * each sample, CLNORM_SCALING_ROW, in args.x_scale and args.y_scale: [1] or [rows]. CLNORM_SCALING_GROUP is refused. x
 * stands for code · x_scale. y is quantised in F32 with the formulas of clnorm_norm_desc, by the descriptor's y.scale for
 * the tensor, or by measured scales; to measure them, x and residual are read once more.
 *
 * Arithmetic and sums are in f32, in f64 for F64 tensors; y is rounded to nearest even. residual_out is s, rounded to its
 * dtype; statistics are those of s before that rounding. NaN and infinities make the results of their group NaN; its mean
 * may be infinite. The order of every sum depends on the shape of a sample, the strides and the config alone, never on
 * rows. y may be x itself, and residual_out may be residual itself. Thread safety and errors as in plan.h. */
typedef struct clnorm_group_norm_desc {
    uint64_t size;              /* sizeof(clnorm_group_norm_desc) */
    uint64_t rows;              /* samples, 0 and up; 0 is a success that does nothing */
    uint64_t cols;              /* channels, 1 and up */
    uint64_t spatial;           /* positions of a channel, 1 and up; cols · spatial below 2^63 */
    uint64_t groups;            /* a divisor of cols; cols itself: instance norm */
    clnorm_tensor x;            /* F8_E4M3 or F8_E5M2 too */
    clnorm_tensor y;            /* dtype CLNORM_DTYPE_NONE: as x, unless that has 8 bits; F8_E4M3 or F8_E5M2 too */
    clnorm_tensor residual;     /* CLNORM_DTYPE_NONE: no residual */
    clnorm_tensor residual_out; /* CLNORM_DTYPE_NONE: not written; needs a residual */
    clnorm_tensor weight;       /* CLNORM_DTYPE_NONE: no weight (ones) */
    clnorm_tensor bias;         /* CLNORM_DTYPE_NONE: no bias */
    /* Added to the variance: 0 to the largest number of f32 (of f64 with F64 tensors). The variance has the same range: in
     * f32, squares of deviations past 3.4e38 (|s| of 1e19) make y 0 or NaN, and squares below 1.2e-38 may count as 0. */
    double eps;
    clnorm_layout layout;
    clnorm_activation activation;
    uint32_t save_mean;   /* 1: write mean */
    uint32_t save_rstd;   /* 1: write rstd */
    clnorm_config config; /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_group_norm_desc;

/* f32, channels first, one position and one group, eps 1e-5, every option off. Set rows, cols, spatial and groups. */
#define CLNORM_GROUP_NORM_DESC_INIT                                                                                        \
    {                                                                                                                      \
        sizeof(clnorm_group_norm_desc), 0, 0, 1, 1, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE,             \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 1e-5, CLNORM_LAYOUT_FIRST, CLNORM_ACTIVATION_NONE, \
            0, 0, CLNORM_CONFIG_AUTOMATIC                                                                                  \
    }
CLNORM_API void clnorm_group_norm_desc_init(clnorm_group_norm_desc *desc);

CLNORM_API clnorm_status clnorm_group_norm_validate(clnorm_context *context, const clnorm_group_norm_desc *desc,
                                                    clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_group_norm_plan_create(clnorm_context *context, const clnorm_group_norm_desc *desc,
                                                       clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_group_norm(clnorm_context *context, cl_command_queue queue,
                                           const clnorm_group_norm_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                           const cl_event *wait_list, cl_event *event);

/* The gradients, with x̂ = (x − mean) · rstd and n = x̂ · weight + bias:
 *
 *   dn = dy · activation′(n)
 *   dx = rstd · (weight · dn − Σ(weight · dn) / k − x̂ · Σ(weight · dn · x̂) / k) + dresidual_out,   Σ over the k elements
 *        of a group
 *   dweight = Σ dn · x̂,   dbias = Σ dn, over the samples and positions of a channel
 *
 * After a forward with a residual, x is its s, such as residual_out, and dx is the gradient of both x and residual.
 * dresidual_out is the gradient of residual_out. dresidual is dx again, in a dtype of its own. Sums over samples are
 * compensated (Kahan 1965); for images that run with the kernels of layer norm (config.h) they may be those of
 * clnorm_norm_backward. An infinity among the terms of any of these sums, or an overflow, may make it NaN. Every sum has
 * the same bits from run to run; dx does not depend on rows. With 0 rows dweight and dbias are 0, or stay as they are with
 * accumulate. dx may be x or dy itself, and dresidual may be dresidual_out itself. Thread safety and errors as in plan.h.
 */
typedef struct clnorm_group_norm_backward_desc {
    uint64_t size; /* sizeof(clnorm_group_norm_backward_desc) */
    uint64_t rows; /* 0 and up */
    uint64_t cols; /* as in the forward, and so are the next ones */
    uint64_t spatial;
    uint64_t groups;
    clnorm_tensor x;             /* F8_E4M3 or F8_E5M2 too, as in the forward */
    clnorm_tensor dy;            /* dtype CLNORM_DTYPE_NONE: as x, unless that has 8 bits */
    clnorm_tensor weight;        /* CLNORM_DTYPE_NONE: no weight (ones) */
    clnorm_tensor bias;          /* CLNORM_DTYPE_NONE: no bias; only activation′ depends on it */
    clnorm_tensor dx;            /* dtype CLNORM_DTYPE_NONE: as x, unless that has 8 bits */
    clnorm_tensor dweight;       /* [cols]; CLNORM_DTYPE_NONE: not computed */
    clnorm_tensor dbias;         /* [cols]; CLNORM_DTYPE_NONE: not computed */
    clnorm_tensor dresidual_out; /* CLNORM_DTYPE_NONE: nothing is added to dx */
    clnorm_tensor dresidual;     /* CLNORM_DTYPE_NONE: not written */
    double eps;                  /* as in the forward; unused with statistics_given */
    clnorm_layout layout;
    clnorm_activation activation;
    uint32_t statistics_given; /* 1: read the forward's mean and rstd, rather than compute them again */
    uint32_t accumulate;       /* 1: add dweight and dbias to the values in their buffers */
    clnorm_config config;      /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_group_norm_backward_desc;

/* f32, channels first, one position and one group, eps 1e-5, no dweight and dbias, every option off. */
#define CLNORM_GROUP_NORM_BACKWARD_DESC_INIT                                                                            \
    {                                                                                                                   \
        sizeof(clnorm_group_norm_backward_desc), 0, 0, 1, 1, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE,         \
            CLNORM_TENSOR_NONE, 1e-5, CLNORM_LAYOUT_FIRST, CLNORM_ACTIVATION_NONE, 0, 0, CLNORM_CONFIG_AUTOMATIC        \
    }
CLNORM_API void clnorm_group_norm_backward_desc_init(clnorm_group_norm_backward_desc *desc);

CLNORM_API clnorm_status clnorm_group_norm_backward_validate(clnorm_context *context,
                                                             const clnorm_group_norm_backward_desc *desc,
                                                             clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_group_norm_backward_plan_create(clnorm_context *context,
                                                                const clnorm_group_norm_backward_desc *desc,
                                                                clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_group_norm_backward(clnorm_context *context, cl_command_queue queue,
                                                    const clnorm_group_norm_backward_desc *desc, const clnorm_args *args,
                                                    cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
