/* layer_norm, rms_norm and group_norm with an output in 8 bits. */
#ifndef OP_NORM_QUANTIZED_H
#define OP_NORM_QUANTIZED_H

#include "operation.h"

/* Puts --quantize and its company, --dtype of 8 bits too, into a descriptor's y, and requests y_scale where there is one.
 */
bool norm_read_quantize(struct job *job, const struct operation_options *options, clnorm_tensor *y, struct fault *fault);

/* Refuses scales that do not go with --group-size, as the library would, but in the words of the options. */
bool norm_check_quantize(const struct job *job, const clnorm_norm_desc *desc, struct fault *fault);

/* The largest magnitudes of y's that share a scale, and how far they may be off: [scales] each. */
struct largest {
    struct ref_value *of;
};

/* Memory for a job's; nothing where it has no such scales. */
bool largest_make(struct largest *largest, const struct job *job, struct fault *fault);
void largest_free(struct largest *largest);

void largest_add(const struct largest *largest, const struct job *job, uint64_t row, uint64_t column, struct ref_value y);

/* Judges y_scale. dtype: y's. */
void largest_judge(const struct largest *largest, const struct job *job, clnorm_dtype dtype, struct verdict *verdicts);

/* What is stored of y: y itself, or its code by the scale that the device gave. to: the descriptor's y. */
struct ref_value norm_stored(const struct job *job, const clnorm_tensor *to, uint64_t row, uint64_t column,
                             struct ref_value y);

#endif
