/* What operations with 8-bit tensors share. */
#ifndef OP_QUANTIZE_H
#define OP_QUANTIZE_H

#include "operation.h"

/* The words of --dtype and --scale-dtype. */
bool parse_fp8(const char *word, clnorm_dtype *dtype, struct fault *fault);
bool parse_scale_dtype(const char *word, clnorm_dtype *dtype, struct fault *fault);

/* Gives an output its element, where it is wanted. */
void want(struct job *job, const char *role, clnorm_dtype dtype);

/* What is stored in 8 bits: the largest number instead of anything larger. */
struct estimate code_estimate(const struct element *element, struct estimate value);

/* The scale of numbers whose largest magnitude is amax; slack: relative. */
struct estimate scale_estimate(const struct element *codes, double amax, double slack);

#endif
