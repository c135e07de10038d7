/* layer_norm and rms_norm, backward from their output. */
#include "config_text.h"
#include "op_norm.h"
#include "options.h"

const struct role norm_backward_from_y_roles[] = {
    INPUT(y, SHAPE_X),
    INPUT(dy, SHAPE_X),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    OPTIONAL_INPUT(bias, SHAPE_COLS),
    INPUT(rstd, SHAPE_STATISTICS),
    OPTIONAL_OUTPUT(dx, SHAPE_X, "y"),
    OPTIONAL_OUTPUT(dweight, SHAPE_COLS, "weight"),
    OPTIONAL_OUTPUT(dbias, SHAPE_COLS, "bias"),
    ROLES_END,
};

static clnorm_dtype sum_dtype(const struct job *job, const char *input) {
    const clnorm_dtype dtype = job_dtype(job, input);
    return dtype ? dtype : statistics_dtype(job_dtype(job, "y"));
}

bool norm_backward_from_y_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = job->operation->norm;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.group_size = job->cols / job->groups;
    desc.y_given = desc.rstd_given = true;
    desc.x.dtype = desc.y.dtype = job_dtype(job, "y"); /* x's decides the arithmetic */
    desc.dy.dtype = job_dtype(job, "dy");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.bias.dtype = job_dtype(job, "bias");
    desc.weight_offset = options->weight_offset;
    clnorm_dtype main_dtype = desc.y.dtype;
    if ((options->dtype && !parse_dtype("--dtype", options->dtype, &main_dtype, fault)) ||
        !job_check_doubles(job, main_dtype, false, fault) || !norm_read_reduction(options, &desc, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    job_set_output(job, "dx", main_dtype);
    job_set_output(job, "dweight", sum_dtype(job, "weight"));
    job_set_output(job, "dbias", sum_dtype(job, "bias"));
    desc.dx.dtype = job_dtype(job, "dx");
    desc.dweight.dtype = job_dtype(job, "dweight");
    desc.dbias.dtype = job_dtype(job, "dbias");
    job->desc.norm_backward = desc;
    return true;
}
