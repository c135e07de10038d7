/* Group norm of samples of one position, or of small images with channels first: the elements of a group are neighbours, so
 * that it is a layer norm that has a row, and a row of weights, for each group of each sample. A channel's positions use
 * one weight. The statistics lie alike. */
#ifndef CLN_GROUP_NORM_ROWS_H
#define CLN_GROUP_NORM_ROWS_H

#include <stdbool.h>

#include "clnorm/group_norm.h"
#include "clnorm/norm.h"
#include "config/config.h"
#include "config/tuning.h"
#include "operation/group_norm.h"

/* Make the descriptor of that layer norm, whose knobs the config has. They return false, and the descriptor has no meaning,
 * where images are large or have channels last, with 8-bit tensors, samples that are apart, or a forced config of the
 * kernels of images. */
bool cln_group_norm_as_rows(const clnorm_group_norm_desc *d, const struct cln_group_norm *norm, clnorm_norm_desc *rows);
bool cln_group_norm_backward_as_rows(const clnorm_group_norm_backward_desc *d, const struct cln_group_norm *norm,
                                     clnorm_norm_backward_desc *rows);

/* Neighbouring columns of such a row that use one weight; 0: 1. */
uint64_t cln_group_norm_columns_of_weight(const struct cln_group_norm *norm);

/* Describes tensors by the layer norm's rules. With several positions those of channels stay as they are: their elements
 * are not read by vectors. */
clnorm_status cln_group_norm_describe_rows(const struct cln_operation *operation, const void *rows,
                                           const struct cln_group_norm *norm, struct cln_tensor tensor[CLN_ROLES]);

/* Chooses a config of group norm, or of such a layer norm: as for many rows, since a sample's bits must not depend on the
 * others. choose: of the layer norm. */
clnorm_status cln_group_norm_choose(cln_choose_fn choose, const clnorm_device_info *device, const struct cln_workload *work,
                                    const struct cln_config *forced, struct cln_config *config);

#endif
