/* gelu, forward and backward. */
#include <string.h>

#include "op_rows.h"
#include "reference_rows.h"

#define ARGUMENT(role) offsetof(clnorm_args, role)

const struct role gelu_roles[] = {
    {"x", false, false, SHAPE_X, ARGUMENT(x), NULL},
    {"y", true, false, SHAPE_X, ARGUMENT(y), "x"},
    {NULL, false, false, 0, 0, NULL},
};

const struct role gelu_backward_roles[] = {
    {"x", false, false, SHAPE_X, ARGUMENT(x), NULL},
    {"dy", false, false, SHAPE_X, ARGUMENT(dy), NULL},
    {"dx", true, false, SHAPE_X, ARGUMENT(dx), "x"},
    {NULL, false, false, 0, 0, NULL},
};

static bool read_form(const struct operation_options *options, clnorm_gelu_form *form, struct fault *fault) {
    if (!options->approximate || !strcmp(options->approximate, "none"))
        *form = CLNORM_GELU_ERF;
    else if (!strcmp(options->approximate, "tanh"))
        *form = CLNORM_GELU_TANH;
    else
        return fault_set(fault, EXIT_REQUEST, "--approximate '%s': expected none or tanh", options->approximate);
    return true;
}

bool gelu_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    struct rows_request request;
    clnorm_gelu_desc desc = CLNORM_GELU_DESC_INIT;
    if (!read_form(options, &desc.form, fault) || !rows_describe(job, options, &request, fault))
        return false;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.x_dtype = job_dtype(job, "x");
    desc.y_dtype = request.output;
    desc.config = request.config;
    job->desc.gelu = desc;
    return true;
}

bool gelu_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    struct rows_request request;
    clnorm_gelu_backward_desc desc = CLNORM_GELU_BACKWARD_DESC_INIT;
    if (!read_form(options, &desc.form, fault) || !rows_describe(job, options, &request, fault))
        return false;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.x_dtype = job_dtype(job, "x");
    desc.dy_dtype = job_dtype(job, "dy");
    desc.dx_dtype = request.output;
    desc.config = request.config;
    job->desc.gelu_backward = desc;
    return true;
}

clnorm_status gelu_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_gelu_forward_plan_create(context, &job->desc.gelu, plan);
}

clnorm_status gelu_backward_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_gelu_backward_plan_create(context, &job->desc.gelu_backward, plan);
}

bool gelu_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    (void)fault;
    const struct tensor *const x = job_tensor(job, "x");
    const struct judged y = judged_of(job, "y", verdicts);
    for (uint64_t i = 0; i < x->count; i++)
        judged_add(&y, i, reference_gelu(job->desc.gelu.form, x, i));
    return true;
}

bool gelu_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    (void)fault;
    const struct tensor *const x = job_tensor(job, "x"), *const dy = job_tensor(job, "dy");
    const struct judged dx = judged_of(job, "dx", verdicts);
    for (uint64_t i = 0; i < x->count; i++)
        judged_add(&dx, i, reference_gelu_backward(job->desc.gelu_backward.form, x, dy, i));
    return true;
}
