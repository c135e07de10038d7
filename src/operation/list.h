/* The list of operations, each by the name of its record, cln_NAME. The library, the reference and the tool take theirs
 * from here. */
#ifndef CLN_LIST_H
#define CLN_LIST_H

/* ROWS: a row of the outputs follows from that row of the inputs, and the record says all that a caller has to know. The
 * reference has a function ref_NAME_row, and the tool needs nothing else. OTHER: all others. */
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
