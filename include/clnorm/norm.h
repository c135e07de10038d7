/* Layer and RMS normalisation, forward and backward, with what is fused into them. */
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

/* Forward normalisation of [rows, cols], one segment of group_size neighbouring elements at a time:
 *
 *   s = residual + row_scale · dropout(x), of which what is not asked for is left out; or x · act(z) with gate_first
 *   x̂ = (s − mean) · rstd for layer norm, s · rstd for RMS norm
 *   mean = Σs / group_size,   rstd = 1 / √(Σ(s − mean)² / group_size + eps), with mean taken as 0 for RMS norm
 *   n = x̂ · (weight_offset + weight) + bias
 *   y = activation(n), then · act(z) without gate_first
 *
 * Arithmetic and sums are in f32, in f64 for F64 tensors. y is rounded to nearest even; NaN and infinities pass through.
 * residual_out is s, rounded to its dtype; statistics and x̂ are those of s before that rounding.
 *
 * With a y_dtype of 8 bits y is quantised before it is written, to what clnorm_quantize would make of it in F32:
 *
 *   y_scale = (amax + 1e-10) / max, amax being the largest |y| of a row, or of y_group_size columns of it, and max that of
 *             the dtype; NaNs and infinities do not count
 *   codes   = y / y_scale, rounded to nearest even; what is more than ± max becomes that, infinities too, a NaN code 0x7f
 *
 * So where y is all zero, or NaN, the scale is 1e-10 / max; and the NaNs that the norm makes of a row with a NaN or an
 * infinity, or of a weight that is one, leave the scale to what else shares it. With CLNORM_SCALING_TENSOR the scale is the
 * descriptor's: one that depends on all rows would need all of y first, which clnorm_quantize goes through.
 *
 * dropout(x) is x / (1 − p) for the elements that are kept, and 0 for the others, whatever x is there. The element of row r
 * and column c of the call is kept where a word is at least ⌊p · 2³²⌋: word (c mod 8) / 2, rounded down, of Philox 4x32-10
 * (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") with the counter (c / 8, r, low and high
 * word of args.seed's offset) and the key (low and high word of its seed); where c is odd, with the halves of the word
 * exchanged. So each element is kept with probability 1 − p to 32 bits, two columns of a word independently of each other
 * to 16. The mask depends on nothing else, and is never stored. */
typedef struct clnorm_norm_desc {
    size_t size;         /* sizeof(clnorm_norm_desc) */
    uint64_t rows;       /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;       /* 1 and up */
    uint64_t group_size; /* elements of a segment, a divisor of cols; 0: cols */
    uint64_t x_stride;   /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride;   /* likewise; at least cols, so that rows of y do not overlap */
    uint64_t z_stride;   /* likewise */
    uint64_t residual_stride;
    uint64_t residual_out_stride;
    uint64_t y_group_size; /* of CLNORM_SCALING_GROUP: 16, 32, 64 or 128; a row's last group may be shorter. Else 0 */
    clnorm_norm norm;
    clnorm_dtype x_dtype;
    clnorm_dtype y_dtype;            /* CLNORM_DTYPE_NONE: as x; F8_E4M3 or F8_E5M2: quantised, not with F64 */
    clnorm_dtype z_dtype;            /* CLNORM_DTYPE_NONE: as x; read only when there is a gate */
    clnorm_dtype weight_dtype;       /* CLNORM_DTYPE_NONE: no weight, which stands for ones */
    clnorm_dtype bias_dtype;         /* CLNORM_DTYPE_NONE: no bias */
    clnorm_dtype residual_dtype;     /* CLNORM_DTYPE_NONE: no residual; not with gate_first */
    clnorm_dtype residual_out_dtype; /* CLNORM_DTYPE_NONE: s is not written; needs a residual */
    clnorm_gate gate;
    clnorm_activation activation;
    /* Of a quantised y, else 0. A row's scale needs a group_size of cols, a group's one that y_group_size divides, or cols.
     */
    clnorm_scaling y_scaling;
    bool gate_first;      /* the gate is applied to x, before the statistics */
    bool save_mean;       /* write mean; layer norm only */
    bool save_rstd;       /* write rstd */
    bool save_mask;       /* write dropout_mask, to look at; needs dropout */
    bool row_scale;       /* every row of x has a factor (stochastic depth: 0 or 1 / keep rate); not with gate_first */
    double eps;           /* added to the variance, 0 and up, finite */
    double weight_offset; /* added to every weight: 1 for zero-centred weights; needs a weight unless 0 */
    double dropout;       /* p, the probability of 0, in [0, 1); 0: none. Not with gate_first; rows and cols up to 2^32 */
    double y_scale;       /* with CLNORM_SCALING_TENSOR: y is divided by this, a normal F32; else 0 */
    clnorm_config config; /* forced knobs; all 0 as a rule */
} clnorm_norm_desc;

/* A descriptor of nothing yet: f32 x, eps 1e-5, every option off. Set norm, rows and cols at least. */
static inline clnorm_norm_desc clnorm_norm_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_norm_desc desc;
    desc.size = sizeof(clnorm_norm_desc);
    desc.norm = CLNORM_LAYER_NORM;
    desc.rows = 0;
    desc.cols = 0;
    desc.group_size = 0;
    desc.x_stride = desc.y_stride = desc.z_stride = desc.residual_stride = desc.residual_out_stride = 0;
    desc.y_group_size = 0;
    desc.x_dtype = CLNORM_F32;
    desc.y_dtype = desc.z_dtype = desc.weight_dtype = desc.bias_dtype = CLNORM_DTYPE_NONE;
    desc.residual_dtype = desc.residual_out_dtype = CLNORM_DTYPE_NONE;
    desc.gate = CLNORM_GATE_NONE;
    desc.activation = CLNORM_ACTIVATION_NONE;
    desc.y_scaling = (clnorm_scaling)0;
    desc.gate_first = desc.save_mean = desc.save_rstd = desc.save_mask = desc.row_scale = false;
    desc.eps = 1e-5;
    desc.weight_offset = desc.dropout = desc.y_scale = 0;
    desc.config = automatic;
    return desc;
}
#define CLNORM_NORM_DESC_INIT clnorm_norm_desc_init()

CLNORM_API clnorm_status clnorm_norm_forward_plan_create(clnorm_context *context, const clnorm_norm_desc *desc,
                                                         clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_forward(clnorm_context *context, cl_command_queue queue, const clnorm_norm_desc *desc,
                                             const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                             cl_event *event);

/* How the sums over rows, dweight and dbias, come together from the work-groups that each see some of the rows. */
typedef enum clnorm_reduction {
    /* The workspace has 2 · slots · cols sums of 4 bytes (8 with F64) at most, and locks; besides, 2 · groups · rows
     * statistics where these are not given, and with segments in tiles a few sums for each of them (see clnorm_sums). Few
     * rows may need no sums there: see CLNORM_GATHER_COLUMNS. */
    CLNORM_REDUCTION_PARTIAL = 1, /* each work-group writes a slot of its own: the same bits from run to run */
    CLNORM_REDUCTION_LOCKED /* a few slots, a spin lock each: bounded workspace, sums in an order that differs between runs
                             */
} clnorm_reduction;

/* The gradients of the forward normalisation above, with dy = ∂L/∂y and so on, where
 *
 *   n = x̂ · (weight_offset + weight) + bias
 *   y = activation(n), or activation(n) · act(z) with a gate that is not first
 *   dn = dy · activation′(n), or dy · act(z) · activation′(n) with such a gate
 *   wdn = (weight_offset + weight) · dn
 *   c1 = Σ(x̂ · wdn) / group_size,   c2 = Σwdn / group_size for layer norm, 0 for RMS norm
 *   ds = rstd · (wdn − x̂ · c1 − c2), then + dresidual_out, what has come to s by way of residual_out
 *   dresidual = ds
 *   dx = row_scale · dropout(ds), of which what is not asked for is left out; or ds · act(z) with gate_first
 *   dz = dy · activation(n) · act′(z), or ds · x · act′(z) with gate_first
 *   dweight = Σ over rows of dn · x̂,   dbias = Σ over rows of dn
 *
 * s is made of x and residual as in the forward, with the same mask for the same seed; or with s_given, x is s itself, such
 * as residual_out has it, and dropout and row_scale matter to dx alone.
 *
 * With y_given there is no x, and a forward has to keep y and rstd alone: x̂ = (y − bias) / w with w = weight_offset +
 * weight. It is off by the rounding of y, at most u · (|x̂| + |bias / w|) + v / |w|, and by as many roundings of the
 * arithmetic. u is 2^-24 for a y in F32, 2^-11 for F16, 2^-8 for BF16, 2^-53 for F64; v is half a step of its denormals.
 * A column is exact enough where
 *
 *   |w| ≥ weight_bound                          so that v / |w| ≤ u
 *   |bias| ≤ bias_bound · |w|                   so that x̂ is off by at most u · (|x̂| + 1 + bias_bound)
 *   |w| · √group_size + |bias| ≤ the largest y  which no |x̂|, at most √group_size, makes overflow
 *
 * and one with a NaN is not. The device counts the columns that are not, in args.fault, before anything else. Where there
 * is one, every element of dx, dweight and dbias is NaN: there are no numbers that look right and are not. The enqueue does
 * not wait for that and succeeds; clnorm_norm_backward_check waits, and gives it as a status.
 *
 * An output whose dtype is CLNORM_DTYPE_NONE is not asked for, and costs nothing. Arithmetic and sums are in f32, in f64
 * for F64 tensors. With 0 rows dweight and dbias are 0, or stay as they are with accumulate. */
typedef struct clnorm_norm_backward_desc {
    size_t size;         /* sizeof(clnorm_norm_backward_desc) */
    uint64_t rows;       /* 0 and up */
    uint64_t cols;       /* 1 and up */
    uint64_t group_size; /* as in the forward */
    uint64_t x_stride;   /* elements from one row to the next, at least cols; 0: cols */
    uint64_t z_stride;   /* likewise, as are all of these */
    uint64_t dy_stride;
    uint64_t x_group_size; /* of an 8-bit x: columns that an x_scale is for: 16, 32, 64 or 128, a divisor of group_size.
                              Else 0 */
    uint64_t dx_stride;
    uint64_t dz_stride;
    uint64_t y_stride;
    uint64_t residual_stride;
    uint64_t dresidual_out_stride;
    uint64_t dresidual_stride;
    clnorm_norm norm;
    clnorm_dtype x_dtype;        /* F8_E4M3 or F8_E5M2 too: what is normalised is x · x_scale then, with rstd_given, and
                                    without gate, activation, residual, dropout and row scale */
    clnorm_dtype x_scale_dtype;  /* of an 8-bit x: F32 or BF16. Else CLNORM_DTYPE_NONE */
    clnorm_dtype z_dtype;        /* CLNORM_DTYPE_NONE: as x; read only when there is a gate */
    clnorm_dtype dy_dtype;       /* CLNORM_DTYPE_NONE: as x, unless that has 8 bits */
    clnorm_dtype weight_dtype;   /* CLNORM_DTYPE_NONE: no weight, which stands for ones */
    clnorm_dtype bias_dtype;     /* CLNORM_DTYPE_NONE: no bias; only dz and y depend on it */
    clnorm_dtype dx_dtype;       /* CLNORM_DTYPE_NONE, as in all of these: not asked for */
    clnorm_dtype dz_dtype;       /* needs a gate */
    clnorm_dtype dweight_dtype;  /* F32, or any other; also without a weight */
    clnorm_dtype dbias_dtype;    /* likewise; also without a bias */
    clnorm_dtype y_dtype;        /* y is computed again, for what the forward did not keep; with y_given: of y, not
                                    CLNORM_DTYPE_NONE, and what is said of x's dtype and stride is said of y's */
    clnorm_dtype residual_dtype; /* CLNORM_DTYPE_NONE: no residual, or s_given; not with gate_first */
    clnorm_dtype dresidual_out_dtype; /* CLNORM_DTYPE_NONE: there is no dresidual_out; not with gate_first */
    clnorm_dtype dresidual_dtype;     /* CLNORM_DTYPE_NONE: not asked for; needs a residual or s_given */
    clnorm_gate gate;
    clnorm_activation activation;
    clnorm_reduction reduction; /* 0: CLNORM_REDUCTION_PARTIAL */
    uint32_t slots;             /* 1 and up: of CLNORM_REDUCTION_LOCKED */
    bool gate_first;
    bool mean_given;      /* mean is read, as the forward saved it, and not computed again; layer norm: both or neither */
    bool rstd_given;      /* likewise rstd */
    bool accumulate;      /* dweight and dbias are added to what is there */
    bool s_given;         /* x is s; not with gate_first */
    bool y_given;         /* y is read, and no x, to which x_dtype and x_stride matter; needs rstd_given, with no mean, and
                             args.fault. Below 2^32 columns; without gate, activation, residual, dropout and row scale */
    bool row_scale;       /* as in the forward */
    double eps;           /* as in the forward; unused when rstd is given */
    double weight_offset; /* as in the forward */
    double dropout;       /* as in the forward */
    double weight_bound;  /* with y_given: 0 for the least, 2^-14 for a y in F16, 2^-100 in F32 and BF16 (some devices have
                             no denormals), 2^-960 in F64; or more than that */
    double bias_bound;    /* with y_given: 0 for 4; at most 1 / (16 · u) */
    clnorm_config config; /* forced knobs; all 0 as a rule */
} clnorm_norm_backward_desc;

/* A descriptor of nothing yet: f32 x, no output, 128 slots, eps 1e-5, every option off. */
static inline clnorm_norm_backward_desc clnorm_norm_backward_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_norm_backward_desc desc;
    desc.size = sizeof(clnorm_norm_backward_desc);
    desc.norm = CLNORM_LAYER_NORM;
    desc.rows = desc.cols = desc.group_size = 0;
    desc.x_stride = desc.z_stride = desc.dy_stride = desc.dx_stride = desc.dz_stride = desc.y_stride = 0;
    desc.residual_stride = desc.dresidual_out_stride = desc.dresidual_stride = 0;
    desc.x_group_size = 0;
    desc.x_dtype = CLNORM_F32;
    desc.x_scale_dtype = CLNORM_DTYPE_NONE;
    desc.z_dtype = desc.dy_dtype = desc.weight_dtype = desc.bias_dtype = CLNORM_DTYPE_NONE;
    desc.dx_dtype = desc.dz_dtype = desc.dweight_dtype = desc.dbias_dtype = desc.y_dtype = CLNORM_DTYPE_NONE;
    desc.residual_dtype = desc.dresidual_out_dtype = desc.dresidual_dtype = CLNORM_DTYPE_NONE;
    desc.gate = CLNORM_GATE_NONE;
    desc.activation = CLNORM_ACTIVATION_NONE;
    desc.reduction = CLNORM_REDUCTION_PARTIAL;
    desc.slots = 128;
    desc.gate_first = desc.mean_given = desc.rstd_given = desc.accumulate = desc.s_given = desc.row_scale = false;
    desc.y_given = false;
    desc.eps = 1e-5;
    desc.weight_offset = desc.dropout = desc.weight_bound = desc.bias_bound = 0;
    desc.config = automatic;
    return desc;
}
#define CLNORM_NORM_BACKWARD_DESC_INIT clnorm_norm_backward_desc_init()

CLNORM_API clnorm_status clnorm_norm_backward_plan_create(clnorm_context *context, const clnorm_norm_backward_desc *desc,
                                                          clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_backward(clnorm_context *context, cl_command_queue queue,
                                              const clnorm_norm_backward_desc *desc, const clnorm_args *args,
                                              cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* Reads args.fault of a backward with y_given, which has been enqueued in this queue with the same args, and waits for it.
 * wait_list: in an out-of-order queue, that enqueue's event. CLNORM_NOT_EXACT: not every column was exact enough. */
CLNORM_API clnorm_status clnorm_norm_backward_check(cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                                    const cl_event *wait_list);

#ifdef __cplusplus
}
#endif

#endif
