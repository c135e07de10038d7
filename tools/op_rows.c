#include "op_rows.h"

#include "config_text.h"
#include "options.h"

/* Where one tensor is of doubles, all are. */
static bool check_doubles(const struct job *job, clnorm_dtype output, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    const struct element *const first = job->tensor[0].element;
    const bool wide = first->dtype == CLNORM_F64;
    const char *const expected = wide ? "F64" : "F32, F16 or BF16";
    for (int i = 1; !roles[i].output; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if ((tensor->element->dtype == CLNORM_F64) != wide)
            return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s, since %s is %s", tensor->name,
                             roles[i].name, tensor->element->name, expected, roles[0].name, first->name);
    }
    return (output == CLNORM_F64) == wide || fault_set(fault, EXIT_REQUEST, "--dtype %s: expected %s, since %s is %s",
                                                       clnorm_dtype_name(output), expected, roles[0].name, first->name);
}

bool rows_describe(struct job *job, const struct operation_options *options, struct rows_request *request,
                   struct fault *fault) {
    *request = (struct rows_request){.output = job->tensor[0].element->dtype};
    if ((options->dtype && !parse_dtype(options->dtype, &request->output, fault)) ||
        !check_doubles(job, request->output, fault) ||
        (options->config && !config_parse(options->config, &request->config, fault)))
        return false;
    for (int i = 0; job->operation->roles[i].name; i++)
        if (job->wanted[i])
            job->tensor[i].element = element_by_dtype(request->output);
    return true;
}
