/* layer_norm, rms_norm and group_norm with an 8-bit output. */
#ifndef OP_NORM_QUANTIZED_H
#define OP_NORM_QUANTIZED_H

#include "operation.h"

/* Reads --quantize, --quantize-group, --quantize-scale and an 8-bit --dtype into a descriptor's y, and requests y_scale
 * where the kernel writes it. */
bool norm_read_quantize(struct job *job, const struct operation_options *options, clnorm_tensor *y, struct fault *fault);

/* Refuses a --quantize that --group-size rules out. The library would refuse it too, but does not name the options. */
bool norm_check_quantize(const struct job *job, const clnorm_norm_desc *desc, struct fault *fault);

/* The largest magnitude among the elements of y that share a scale, and its error. */
struct largest {
    struct ref_value *of_scale; /* [scales]; NULL: the job has no y_scale */
};

/* Allocates memory where the job has a y_scale. */
bool largest_make(struct largest *largest, const struct job *job, struct fault *fault);
void largest_free(struct largest *largest);

void largest_add(const struct largest *largest, const struct job *job, uint64_t row, uint64_t column, struct ref_value y);

/* Compares y_scale with the reference. dtype: y's. */
void largest_judge(const struct largest *largest, const struct job *job, clnorm_dtype dtype, struct verdict *verdicts);

/* The value stored for y: y itself, or its code by the device's scale. to: the descriptor's y. */
struct ref_value norm_stored(const struct job *job, const clnorm_tensor *to, uint64_t row, uint64_t column,
                             struct ref_value y);

#endif
