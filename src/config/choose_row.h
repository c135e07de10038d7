/* The choice by the database's rows of an operation. */
#ifndef CLN_CHOOSE_ROW_H
#define CLN_CHOOSE_ROW_H

#include "config/config.h"

/* Chooses by the row of the work's width, or else by that of a neighbouring width: of the two nearest by the nearer one, or
 * by the other if the model expects that to be clearly better. Only widths at which rows begin alike within vectors count.
 * name: an operation and its dtypes, "rms_norm bf16". Returns false, and leaves config as it was, if no row suits the work,
 * or if the model expects that one to be much slower than at its own width. */
bool cln_config_choose_row(const clnorm_device_info *device, const struct cln_workload *work, const char *rows,
                           const char *name, bool few, cln_choose_fn choose, struct cln_config *config);

#endif
