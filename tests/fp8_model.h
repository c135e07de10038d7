/* The 8-bit formats of the OCP specification OFP8, read from its tables: what a code means, and which code is nearest. */
#ifndef TEST_FP8_MODEL_H
#define TEST_FP8_MODEL_H

#include "clnorm/clnorm.h"

/* What a code stands for. */
double fp8_value(clnorm_dtype dtype, unsigned code);

/* The largest finite number. */
double fp8_largest(clnorm_dtype dtype);

/* The code of the nearest number, of the even one of two; ± the largest number for what is larger, 0x7f for NaN. */
unsigned fp8_code(clnorm_dtype dtype, double value);

/* Rounded away from zero when noise, of 23 less the mantissa's bits, and the fixed-point distance from the next code
 * towards zero add up to a step. */
unsigned fp8_code_stochastic(clnorm_dtype dtype, double value, uint32_t random);

/* What quantisation is made of, each operation rounded to float: (amax + 1e-10) / the largest, rounded to a scale's dtype.
 */
float fp8_scale(clnorm_dtype dtype, clnorm_dtype scale_dtype, float amax);

#endif
