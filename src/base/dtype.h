/* Properties of dtypes beyond the public name and size. */
#ifndef CLN_DTYPE_H
#define CLN_DTYPE_H

#include "clnorm/clnorm.h"

/* Whether it is F32, F16, BF16 or F64, which have no scales. */
bool cln_dtype_real(clnorm_dtype dtype);

/* Whether it is a dtype of 8 bits, which needs scales. */
bool cln_dtype_fp8(clnorm_dtype dtype);

/* Bytes of the arithmetic type on an x of this dtype: f64's for F64, else f32's. */
uint64_t cln_dtype_real_size(clnorm_dtype x);

/* The largest finite number in the arithmetic on an x of this dtype: f64's for F64, else f32's. */
double cln_dtype_largest(clnorm_dtype x);

/* Fails because of a field's dtype, which the operation does not support or which is no dtype at all. */
clnorm_status cln_dtype_refuse(const char *field, clnorm_dtype dtype, const char *expected);

#endif
