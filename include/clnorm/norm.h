/* Layer and RMS normalisation, forward and backward, and the operations that can be fused into them. */
#ifndef CLNORM_NORM_H
#define CLNORM_NORM_H

#include "clnorm/context.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Layer normalisation: Ba, Kiros, Hinton 2016, arXiv:1607.06450. RMS normalisation: Zhang, Sennrich 2019, arXiv:1910.07467.
 */
typedef enum clnorm_norm { CLNORM_LAYER_NORM = 1, CLNORM_RMS_NORM } clnorm_norm;

typedef enum clnorm_gate {
    CLNORM_GATE_NONE = 0,
    CLNORM_GATE_SILU,   /* act(z) = z · sigmoid(z) */
    CLNORM_GATE_SIGMOID /* act(z) = 1 / (1 + exp(−z)) */
} clnorm_gate;

/* A function of each element of the norm's result. */
typedef enum clnorm_activation {
    CLNORM_ACTIVATION_NONE = 0,
    CLNORM_ACTIVATION_GELU,      /* n · Φ(n), Φ(n) = (1 + erf(n / √2)) / 2: Hendrycks, Gimpel 2016, arXiv:1606.08415 */
    CLNORM_ACTIVATION_GELU_TANH, /* n · (1 + tanh(√(2/π) · (n + 0.044715 n³))) / 2, from the same */
    CLNORM_ACTIVATION_SILU       /* n · sigmoid(n) */
} clnorm_activation;

/* Rotary position embedding: Su et al. 2021, arXiv:2104.09864. A segment of the norm's result is usually one head. Its
 * first rope_dims columns are rotated in pairs. Pair i, with the values a and b, becomes
 *
 *   a′ = a · cos − b · sin,   b′ = b · cos + a · sin,   with cos = rope_cos[p, i] and sin = rope_sin[p, i]
 *
 * p is the position of row r: position[⌊r / rope_repeat⌋] with position_given, else ⌊r / rope_repeat⌋. Rows are numbered
 * through the whole call: with several sequences it needs position_given. With rows [batch, tokens, heads] rope_repeat is
 * the number of heads; where a row has all heads, as segments, it is 1. A position below 0, or from rope_positions on,
 * makes the rotated columns of its rows NaN, and the gradients that depend on them; nothing outside the tables is read. */
typedef enum clnorm_rope {
    CLNORM_ROPE_NONE = 0,
    CLNORM_ROPE_NEOX, /* pair i: columns i and i + rope_dims / 2, as in GPT-NeoX and Hugging Face's rotate_half. The cos and
                         sin of Hugging Face repeat each angle: rope_cos and rope_sin are their left halves */
    CLNORM_ROPE_INTERLEAVED /* pair i: columns 2 i and 2 i + 1, as in GPT-J and Llama's own code */
} clnorm_rope;

/* The arithmetic of an 8-bit y. */
typedef enum clnorm_fp8_accuracy {
    CLNORM_FP8_FUSED = 0, /* y is in F32 until it is quantised */
    /* y is rounded to BF16 before it is quantised, and so are measured scales unless scale_dtype is CLNORM_F32. Each step
     * of an RMS norm is then rounded as COAT (Xi et al. 2024, arXiv:2410.19313) rounds it: with COAT's rstd the codes are
     * COAT's, bit for bit. Quotients beyond ± max, by a scale that was rounded down, become ± max. */
    CLNORM_FP8_COMPATIBLE
} clnorm_fp8_accuracy;

/* Forward normalisation of [rows, cols], one segment of group_size neighbouring elements at a time:
 *
 *   s = residual + row_scale · dropout(x), without the parts that the descriptor does not have; x · act(z) with gate_first
 *   x̂ = (s − mean) · rstd for layer norm, s · rstd for RMS norm
 *   mean = Σs / group_size,   rstd = 1 / √(Σ(s − mean)² / group_size + eps), with mean taken as 0 for RMS norm
 *   n = x̂ · (weight_offset + weight) + bias
 *   y = activation(n), then · act(z) with a gate that is not first; or with rope: n, rotated as clnorm_rope says
 *
 * Arithmetic and sums are in f32, in f64 for an x in F64, and statistics have the precision of the arithmetic. y is rounded
 * to nearest even. A NaN makes its segment NaN, as does an infinity in layer norm; in RMS norm an infinity becomes NaN, and
 * x̂ of the segment's other elements 0. A weight or bias in F64 beside another x is rounded to f32 as it is read.
 * residual_out is s, rounded to its dtype; statistics and x̂ are those of s before that rounding.
 *
 * Quantised tensors. An x of 8 bits stands for code · x_scale, rounded to F32. A y of 8 bits is computed in F32 and
 * quantised as by clnorm_quantize:
 *
 *   y_scale = (amax + 1e-10) / max, rounded to its dtype; amax is the largest |y| of the elements that share the scale,
 *             without NaNs and infinities, and max the largest number of the dtype
 *   codes   = y / y_scale, rounded to nearest even; they saturate at ± max, for infinities too; a NaN is code 0x7f
 *
 * Where y is all zero or NaN, the scale is 1e-10 / max. A row that is NaN, by a NaN or an infinity in it or in a weight,
 * does not change the scale of other rows. One scale for the whole tensor is given by the descriptor, or measured; to
 * measure it, x, z and residual are read twice. With CLNORM_FP8_FUSED, a plain RMS norm from an x with scales of groups to
 * a y with one measured scale rounds x · (x_scale · rstd / y_scale) · weight to codes, without a quotient: a code may
 * differ by one step from that of clnorm_quantize. Its amax is made of x · weight: elements where that is past 3.4e38 do
 * not count, although their y may be smaller.
 *
 * Dropout. dropout(x) is x / (1 − p) for the elements that are kept, and 0 for the others, also where x is not finite. The
 * element of row r and column c of the call is kept where its random word of 32 bits is at least ⌊p · 2³²⌋. That is word
 * ⌊(c mod 8) / 2⌋ of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"), with
 * its halves exchanged where c is odd. The counter is (⌊c / 8⌋, r, low and high word of args.seed's offset), the key (low
 * and high word of its seed). Each element is kept with probability 1 − p to 32 bits; the two columns of a word are
 * independent to 16 bits. The mask depends on nothing else, and is only stored with save_mask.
 *
 * Aliasing, thread safety and errors as in plan.h. */
typedef struct clnorm_norm_desc {
    uint64_t size;       /* sizeof(clnorm_norm_desc) */
    uint64_t rows;       /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;       /* 1 and up */
    uint64_t group_size; /* elements of a segment, a divisor of cols; 0: cols */
    /* The weight map: weight and bias have the shape [weight_rows, cols], and row r of x takes their row
     * (r / weight_repeat) mod weight_rows. rows is a multiple of weight_rows · weight_repeat. 0 and 0: one row of weights
     * for all. Examples: rows [B, S, H] with weights by head have H and 1; rows [B, S] with weights by sample B and S. With
     * weight_rows, weight and bias may have a stride: 2 · cols where the scale and shift of each sample are the halves of
     * one tensor's rows. */
    uint64_t weight_rows;   /* needs a weight or a bias; in the backward also a dweight or a dbias will do */
    uint64_t weight_repeat; /* neighbouring rows of x that take the same row of weights; 0: 1; 0 without weight_rows */
    /* F8_E4M3 or F8_E5M2 too, with scales of any kind. A scale_group is 16, 32, 64 or 128 columns, and divides group_size
     * unless that is cols; a row's last group may be shorter. */
    clnorm_tensor x;
    /* dtype CLNORM_DTYPE_NONE: as x, or absent where there is a y_t. F8_E4M3 or F8_E5M2: quantised, not with F64. With
     * CLNORM_SCALING_TENSOR y is divided by scale, a normal F32; with a scale of 0 it is measured. CLNORM_SCALING_ROW needs
     * a group_size of cols. scale_group is as in x. */
    clnorm_tensor y;
    clnorm_tensor y_t;          /* the transposed copy [cols, rows] of an 8-bit y with one row stride: its dtype is that of
                                   y, and its scaling fields are 0. Where y is absent, y_t has y's dtype and scaling fields */
    clnorm_tensor z;            /* dtype CLNORM_DTYPE_NONE: as x, unless that has 8 bits; only read with a gate */
    clnorm_tensor weight;       /* [weight_rows, cols]; CLNORM_DTYPE_NONE: no weight (ones) */
    clnorm_tensor bias;         /* [weight_rows, cols]; CLNORM_DTYPE_NONE: no bias */
    clnorm_tensor residual;     /* CLNORM_DTYPE_NONE: no residual; not with gate_first */
    clnorm_tensor residual_out; /* CLNORM_DTYPE_NONE: s is not written; needs a residual */
    clnorm_tensor rope_cos;     /* [rope_positions, rope_dims / 2], with rope: F32, F16 or BF16; F64 with an x in F64 */
    clnorm_tensor rope_sin;     /* as rope_cos. Where both are halves of one table [rope_positions, rope_dims], the stride
                                   of each is rope_dims */
    uint64_t rope_dims;         /* columns of a segment that are rotated: even, up to group_size; 0: group_size */
    uint64_t rope_positions;    /* with rope: 1 and up; without position_given at least rows / rope_repeat, rounded up */
    uint64_t rope_repeat;       /* neighbouring rows that have one position; 0: 1 */
    /* Added to the variance: 0 to the largest number of f32 (of f64 with an x in F64). The variance has the same range. In
     * f32, a sum of squares past 3.4e38 (|s| of 1e30, or 4096 of 1e18) makes rstd and x̂ 0 in RMS norm. In layer norm it
     * makes them 0 or NaN, and so does a sum of s past 3.4e38. Squares below 1.2e-38 may count as 0: with |s| of 1e-23 and
     * an eps of 0, rstd is infinite. */
    double eps;
    double weight_offset; /* added to every weight: 1 for zero-centred weights; 0 without a weight */
    double dropout;       /* p, the probability of dropping an element, in [0, 1); 0: no dropout. Not with gate_first; rows
                             and cols up to 2^32 */
    clnorm_norm norm;
    clnorm_gate gate;
    clnorm_activation activation;
    clnorm_fp8_accuracy accuracy; /* of an 8-bit y; else 0 */
    clnorm_rope rope;             /* not with an activation, a gate that is not first, or measured scales of y */
    /* Each 0 or 1: */
    uint32_t gate_first;       /* the gate is applied to x, before the statistics */
    uint32_t save_mean;        /* write mean; layer norm only */
    uint32_t save_rstd;        /* write rstd */
    uint32_t save_mask;        /* write dropout_mask, for inspection: the backward does not read it; needs dropout */
    uint32_t row_scale;        /* every row of x has a factor (stochastic depth: 0 or 1 / keep rate); not with gate_first */
    uint32_t save_y_row_scale; /* write y_row_scale; needs one measured scale of y, and a group_size of cols */
    uint32_t position_given;   /* with rope: read the positions from position; 0: a row's position is row / rope_repeat */
    uint32_t batch_invariant;  /* a row's results do not depend on the number of rows: see config.h; not with one measured
                                  scale of y */
    uint32_t reserved;         /* 0 */
    clnorm_config config;      /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_norm_desc;

/* Layer norm of f32, eps 1e-5, every option off. Set norm, rows and cols at least. */
#define CLNORM_NORM_DESC_INIT                                                                                              \
    {                                                                                                                      \
        sizeof(clnorm_norm_desc), 0, 0, 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE,                \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE,            \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 0, 0, 0, 1e-5, 0, 0, CLNORM_LAYER_NORM, CLNORM_GATE_NONE,              \
            CLNORM_ACTIVATION_NONE, CLNORM_FP8_FUSED, CLNORM_ROPE_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, CLNORM_CONFIG_AUTOMATIC \
    }
CLNORM_API void clnorm_norm_desc_init(clnorm_norm_desc *desc);

CLNORM_API clnorm_status clnorm_norm_forward_validate(clnorm_context *context, const clnorm_norm_desc *desc,
                                                      clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_norm_forward_plan_create(clnorm_context *context, const clnorm_norm_desc *desc,
                                                         clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_forward(clnorm_context *context, cl_command_queue queue, const clnorm_norm_desc *desc,
                                             const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                             cl_event *event);

/* How dweight and dbias, the sums over rows, are made from the sums of work-groups, which have some of the rows each. */
typedef enum clnorm_reduction {
    /* Each work-group writes its sums to a slot of its own in the workspace, and a second kernel adds up the slots: the
     * same bits from run to run. For few rows there may be no slots: see accumulator=columns in config.h. */
    CLNORM_REDUCTION_PARTIAL = 1,
    /* The work-groups share a few slots, with a spin lock each. The order of the sums, and so their bits, differ from run
     * to run. The slots have at most 2 · max(slots, weight_rows) · cols sums of 4 bytes (8 with an x in F64), with cols
     * rounded up to a multiple of 4. As with CLNORM_REDUCTION_PARTIAL, the workspace also has up to 2 · groups · rows
     * statistics where these are not given, and a few sums for each segment that is split into tiles (row_split in
     * config.h). Needs a device with clnorm_device_info.device_fences, or one of NVIDIA. */
    CLNORM_REDUCTION_LOCKED
} clnorm_reduction;

/* The gradients of the forward normalisation above, with dy = ∂L/∂y and so on, where
 *
 *   n = x̂ · (weight_offset + weight) + bias
 *   y = activation(n), or activation(n) · act(z) with a gate that is not first
 *   dn = dy · activation′(n), or dy · act(z) · activation′(n) with such a gate; or dy, rotated by the negative angles
 *   wdn = (weight_offset + weight) · dn
 *   c1 = Σ(x̂ · wdn) / group_size,   c2 = Σwdn / group_size for layer norm, 0 for RMS norm
 *   ds = rstd · (wdn − x̂ · c1 − c2), plus dresidual_out, the gradient of residual_out
 *   dresidual = ds
 *   dx = row_scale · dropout(ds), without the parts that the descriptor does not have; ds · act(z) with gate_first
 *   dz = dy · activation(n) · act′(z), or ds · x · act′(z) with gate_first
 *   dweight = Σ dn · x̂,   dbias = Σ dn, over the rows that take that row of weights
 *
 * s is computed again from x and residual, with the same mask for the same seed. With s_given, x is s itself, such as the
 * forward's residual_out; dropout and row_scale then affect dx alone.
 *
 * With y_given, the backward reads y in place of x, so that a forward need only keep y and rstd: x̂ = (y − bias) / w with
 * w = weight_offset + weight. The rounding of y changes x̂ by at most u · (|x̂| + |bias / w|) + v / |w|, and the arithmetic
 * rounds, too. u is 2^-24 for a y in F32, 2^-11 for F16, 2^-8 for BF16, 2^-53 for F64; v is half a step of its denormals.
 * A column is exact enough where
 *
 *   |w| ≥ weight_bound                          so that v / |w| ≤ u
 *   |bias| ≤ bias_bound · |w|                   so that x̂ is off by at most u · (|x̂| + 1 + bias_bound)
 *   |w| · √group_size + |bias| ≤ the largest y  so that y did not overflow, |x̂| being at most √group_size
 *
 * and where neither is NaN. The device first counts the other columns, in args.fault. If there is one, every element of dx,
 * dweight and dbias is NaN. The enqueue does not wait for the count, and succeeds; clnorm_norm_backward_check waits, and
 * returns the result as a status.
 *
 * An output whose dtype is CLNORM_DTYPE_NONE is not computed, and costs nothing; at least one has a dtype. Arithmetic and
 * sums are in f32, in f64 for an x in F64. Without y_given, weight, bias, dweight and dbias may be F64 beside another x,
 * and F32 beside an x in F64. With 0 rows dweight and dbias are 0, or stay as they are with accumulate. Aliasing, thread
 * safety and errors as in plan.h. */
typedef struct clnorm_norm_backward_desc {
    uint64_t size;               /* sizeof(clnorm_norm_backward_desc) */
    uint64_t rows;               /* 0 and up */
    uint64_t cols;               /* 1 and up */
    uint64_t group_size;         /* as in the forward */
    uint64_t weight_rows;        /* as in the forward, of dweight and dbias too; up to 1 with y_given */
    uint64_t weight_repeat;      /* as in the forward */
    clnorm_tensor x;             /* F8_E4M3 or F8_E5M2 too, as in the forward */
    clnorm_tensor z;             /* dtype CLNORM_DTYPE_NONE: as x, unless that has 8 bits; only read with a gate */
    clnorm_tensor dy;            /* dtype CLNORM_DTYPE_NONE: as x, unless that has 8 bits */
    clnorm_tensor weight;        /* [weight_rows, cols]; CLNORM_DTYPE_NONE: no weight (ones) */
    clnorm_tensor bias;          /* [weight_rows, cols]; CLNORM_DTYPE_NONE: no bias */
    clnorm_tensor dx;            /* CLNORM_DTYPE_NONE, as in all outputs: not computed */
    clnorm_tensor dz;            /* needs a gate */
    clnorm_tensor dweight;       /* [weight_rows, cols]; also without a weight */
    clnorm_tensor dbias;         /* [weight_rows, cols]; also without a bias */
    clnorm_tensor y;             /* an output: the forward's y, computed again. With y_given an input, of 16 bits or more */
    clnorm_tensor residual;      /* CLNORM_DTYPE_NONE: no residual, or s_given; not with gate_first */
    clnorm_tensor dresidual_out; /* CLNORM_DTYPE_NONE: there is no dresidual_out; not with gate_first */
    clnorm_tensor dresidual;     /* CLNORM_DTYPE_NONE: not computed; needs a residual or s_given */
    clnorm_tensor rope_cos;      /* as in the forward, as are the next four */
    clnorm_tensor rope_sin;
    uint64_t rope_dims;
    uint64_t rope_positions;
    uint64_t rope_repeat;
    double eps;           /* as in the forward; unused when rstd is given */
    double weight_offset; /* as in the forward */
    double dropout;       /* as in the forward */
    double weight_bound;  /* with y_given: at least 2^-14 for a y in F16, 2^-100 in F32 and BF16 (some devices have no
                             denormals), 2^-960 in F64; 0: the least value. 0 without y_given */
    double bias_bound;    /* with y_given: at most 1 / (16 · u); 0: 4. 0 without y_given */
    clnorm_norm norm;
    clnorm_gate gate;
    clnorm_activation activation;
    clnorm_reduction reduction; /* 0: CLNORM_REDUCTION_PARTIAL */
    clnorm_rope rope; /* dx may not be dy itself. Not with an activation, a gate that is not first, y or y_given */
    uint32_t slots;   /* slots of CLNORM_REDUCTION_LOCKED, 1 and up; each row of weights has at least one */
    /* Each 0 or 1: */
    uint32_t gate_first; /* as in the forward */
    uint32_t mean_given; /* read the forward's mean, rather than compute it again; in layer norm, equal to rstd_given */
    uint32_t rstd_given; /* read the forward's rstd, rather than compute it again */
    uint32_t accumulate; /* add dweight and dbias to the values in their buffers */
    uint32_t s_given;    /* x is s; not with gate_first */
    uint32_t y_given;    /* read y in place of x; needs rstd_given and args.fault. desc.x is not used, args.x is absent, and
                            a dy of CLNORM_DTYPE_NONE has the dtype of y. Below 2^32 columns; not with mean_given,
                            s_given, a gate, activation, residual, dresidual_out, dresidual, dropout, row scale or rope */
    uint32_t row_scale;  /* as in the forward */
    uint32_t position_given;  /* as in the forward */
    uint32_t batch_invariant; /* as in the forward, of all outputs but dweight and dbias */
    uint32_t reserved;        /* 0 */
    clnorm_config config;     /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_norm_backward_desc;

/* f32 x, no output, 128 slots, eps 1e-5, every option off. */
#define CLNORM_NORM_BACKWARD_DESC_INIT                                                                               \
    {                                                                                                                \
        sizeof(clnorm_norm_backward_desc), 0, 0, 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE,      \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE,      \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 0, 0, 0, 1e-5, 0, 0, 0, 0, CLNORM_LAYER_NORM, CLNORM_GATE_NONE,  \
            CLNORM_ACTIVATION_NONE, CLNORM_REDUCTION_PARTIAL, CLNORM_ROPE_NONE, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
            CLNORM_CONFIG_AUTOMATIC                                                                                  \
    }
CLNORM_API void clnorm_norm_backward_desc_init(clnorm_norm_backward_desc *desc);

CLNORM_API clnorm_status clnorm_norm_backward_validate(clnorm_context *context, const clnorm_norm_backward_desc *desc,
                                                       clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_norm_backward_plan_create(clnorm_context *context, const clnorm_norm_backward_desc *desc,
                                                          clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_backward(clnorm_context *context, cl_command_queue queue,
                                              const clnorm_norm_backward_desc *desc, const clnorm_args *args,
                                              cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* Waits for a backward with y_given, which was enqueued in this queue with the same args, and reads args.fault. wait_list:
 * in an out-of-order queue, that enqueue's event. CLNORM_NOT_EXACT: not every column was exact enough.
 * CLNORM_INVALID_ARGUMENT, CLNORM_INVALID_BUFFER or CLNORM_INVALID_QUEUE: a wrong argument. */
CLNORM_API clnorm_status clnorm_norm_backward_check(cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                                    const cl_event *wait_list);

#ifdef __cplusplus
}
#endif

#endif
