/* Outer dimensions of a tensor's rows. */
#ifndef CLN_OUTER_H
#define CLN_OUTER_H

#include <stdbool.h>

#include "clnorm/clnorm.h"

/* Whether a descriptor gives a tensor outer dimensions; or, once it is complete, whether its rows do not have one stride.
 */
bool cln_outer_given(const clnorm_tensor *tensor);

/* Refuses dimensions that have other than so many rows, or of an output, rows that overlap. cols: elements of a row. */
clnorm_status cln_outer_check(const char *name, const clnorm_tensor *tensor, uint64_t rows, uint64_t cols, bool output);

/* Refuses any. why: what follows "expected 0" in the message, ", weight has one row". */
clnorm_status cln_outer_refuse(const char *name, const clnorm_tensor *tensor, const char *why);

/* Collapses contiguous dimensions into one, and sets stride to that of the fastest. Those that are left are the last ones
 * of outer; where one is left, outer is all 0. */
void cln_outer_collapse(clnorm_tensor *tensor, uint64_t rows, uint64_t cols);

/* All strides of a complete tensor by a bitwise or. */
uint64_t cln_outer_strides(const clnorm_tensor *tensor);

#endif
