/* Operations whose output's row follows from that row of the inputs: one function of a signature for each, by the list of
 * the library's operations. */
#ifndef REFERENCE_ROW_H
#define REFERENCE_ROW_H

#include <stdbool.h>

#include "operation/list.h"
#include "reference/arithmetic.h"

enum { REF_ROW_TENSORS = 8 };

/* Inputs and outputs are in the order in which the operation's record has them, tensors before statistics; an absent one is
 * NULL. Tensors have cols numbers: of an output of shape [cols] the row's term. Statistics have their numbers of each
 * segment. */
struct ref_row {
    const void *desc; /* the operation's descriptor */
    struct ref_arithmetic arithmetic;
    uint64_t cols, group_size;
    const double *input[REF_ROW_TENSORS];
    struct ref_value *output[REF_ROW_TENSORS];
};

/* false: there was no memory for it. */
typedef bool (*ref_row_fn)(const struct ref_row *row);

#define REF_DECLARE(name) bool ref_##name##_row(const struct ref_row *row);
#define REF_NONE(name)
CLN_OPERATION_LIST(REF_DECLARE, REF_NONE)
#undef REF_DECLARE
#undef REF_NONE

#endif
