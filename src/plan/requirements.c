#include "plan/plan.h"

_Static_assert((int)CLN_ROLES <= (int)CLNORM_TENSORS_MOST, "clnorm_requirements has room for every tensor");

void clnorm_requirements_init(clnorm_requirements *requirements) {
    static const clnorm_requirements initial = CLNORM_REQUIREMENTS_INIT;
    if (requirements)
        *requirements = initial;
}

static clnorm_tensor_info info_of(enum cln_role role, const struct cln_tensor *tensor) {
    clnorm_tensor_info info = {
        .name = cln_role_name(role),
        .stride = tensor->stride,
        .element = tensor->element,
        .bytes = tensor->span,
        .is_input = tensor->read,
        .is_output = tensor->written,
    };
    if (!tensor->span)
        return info;
    info.rows = 1;
    for (int i = 0; i < CLNORM_OUTER_DIMS && tensor->dims[i].size; i++)
        info.rows *= tensor->dims[i].size;
    info.cols = (tensor->row ? tensor->row : tensor->span) / tensor->element;
    if (info.rows == 1)
        info.stride = 0;
    return info;
}

clnorm_requirements cln_plan_requirements(const clnorm_plan *plan) {
    clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
    requirements.workspace_size = plan->workspace_size;
    requirements.kernel_count = plan->stages;
    for (enum cln_role role = 0; role < CLN_ROLES; role++)
        if (plan->tensor[role].element && role != CLN_WORKSPACE)
            requirements.tensors[requirements.tensor_count++] = info_of(role, &plan->tensor[role]);
    return requirements;
}
