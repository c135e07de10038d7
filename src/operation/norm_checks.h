/* What the norms' forward and backward complete and check alike. */
#ifndef CLN_NORM_CHECKS_H
#define CLN_NORM_CHECKS_H

#include "clnorm/norm.h"

/* z is present only with a gate. Then it has x's dtype by default, unless that has 8 bits. */
void cln_norm_complete_z(clnorm_gate gate, clnorm_dtype x, clnorm_tensor *z);

/* z: completed. */
clnorm_status cln_norm_check_gate(clnorm_gate gate, bool gate_first, clnorm_dtype z);

clnorm_status cln_norm_check_weight_offset(double weight_offset, clnorm_dtype weight, clnorm_dtype x);

#endif
