/* How many scales a tensor has. */
#ifndef CLN_SCALING_H
#define CLN_SCALING_H

#include "clnorm/clnorm.h"

/* Checks desc.scaling, cols and group_size, and that the number of scales fits. */
clnorm_status cln_scaling_check(clnorm_scaling scaling, uint64_t rows, uint64_t cols, uint64_t group_size);

/* Scales of [rows, cols], checked. */
uint64_t cln_scaling_count(clnorm_scaling scaling, uint64_t rows, uint64_t cols, uint64_t group_size);

#endif
