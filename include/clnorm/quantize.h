/* Quantisation to 8-bit floating point, and dequantisation. */
#ifndef CLNORM_QUANTIZE_H
#define CLNORM_QUANTIZE_H

#include "clnorm/context.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Quantisation of [rows, cols] to 8 bits:
 *
 *   amax  = the largest |x| of the elements that share a scale, without NaNs and infinities
 *   scale = (amax + 1e-10) / max, with max 448 for CLNORM_F8_E4M3 and 57344 for CLNORM_F8_E5M2
 *   q     = x / scale, rounded to nearest even
 *
 * q saturates at ± max, for infinities too; a NaN becomes code 0x7f, and −0 stays −0. Where every x is zero the scale is
 * 1e-10 / max and q is 0. A NaN or an infinity affects no other element. Quotients are correctly rounded, so that codes are
 * the same on every device; with a given scale outside 2^-60 to 2^60 they are as exact as the device's division. Thread
 * safety and errors as in plan.h. */
typedef struct clnorm_quantize_desc {
    uint64_t size;       /* sizeof(clnorm_quantize_desc) */
    uint64_t rows, cols; /* rows 0 and up, cols 1 and up; with 0 rows nothing is written */
    clnorm_tensor x;     /* F32, F16 or BF16 */
    /* F8_E4M3 or F8_E5M2. scale_group: 1 and up; a row's last group may be shorter. A scale_dtype of BF16: the scale is
     * rounded to BF16, to nearest even, before x is divided by it. scale: x is divided by it, and args.scale is absent. */
    clnorm_tensor q;
    clnorm_tensor q_t; /* the transposed copy [cols, rows], with q's dtype and scales; CLNORM_DTYPE_NONE: no copy */
    uint64_t seed;     /* of stochastic rounding in calls without args.seed, with an offset of 0; else 0 */
    /* 1: stochastic rounding, up with a probability of (quotient − code below) / step. The random number depends on the
     * call's seed, its offset and the element alone: 20 bits or more of word (element mod 4) of Philox 4x32-10 with the
     * counter (⌊element / 4⌋, offset), each in a low and a high word, and the key seed, where element is row · cols +
     * column. 0: rounding to nearest even. */
    uint32_t stochastic;
    uint32_t save_amax; /* 1: write amax, of scale's shape, in F32 */
    /* Forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule. vec must divide scale_group. With stochastic rounding it must divide
     * cols too, unless one scale is for contiguous x and q without q_t. */
    clnorm_config config;
} clnorm_quantize_desc;

/* f32 x to F8_E4M3, with one f32 scale for the tensor. */
#define CLNORM_TENSOR_F8 \
    { CLNORM_F8_E4M3, CLNORM_SCALING_TENSOR, 0, CLNORM_F32, 0, 0, CLNORM_OUTER_NONE }
#define CLNORM_QUANTIZE_DESC_INIT                                                                             \
    {                                                                                                         \
        sizeof(clnorm_quantize_desc), 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_F8, CLNORM_TENSOR_NONE, 0, 0, 0, \
            CLNORM_CONFIG_AUTOMATIC                                                                           \
    }
CLNORM_API void clnorm_quantize_desc_init(clnorm_quantize_desc *desc);

CLNORM_API clnorm_status clnorm_quantize_validate(clnorm_context *context, const clnorm_quantize_desc *desc,
                                                  clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_quantize_plan_create(clnorm_context *context, const clnorm_quantize_desc *desc,
                                                     clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_quantize(clnorm_context *context, cl_command_queue queue, const clnorm_quantize_desc *desc,
                                         const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                         cl_event *event);

/* x = q · scale in F32, then rounded to x's dtype, to nearest even. What is too large for F16 becomes an infinity. Reads
 * args.q and args.scale, writes args.x. */
typedef struct clnorm_dequantize_desc {
    uint64_t size;        /* sizeof(clnorm_dequantize_desc) */
    uint64_t rows, cols;  /* rows 0 and up, cols 1 and up; with 0 rows nothing is written */
    clnorm_tensor q;      /* F8_E4M3 or F8_E5M2, with scales as in clnorm_quantize_desc; its member scale is 0 */
    clnorm_tensor x;      /* F32, F16 or BF16 */
    clnorm_config config; /* as in clnorm_quantize_desc */
} clnorm_dequantize_desc;

/* F8_E4M3 with one f32 scale for the tensor, to f32. */
#define CLNORM_DEQUANTIZE_DESC_INIT \
    { sizeof(clnorm_dequantize_desc), 0, 0, CLNORM_TENSOR_F8, CLNORM_TENSOR_F32, CLNORM_CONFIG_AUTOMATIC }
CLNORM_API void clnorm_dequantize_desc_init(clnorm_dequantize_desc *desc);

CLNORM_API clnorm_status clnorm_dequantize_validate(clnorm_context *context, const clnorm_dequantize_desc *desc,
                                                    clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_dequantize_plan_create(clnorm_context *context, const clnorm_dequantize_desc *desc,
                                                       clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_dequantize(clnorm_context *context, cl_command_queue queue,
                                           const clnorm_dequantize_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                           const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
