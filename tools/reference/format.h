/* The binary floating-point formats of tensors: IEEE 754 binary64, binary32 and binary16, bfloat16, and E4M3 and E5M2 of
 * the OCP specification OFP8 (2023). */
#ifndef REFERENCE_FORMAT_H
#define REFERENCE_FORMAT_H

#include "clnorm/base.h"

/* The element at an index of an array, which may have any alignment. Hosts are little-endian. */
double ref_load(clnorm_dtype dtype, const void *elements, uint64_t index);

/* Stores ref_round of a value. */
void ref_store(clnorm_dtype dtype, void *elements, uint64_t index, double value);

/* The nearest number of a dtype, of two the even one. NaN stays NaN. Half a step past the largest finite number and beyond
 * it is an infinity; with 8 bits all that is larger, infinities too, becomes the largest finite number. */
double ref_round(clnorm_dtype dtype, double value);

/* A number of an 8-bit dtype. It is rounded away from zero when random, of which the highest 23 − mantissa bits count, and
 * the distance from the next number towards zero, as a fixed-point number of as many bits, add up to a step. */
double ref_round_stochastic(clnorm_dtype dtype, double value, uint32_t random);

/* The largest finite number. */
double ref_largest(clnorm_dtype dtype);

/* Half a step at 1: the largest relative error of rounding to nearest. */
double ref_epsilon(clnorm_dtype dtype);

/* What an 8-bit code stands for, and the code of ref_round of a value; 0x7f for NaN. */
double ref_code_value(clnorm_dtype dtype, unsigned code);
unsigned ref_code(clnorm_dtype dtype, double value);

#endif
