/* The arguments of cl/norm/weight_map_args.h. */
#ifndef CLN_WEIGHT_MAP_H
#define CLN_WEIGHT_MAP_H

#include "plan/stage.h"

/* rows, repeat: the descriptor's weight_rows and weight_repeat. Strides are in elements, and 0 where there is no such
 * tensor. */
struct cln_arguments cln_weight_map_arguments(uint64_t rows, uint64_t repeat, uint64_t weight_stride, uint64_t bias_stride);

#endif
