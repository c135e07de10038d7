/* The list of operations, each by the name of its record, cln_NAME. The library, the reference and the tool are made from
 * this one list. */
#ifndef CLN_LIST_H
#define CLN_LIST_H

/* ROWS: a row of an output matrix depends on the same row of the inputs alone, and the record tells the tool all it needs.
 * The reference has a function ref_NAME_row. OTHER: all others. */
/* clang-format off */
#define CLN_OPERATION_LIST(ROWS, OTHER) \
    OTHER(norm_forward)                 \
    OTHER(norm_backward)                \
    ROWS(softmax_forward)               \
    ROWS(softmax_backward)              \
    ROWS(gelu_forward)                  \
    ROWS(gelu_backward)                 \
    OTHER(quantize)                     \
    OTHER(dequantize)                   \
    ROWS(l2_norm)                       \
    ROWS(l2_norm_backward)              \
    OTHER(group_norm)                   \
    OTHER(group_norm_backward)          \
    ROWS(norm_statistics)               \
    ROWS(norm_apply)                    \
    ROWS(norm_backward_statistics)      \
    ROWS(norm_backward_apply)
/* clang-format on */

#endif
