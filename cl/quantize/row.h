/* A row of x and of its codes, in vectors. The vector at column c, a multiple of VEC, has the elements from c - lead on,
 * less those outside of the row. x and q have the same leads. The including file has a struct call with x_stride, cols and
 * elements. */
#ifndef ROW_H
#define ROW_H

#include "common/fp8.h"
#include "common/part.h"
#include "quantize/leads.h"

static inline uint lead_of(const struct call *call, const ulong row) {
    return LEADS ? (uint)(row * call->x_stride) % VEC : 0;
}

/* The column after the last one of a row's last vector. The last row of a contiguous tensor may be shorter. */
static inline ulong end_of_row(const struct call *call, const ulong row) {
    return TAILS ? min(call->cols, call->elements - row * call->cols) + lead_of(call, row) : call->cols;
}

static inline struct part part_of(const struct call *call, const ulong row, const ulong column) {
    const uint lead = lead_of(call, row);
    const ulong end = end_of_row(call, row);
    const struct part part = {column < lead ? lead : 0, column + VEC <= end ? VEC
                                                        : column < end      ? (uint)(end - column)
                                                                            : 0};
    return part;
}

static inline bool is_whole(const struct part part) {
    return !TAILS || (part.from == 0 && part.to == VEC);
}

#endif
