/* A plain RMS norm of an 8-bit x with scales of groups, to an 8-bit y with one measured scale, by two kernels of its
 * own: the first computes sums and the largest |y| of rows, the second reads x again and writes tiles of y and its
 * transposed copy. */
#ifndef CLN_NORM_TILES_H
#define CLN_NORM_TILES_H

#include "operation/operation.h"

/* The tensor that describes the 8-bit output: y, or y_t when there is no y. */
static inline const clnorm_tensor *cln_norm_codes(const clnorm_norm_desc *p) {
    return p->y.dtype ? &p->y : &p->y_t;
}

/* Whether these kernels compute the norm. A forced keep other than CLN_KEEP_REREAD selects the kernels of all norms. */
bool cln_norm_in_tiles(const clnorm_norm_desc *p);

/* The workload for cln_fp8_config. */
struct cln_workload cln_norm_tiles_workload(const struct cln_operation *operation, const clnorm_norm_desc *p);

clnorm_status cln_norm_add_tiles(clnorm_plan *plan, const clnorm_norm_desc *p);

#endif
