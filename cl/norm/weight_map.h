/* Which row of weight and bias a row takes: see weight_map_args.h. */
#ifndef WEIGHT_MAP_H
#define WEIGHT_MAP_H

#include "norm/weight_map_args.h"

#if WEIGHT_MAP
/* (row / repeat) mod rows; numbers of 64 bits are slow to divide by. */
static inline ulong weight_row_of(const ulong row, const ulong repeat, const ulong rows) {
    if ((row | repeat | rows) >> 32 == 0)
        return (uint)row / (uint)repeat % (uint)rows;
    return row / repeat % rows;
}

/* The row that is the one of a number among those that take a weight's row. */
static inline ulong row_of_weight(const ulong number, const ulong weight_row, const ulong repeat, const ulong rows) {
    const ulong run = number / repeat * rows + weight_row; /* of neighbouring rows */
    return run * repeat + number % repeat;
}

/* The first element of the weight or the bias, by its own row, and by that of x. */
#define WEIGHTS_AT(tensor, weight_row) (call->tensor + (weight_row)*call->tensor##_stride)
#define WEIGHTS_OF(tensor, row) WEIGHTS_AT(tensor, weight_row_of(row, call->weight_repeat, call->weight_rows))
#else
#define WEIGHTS_AT(tensor, weight_row) call->tensor
#define WEIGHTS_OF(tensor, row) call->tensor
#endif

#endif
