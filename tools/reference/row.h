/* Row-wise operations: a row of an output depends on the same row of the inputs only. Each one of the library's list has a
 * function of the same signature. */
#ifndef REFERENCE_ROW_H
#define REFERENCE_ROW_H

#include <stdbool.h>

#include "operation/list.h"
#include "reference/arithmetic.h"

enum { REF_ROW_TENSORS = 8 };

/* A row of each tensor. Inputs and outputs have the order of the operation's record, tensors before statistics; NULL:
 * absent. A tensor has cols numbers; for an output of shape [cols] these are the row's terms. Statistics have the numbers
 * of each segment. */
struct ref_row {
    const void *desc; /* the operation's descriptor */
    struct ref_arithmetic arithmetic;
    uint64_t cols, group_size;
    const double *input[REF_ROW_TENSORS];
    struct ref_value *output[REF_ROW_TENSORS];
};

/* false: out of memory. */
typedef bool (*ref_row_fn)(const struct ref_row *row);

#define REF_DECLARE(name) bool ref_##name##_row(const struct ref_row *row);
#define REF_NONE(name)
CLN_OPERATION_LIST(REF_DECLARE, REF_NONE)
#undef REF_DECLARE
#undef REF_NONE

#endif
