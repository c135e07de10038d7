#include "reference/quantize.h"

#include <math.h>

#include "reference/format.h"
#include "reference/philox.h"

double ref_scale(clnorm_dtype dtype, clnorm_dtype scale_dtype, double amax) {
    const float sum = (float)amax + 1e-10F;
    const float scale = sum / (float)ref_largest(dtype);
    return ref_round(scale_dtype, (double)scale);
}

double ref_amax(double amax, double value) {
    return isfinite(value) ? fmax(amax, fabs(value)) : amax;
}

uint64_t ref_scale_rows(const struct ref_quantize *quantize) {
    return quantize->scaling == CLNORM_SCALING_TENSOR ? 1 : quantize->rows;
}

uint64_t ref_scale_cols(const struct ref_quantize *quantize) {
    if (quantize->scaling != CLNORM_SCALING_GROUP)
        return 1;
    return (quantize->cols + quantize->scale_group - 1) / quantize->scale_group;
}

/* The index of an element's scale. */
static uint64_t scale_index(const struct ref_quantize *quantize, uint64_t row, uint64_t column) {
    const struct ref_tensor codes = {
        .scaling = quantize->scaling, .scale_group = quantize->scale_group, .scale_stride = ref_scale_cols(quantize)};
    return ref_scale_index(&codes, row, column);
}

static unsigned code_of(const struct ref_quantize *quantize, uint64_t row, uint64_t column, double scale) {
    const double x = ref_at(&quantize->x, row, column);
    const float dividend = (float)(quantize->through_bf16 ? ref_round(CLNORM_BF16, x) : x);
    const double quotient = (double)(dividend / (float)scale);
    if (!quantize->stochastic)
        return ref_code(quantize->dtype, quotient);
    const uint32_t random = ref_draw(quantize->seed, row * quantize->cols + column);
    return ref_code(quantize->dtype, ref_round_stochastic(quantize->dtype, quotient, random));
}

void ref_quantize(const struct ref_quantize *quantize, double *amax, double *scale, unsigned char *codes,
                  unsigned char *codes_t) {
    const uint64_t scales = ref_scale_rows(quantize) * ref_scale_cols(quantize);
    for (uint64_t i = 0; i < scales; i++)
        amax[i] = 0;
    for (uint64_t row = 0; row < quantize->rows; row++)
        for (uint64_t column = 0; column < quantize->cols; column++) {
            double *const own = &amax[scale_index(quantize, row, column)];
            *own = ref_amax(*own, ref_at(&quantize->x, row, column));
        }
    for (uint64_t i = 0; i < scales; i++)
        scale[i] = quantize->scale != 0 ? ref_round(CLNORM_F32, quantize->scale)
                                        : ref_scale(quantize->dtype, quantize->scale_dtype, amax[i]);
    for (uint64_t row = 0; row < quantize->rows; row++)
        for (uint64_t column = 0; column < quantize->cols; column++) {
            const double own = scale[scale_index(quantize, row, column)];
            const unsigned char code = (unsigned char)code_of(quantize, row, column, own);
            codes[row * quantize->cols + column] = code;
            if (codes_t)
                codes_t[column * quantize->rows + row] = code;
        }
}
