/* The scales of a descriptor's tensors. */
#ifndef CLN_OPERATION_SCALES_H
#define CLN_OPERATION_SCALES_H

#include "operation/operation.h"
#include "plan/tensor.h"

/* codes: whether the tensor is 8-bit with scales of its own. Other tensors may not have scales. */
clnorm_status cln_operation_check_scales(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor, bool codes);

/* Describes the argument with a tensor's scales, where there is one. */
clnorm_status cln_operation_describe_scales(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor,
                                            const struct cln_desc_head *head, struct cln_tensor described[CLN_ROLES]);

#endif
