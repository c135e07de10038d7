/* softmax, forward and backward. */
#include <inttypes.h>
#include <stdlib.h>

#include "op_rows.h"
#include "reference_rows.h"

#define ARGUMENT(role) offsetof(clnorm_args, role)

const struct role softmax_roles[] = {
    {"x", false, false, SHAPE_X, ARGUMENT(x), NULL},
    {"y", true, false, SHAPE_X, ARGUMENT(y), "x"},
    {NULL, false, false, 0, 0, NULL},
};

const struct role softmax_backward_roles[] = {
    {"y", false, false, SHAPE_X, ARGUMENT(y), NULL},
    {"dy", false, false, SHAPE_X, ARGUMENT(dy), NULL},
    {"dx", true, false, SHAPE_X, ARGUMENT(dx), "y"},
    {NULL, false, false, 0, 0, NULL},
};

bool softmax_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    struct rows_request request;
    if (!rows_describe(job, options, &request, fault))
        return false;
    clnorm_softmax_desc desc = CLNORM_SOFTMAX_DESC_INIT;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.x_dtype = job_dtype(job, "x");
    desc.y_dtype = request.output;
    desc.config = request.config;
    job->desc.softmax = desc;
    return true;
}

bool softmax_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    struct rows_request request;
    if (!rows_describe(job, options, &request, fault))
        return false;
    clnorm_softmax_backward_desc desc = CLNORM_SOFTMAX_BACKWARD_DESC_INIT;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.y_dtype = job_dtype(job, "y");
    desc.dy_dtype = job_dtype(job, "dy");
    desc.dx_dtype = request.output;
    desc.config = request.config;
    job->desc.softmax_backward = desc;
    return true;
}

clnorm_status softmax_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_softmax_forward_plan_create(context, &job->desc.softmax, plan);
}

clnorm_status softmax_backward_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_softmax_backward_plan_create(context, &job->desc.softmax_backward, plan);
}

/* A row after the other; dy is NULL in the forward. */
static bool verify(const struct job *job, const struct tensor *first, const struct tensor *dy, const char *output,
                   struct verdict *verdicts, struct fault *fault) {
    struct estimate *const row = calloc(job->cols, sizeof *row);
    if (!row)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " columns", job->cols);
    const struct judged judged = judged_of(job, output, verdicts);
    for (uint64_t i = 0; i < job->rows; i++) {
        if (dy)
            reference_softmax_backward(first, dy, i * job->cols, job->cols, row);
        else
            reference_softmax(first, i * job->cols, job->cols, row);
        for (uint64_t k = 0; k < job->cols; k++)
            judged_add(&judged, i * job->cols + k, row[k]);
    }
    free(row);
    return true;
}

bool softmax_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    return verify(job, job_tensor(job, "x"), NULL, "y", verdicts, fault);
}

bool softmax_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    return verify(job, job_tensor(job, "y"), job_tensor(job, "dy"), "dx", verdicts, fault);
}
