/* Which row of weight and bias a row takes: see weight_map_args.h. */
#ifndef WEIGHT_MAP_H
#define WEIGHT_MAP_H

#include "norm/weight_map_args.h"

/* The first element of the weight or the bias, by its own row, and by that of x. */
#if WEIGHT_MAP
#define WEIGHTS_AT(tensor, weight_row) (call->tensor + (weight_row)*call->tensor##_stride)
#define WEIGHTS_OF(tensor, row) WEIGHTS_AT(tensor, (row) / call->weight_repeat % call->weight_rows)
#else
#define WEIGHTS_AT(tensor, weight_row) call->tensor
#define WEIGHTS_OF(tensor, row) call->tensor
#endif

#endif
