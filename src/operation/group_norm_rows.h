/* Group norm of samples of one position: a group's channels are neighbours, so that it is a layer norm that has a row, and
 * a row of weights, for each group of each sample. The statistics lie alike. */
#ifndef CLN_GROUP_NORM_ROWS_H
#define CLN_GROUP_NORM_ROWS_H

#include <stdbool.h>

#include "clnorm/group_norm.h"
#include "clnorm/norm.h"
#include "config/config.h"
#include "config/tuning.h"

/* Make the descriptor of that layer norm, whose knobs the config has. They return false, and the descriptor has no meaning,
 * where there are several positions, 8-bit tensors, or samples that are apart. */
bool cln_group_norm_as_rows(const clnorm_group_norm_desc *d, clnorm_norm_desc *rows);
bool cln_group_norm_backward_as_rows(const clnorm_group_norm_backward_desc *d, clnorm_norm_backward_desc *rows);

/* Chooses a config of group norm, or of such a layer norm: as for many rows, since a sample's bits must not depend on the
 * others. choose: of the layer norm. */
clnorm_status cln_group_norm_choose(cln_choose_fn choose, const clnorm_device_info *device, const struct cln_workload *work,
                                    const struct cln_config *forced, struct cln_config *config);

#endif
