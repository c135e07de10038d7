/* To 8-bit floating point and back. */
#ifndef CLNORM_QUANTIZE_H
#define CLNORM_QUANTIZE_H

#include "clnorm/context.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Quantisation of [rows, cols] to 8 bits:
 *
 *   amax  = the largest |x| of those that share a scale; NaNs and infinities do not count
 *   scale = (amax + 1e-10) / max, with max 448 for CLNORM_F8_E4M3 and 57344 for CLNORM_F8_E5M2
 *   q     = x / scale, rounded to nearest even
 *
 * What rounds to more than ± max becomes that, infinities too; a NaN becomes code 0x7f, and −0 stays −0. So where all is
 * zero the scale is 1e-10 / max and q zero, and a NaN or an infinity spoils no other element. Quotients are correctly
 * rounded, so that codes are the same everywhere; but for a given scale beyond 2^±60 only as well as the device divides. */
typedef struct clnorm_quantize_desc {
    size_t size;              /* sizeof(clnorm_quantize_desc) */
    uint64_t rows, cols;      /* rows 0 and up, cols 1 and up; without rows nothing is written */
    uint64_t group_size;      /* of CLNORM_SCALING_GROUP: 1 and up; a row's last group may be shorter. Else 0 */
    uint64_t x_stride;        /* elements from one row to the next, at least cols; 0: cols */
    uint64_t q_stride;        /* likewise */
    uint64_t q_t_stride;      /* at least rows; 0: rows */
    uint64_t seed;            /* of stochastic rounding */
    clnorm_dtype x_dtype;     /* F32, F16 or BF16 */
    clnorm_dtype q_dtype;     /* F8_E4M3 or F8_E5M2 */
    clnorm_dtype scale_dtype; /* F32; or BF16: scale is rounded to it, to nearest even, before x is divided by it */
    clnorm_scaling scaling;
    bool transpose; /* write q_t too */
    bool save_amax; /* write amax, of scale's shape, in F32 */
    /* Round up with the probability that q's distance from the code below is of a step, by a random number for each
     * (seed, element) alone: 20 bits or more of word (element mod 4) of Philox 4x32-10 with the counter element / 4 and the
     * key seed, where element is row · cols + column. */
    bool stochastic;
    double scale;         /* with CLNORM_SCALING_TENSOR: x is divided by this, and scale not written; 0: it is computed */
    clnorm_config config; /* forced knobs; all 0 as a rule. vec must divide cols and group_size */
} clnorm_quantize_desc;

/* A descriptor of nothing yet: f32 x to F8_E4M3, a scale for all of it. */
static inline clnorm_quantize_desc clnorm_quantize_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_quantize_desc desc;
    desc.size = sizeof(clnorm_quantize_desc);
    desc.rows = desc.cols = desc.group_size = 0;
    desc.x_stride = desc.q_stride = desc.q_t_stride = desc.seed = 0;
    desc.x_dtype = desc.scale_dtype = CLNORM_F32;
    desc.q_dtype = CLNORM_F8_E4M3;
    desc.scaling = CLNORM_SCALING_TENSOR;
    desc.transpose = desc.save_amax = desc.stochastic = false;
    desc.scale = 0;
    desc.config = automatic;
    return desc;
}
#define CLNORM_QUANTIZE_DESC_INIT clnorm_quantize_desc_init()

CLNORM_API clnorm_status clnorm_quantize_plan_create(clnorm_context *context, const clnorm_quantize_desc *desc,
                                                     clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_quantize(clnorm_context *context, cl_command_queue queue, const clnorm_quantize_desc *desc,
                                         const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                         cl_event *event);

/* x = q · scale, in F32, then rounded to x's dtype: to nearest even, to an infinity where F16 is too narrow. */
typedef struct clnorm_dequantize_desc {
    size_t size;         /* sizeof(clnorm_dequantize_desc) */
    uint64_t rows, cols; /* and all the others as in clnorm_quantize_desc */
    uint64_t group_size;
    uint64_t q_stride;
    uint64_t x_stride;
    clnorm_dtype q_dtype;
    clnorm_dtype scale_dtype;
    clnorm_dtype x_dtype;
    clnorm_scaling scaling;
    clnorm_config config;
} clnorm_dequantize_desc;

/* A descriptor of nothing yet: F8_E4M3 with a scale for all of it to f32. */
static inline clnorm_dequantize_desc clnorm_dequantize_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_dequantize_desc desc;
    desc.size = sizeof(clnorm_dequantize_desc);
    desc.rows = desc.cols = desc.group_size = desc.q_stride = desc.x_stride = 0;
    desc.q_dtype = CLNORM_F8_E4M3;
    desc.scale_dtype = desc.x_dtype = CLNORM_F32;
    desc.scaling = CLNORM_SCALING_TENSOR;
    desc.config = automatic;
    return desc;
}
#define CLNORM_DEQUANTIZE_DESC_INIT clnorm_dequantize_desc_init()

CLNORM_API clnorm_status clnorm_dequantize_plan_create(clnorm_context *context, const clnorm_dequantize_desc *desc,
                                                       clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_dequantize(clnorm_context *context, cl_command_queue queue,
                                           const clnorm_dequantize_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                           const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
