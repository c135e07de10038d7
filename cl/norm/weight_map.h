/* Which row of weight and bias a row takes: see weight_map_args.h. */
#ifndef WEIGHT_MAP_H
#define WEIGHT_MAP_H

#include "norm/weight_map_args.h"

/* The first element of the weight or the bias that a row of x takes. */
#if WEIGHT_MAP
#define WEIGHTS_OF(tensor, row) (call->tensor + (row) / call->weight_repeat % call->weight_rows * call->tensor##_stride)
#else
#define WEIGHTS_OF(tensor, row) call->tensor
#endif

#endif
