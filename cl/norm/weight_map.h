/* The row of weight and bias that a row uses: see weight_map_args.h. */
#ifndef WEIGHT_MAP_H
#define WEIGHT_MAP_H

#include "norm/weight_map_args.h"

#if WEIGHT_MAP
/* (row / repeat) mod rows, by 32-bit divisions where possible, as those of 64 bits are slow. */
static inline ulong weight_row_of(const ulong row, const ulong repeat, const ulong rows) {
    if ((row | repeat | rows) >> 32 == 0)
        return (uint)row / (uint)repeat % (uint)rows;
    return row / repeat % rows;
}

/* The row with a number among those that use a row of weights. */
static inline ulong row_of_weight(const ulong number, const ulong weight_row, const ulong repeat, const ulong rows) {
    if (repeat == 1) /* saves the divisions of 64 bits */
        return number * rows + weight_row;
    const ulong run = number / repeat * rows + weight_row; /* of neighbouring rows */
    return run * repeat + number % repeat;
}

/* The first element of a row of weight or bias: by its own index, and by the index of a row of x that uses it. */
#define WEIGHTS_AT(tensor, weight_row) (call->tensor + (weight_row)*call->tensor##_stride)
#define WEIGHTS_OF(tensor, row) WEIGHTS_AT(tensor, weight_row_of(row, call->weight_repeat, call->weight_rows))
#else
#define WEIGHTS_AT(tensor, weight_row) call->tensor
#define WEIGHTS_OF(tensor, row) call->tensor
#endif

#endif
