/* The binary floating-point formats of tensors: IEEE 754 binary64, binary32 and binary16, bfloat16, and E4M3 and E5M2 of
 * the OCP specification OFP8 (2023). */
#ifndef REFERENCE_FORMAT_H
#define REFERENCE_FORMAT_H

#include "clnorm/base.h"

/* The element at an index of an array, which may have any alignment. Hosts are little-endian. */
double ref_load(clnorm_dtype dtype, const void *elements, uint64_t index);

/* Stores ref_round of a value. */
void ref_store(clnorm_dtype dtype, void *elements, uint64_t index, double value);

/* Rounds to the nearest number of a dtype, ties to even. NaN stays NaN. From half a step beyond the largest finite number
 * on the result is an infinity; in 8 bits any larger magnitude, infinities included, becomes the largest finite number. */
double ref_round(clnorm_dtype dtype, double value);

/* Rounds to an 8-bit dtype with the highest 23 − mantissa bits of `random`. The distance from the next number towards zero
 * is a fixed-point number of as many bits; where it and the random bits add up to a step, the value is rounded away from
 * zero. */
double ref_round_stochastic(clnorm_dtype dtype, double value, uint32_t random);

/* The largest finite number. */
double ref_largest(clnorm_dtype dtype);

/* Half a step at 1: the largest relative error of rounding to nearest. */
double ref_epsilon(clnorm_dtype dtype);

/* The value of an 8-bit code; and the code of ref_round of a value, 0x7f for NaN. */
double ref_code_value(clnorm_dtype dtype, unsigned code);
unsigned ref_code(clnorm_dtype dtype, double value);

#endif
