/* Outer dimensions of a tensor's rows. */
#ifndef CLN_OUTER_H
#define CLN_OUTER_H

#include <stdbool.h>

#include "clnorm/clnorm.h"

/* Whether a tensor of a descriptor has outer dimensions. In a complete descriptor it has them only where its rows do not
 * have one stride. */
bool cln_outer_given(const clnorm_tensor *tensor);

/* Refuses dimensions whose product is not rows, and overlapping rows of an output. cols: elements of a row. */
clnorm_status cln_outer_check(const char *name, const clnorm_tensor *tensor, uint64_t rows, uint64_t cols, bool output);

/* Refuses outer dimensions. why: the end of the message, after "expected 0", such as ", weight has one row". */
clnorm_status cln_outer_refuse(const char *name, const clnorm_tensor *tensor, const char *why);

/* Merges contiguous dimensions, and sets stride to that of the fastest one. The merged dimensions become the last ones of
 * outer; a single one leaves outer all 0. */
void cln_outer_collapse(clnorm_tensor *tensor, uint64_t rows, uint64_t cols);

/* The bitwise or of all strides of a complete tensor. */
uint64_t cln_outer_strides(const clnorm_tensor *tensor);

#endif
