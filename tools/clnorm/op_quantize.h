/* Functions that operations on 8-bit tensors share. */
#ifndef OP_QUANTIZE_H
#define OP_QUANTIZE_H

#include "operation.h"
#include "reference/reference.h"

/* Read the words of --dtype of an 8-bit tensor, and of --scale-dtype. */
bool parse_fp8(const char *word, clnorm_dtype *dtype, struct fault *fault);
bool parse_scale_dtype(const char *word, clnorm_dtype *dtype, struct fault *fault);

/* An 8-bit tensor with the job's scales. */
struct ref_tensor scaled_tensor(const struct job *job, const char *role, const char *scale_role);

/* The value that 8 bits store: larger magnitudes become the largest number. */
struct ref_value code_estimate(const struct element *element, struct ref_value value);

/* The scale of numbers whose largest magnitude is amax. slack: its relative error. */
struct ref_value scale_estimate(const struct element *codes, double amax, double slack);

/* Puts the scale and the largest magnitude of a whole tensor without rows into the outputs. The library writes neither. */
void put_scale_of_no_rows(struct job *job);

#endif
