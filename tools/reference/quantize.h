/* Quantisation to 8 bits: a scale for a tensor, a row, or a group of columns,
 *
 *   scale = (amax + 1e-10) / largest     amax: the largest finite magnitude among x; largest: that of the dtype
 *   code  = x / scale, rounded
 *
 * each operation rounded to float, as clnorm_quantize defines it. COAT (Xi et al. 2024, arXiv:2410.19313) rounds x to
 * bfloat16 before it is divided. */
#ifndef REFERENCE_QUANTIZE_H
#define REFERENCE_QUANTIZE_H

#include "clnorm/clnorm.h"
#include "reference/tensor.h"

/* (amax + 1e-10) / largest, rounded to the scale's dtype. */
double ref_scale(clnorm_dtype dtype, clnorm_dtype scale_dtype, double amax);

/* The larger of amax and |value|; a value that is not finite does not count. */
double ref_amax(double amax, double value);

/* A quantisation: its input, and the form of its scales and codes. */
struct ref_quantize {
    struct ref_tensor x;
    uint64_t rows, cols;
    clnorm_scaling scaling;
    uint64_t scale_group; /* columns, with CLNORM_SCALING_GROUP */
    clnorm_dtype dtype, scale_dtype;
    double scale;      /* 0: measured */
    bool through_bf16; /* x is rounded to bfloat16 before it is divided */
    bool stochastic;
    clnorm_seed seed;
};

/* The number of rows of scales, and of scales in a row. */
uint64_t ref_scale_rows(const struct ref_quantize *quantize);
uint64_t ref_scale_cols(const struct ref_quantize *quantize);

/* Writes amax and scale, [scale rows, scale cols] each, and the codes, [rows, cols], without gaps. codes_t: the transposed
 * codes, [cols, rows]; NULL: not written. */
void ref_quantize(const struct ref_quantize *quantize, double *amax, double *scale, unsigned char *codes,
                  unsigned char *codes_t);

#endif
