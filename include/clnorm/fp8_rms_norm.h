/* RMS normalisation of 8-bit tensors. Its backward is that of the norms, with an 8-bit x. */
#ifndef CLNORM_FP8_RMS_NORM_H
#define CLNORM_FP8_RMS_NORM_H

#include "clnorm/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clnorm_fp8_accuracy {
    CLNORM_FP8_FUSED = 1, /* y is in F32 until it is quantised */
    /* y is rounded to BF16 before that, and the scales too unless scale_dtype says otherwise: every step is rounded as
     * COAT (Xi et al. 2024, arXiv:2410.19313) rounds it, and given its rstd the codes are COAT's, bit for bit. What a scale
     * that was rounded down makes too large becomes ± max. */
    CLNORM_FP8_COMPATIBLE
} clnorm_fp8_accuracy;

/* RMS normalisation of 8-bit [rows, cols] with a scale for each group_size columns, to 8 bits with a scale for all of it:
 *
 *   v         = x · x_scale
 *   rstd      = 1 / √(Σv² / cols + eps)
 *   n         = v · rstd · weight
 *   row_scale = (max |n| over the row + 1e-10) / max, with max of y_dtype as for clnorm_quantize_desc
 *   y_scale   = max row_scale over all rows
 *   y         = n / y_scale, rounded and saturated as for clnorm_quantize_desc
 *
 * A row with a NaN has a NaN for rstd, and 0x7f everywhere; an infinity, or squares beyond F32, have an rstd of 0, and
 * every code of their row that is no NaN is 0. Neither counts in the scales, so that other rows do not suffer. Rows of
 * zeros give zeros. x is read twice, and n never written: it takes 4 bytes an element with y and y_t both. */
typedef struct clnorm_fp8_rms_norm_desc {
    size_t size;                /* sizeof(clnorm_fp8_rms_norm_desc) */
    uint64_t rows, cols;        /* rows 0 and up, cols 1 and up; without rows nothing is written */
    uint64_t group_size;        /* 16, 32, 64 or 128, a divisor of cols */
    uint64_t x_stride;          /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride;          /* likewise */
    uint64_t y_t_stride;        /* at least rows; 0: rows */
    clnorm_dtype x_dtype;       /* F8_E4M3 or F8_E5M2 */
    clnorm_dtype x_scale_dtype; /* F32 or BF16 */
    clnorm_dtype weight_dtype;  /* F32, F16 or BF16; CLNORM_DTYPE_NONE: no weight, which stands for ones */
    clnorm_dtype y_dtype;       /* F8_E4M3 or F8_E5M2; CLNORM_DTYPE_NONE: as x */
    clnorm_dtype scale_dtype;   /* of row_scale and y_scale, F32 or BF16; CLNORM_DTYPE_NONE: F32, BF16 when compatible */
    clnorm_fp8_accuracy accuracy;
    bool write_y; /* y or y_t or both; rstd [rows] in F32 and y_scale always */
    bool write_y_t;
    bool save_row_scale;  /* write row_scale */
    double eps;           /* added to the mean of squares, 0 and up, finite */
    clnorm_config config; /* forced knobs; all 0 as a rule */
} clnorm_fp8_rms_norm_desc;

/* A descriptor of nothing yet: F8_E4M3 in groups of 16 with f32 scales, f32 weight, y and y_t, eps 1e-5. */
static inline clnorm_fp8_rms_norm_desc clnorm_fp8_rms_norm_desc_init(void) {
    const clnorm_config automatic = clnorm_config_automatic();
    clnorm_fp8_rms_norm_desc desc;
    desc.size = sizeof(clnorm_fp8_rms_norm_desc);
    desc.rows = desc.cols = 0;
    desc.group_size = 16;
    desc.x_stride = desc.y_stride = desc.y_t_stride = 0;
    desc.x_dtype = CLNORM_F8_E4M3;
    desc.x_scale_dtype = desc.weight_dtype = CLNORM_F32;
    desc.y_dtype = desc.scale_dtype = CLNORM_DTYPE_NONE;
    desc.accuracy = CLNORM_FP8_FUSED;
    desc.write_y = desc.write_y_t = true;
    desc.save_row_scale = false;
    desc.eps = 1e-5;
    desc.config = automatic;
    return desc;
}
#define CLNORM_FP8_RMS_NORM_DESC_INIT clnorm_fp8_rms_norm_desc_init()

CLNORM_API clnorm_status clnorm_fp8_rms_norm_plan_create(clnorm_context *context, const clnorm_fp8_rms_norm_desc *desc,
                                                         clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_fp8_rms_norm(clnorm_context *context, cl_command_queue queue,
                                             const clnorm_fp8_rms_norm_desc *desc, const clnorm_args *args,
                                             cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
