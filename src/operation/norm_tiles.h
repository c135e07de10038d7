/* A plain RMS norm of an 8-bit x with scales of groups, to an 8-bit y with one measured scale, as two kernels of its own:
 * sums and the largest |y| of rows, then tiles of y and its transposed copy from x again. */
#ifndef CLN_NORM_TILES_H
#define CLN_NORM_TILES_H

#include "operation/operation.h"

/* Whether a descriptor is of that kind. Whoever forces keep to be something else than CLNORM_KEEP_REREAD gets the kernels
 * of all norms. */
bool cln_norm_in_tiles(const clnorm_norm_desc *p);

/* For cln_fp8_config, by which its config is chosen. */
struct cln_workload cln_norm_tiles_workload(const struct cln_operation *operation, const clnorm_norm_desc *p);

clnorm_status cln_norm_add_tiles(clnorm_plan *plan, const clnorm_norm_desc *p);

#endif
