/* What operations with 8-bit tensors share. */
#ifndef OP_QUANTIZE_H
#define OP_QUANTIZE_H

#include "operation.h"
#include "reference/reference.h"

/* The words of --dtype and --scale-dtype. */
bool parse_fp8(const char *word, clnorm_dtype *dtype, struct fault *fault);
bool parse_scale_dtype(const char *word, clnorm_dtype *dtype, struct fault *fault);

/* Gives an output its element, where it is wanted. */
void want(struct job *job, const char *role, clnorm_dtype dtype);

/* A tensor of 8 bits with the job's scales. */
struct ref_tensor scaled_tensor(const struct job *job, const char *role, const char *scale_role);

/* What is stored in 8 bits: the largest number instead of anything larger. */
struct ref_value code_estimate(const struct element *element, struct ref_value value);

/* The scale of numbers whose largest magnitude is amax; slack: relative. */
struct ref_value scale_estimate(const struct element *codes, double amax, double slack);

#endif
