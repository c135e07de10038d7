/* The exported functions of each operation, documented in its public header. Each passes its descriptor to the operation's
 * record, cln_RECORD. */
#include "clnorm/clnorm.h"
#include "operation/operations.h"

#define EXPORT(record, desc_name)                                                                                          \
    void clnorm_##desc_name##_desc_init(clnorm_##desc_name##_desc *desc) {                                                 \
        cln_operation_init(&cln_##record, desc);                                                                           \
    }                                                                                                                      \
    clnorm_status clnorm_##record##_validate(clnorm_context *context, const clnorm_##desc_name##_desc *desc,               \
                                             clnorm_requirements *requirements) {                                          \
        return cln_operation_validate(&cln_##record, context, desc, requirements);                                         \
    }                                                                                                                      \
    clnorm_status clnorm_##record##_plan_create(clnorm_context *context, const clnorm_##desc_name##_desc *desc,            \
                                                clnorm_plan **plan) {                                                      \
        return cln_operation_plan_create(&cln_##record, context, desc, plan);                                              \
    }                                                                                                                      \
    clnorm_status clnorm_##record(clnorm_context *context, cl_command_queue queue, const clnorm_##desc_name##_desc *desc,  \
                                  const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) { \
        return cln_operation_enqueue(&cln_##record, context, queue, desc, args, num_wait, wait_list, event);               \
    }

EXPORT(norm_forward, norm)
EXPORT(norm_backward, norm_backward)
EXPORT(softmax_forward, softmax)
EXPORT(softmax_backward, softmax_backward)
EXPORT(gelu_forward, gelu)
EXPORT(gelu_backward, gelu_backward)
EXPORT(quantize, quantize)
EXPORT(dequantize, dequantize)
EXPORT(l2_norm, l2_norm)
EXPORT(l2_norm_backward, l2_norm_backward)
EXPORT(group_norm, group_norm)
EXPORT(group_norm_backward, group_norm_backward)
EXPORT(norm_statistics, norm_statistics)
EXPORT(norm_apply, norm_apply)
EXPORT(norm_backward_statistics, norm_backward_statistics)
EXPORT(norm_backward_apply, norm_backward_apply)
