/* The forward norms' output in 8 bits. */
#ifndef CLN_NORM_QUANTIZED_H
#define CLN_NORM_QUANTIZED_H

#include "plan.h"

/* Checks what a descriptor says of y's scales. p: with no default left in it. */
clnorm_status cln_norm_quantized_check(const clnorm_norm_desc *p);

/* What args.y_scale has to be like; nothing where it is not wanted. */
clnorm_status cln_norm_quantized_describe(const clnorm_norm_desc *p, struct cln_tensor *y_scale);

#endif
