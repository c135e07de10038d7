#include "operation/group_norm_rows.h"

/* Each group takes work-groups of its own in the backward. */
enum { MOST_GROUPS = 1 << 16 };

/* A matrix of rows of so many channels. Returns false if they are apart, or have scales. */
static bool take_rows(const clnorm_tensor *samples, uint64_t cols, uint64_t channels, clnorm_tensor *rows) {
    *rows = *samples;
    if (samples->dtype)
        rows->stride = channels;
    return !samples->dtype || (samples->stride == cols && !samples->scaling);
}

static clnorm_tensor rows_of_weights(const clnorm_tensor *weights, uint64_t channels) {
    clnorm_tensor rows = *weights;
    if (weights->dtype)
        rows.stride = channels;
    return rows;
}

bool cln_group_norm_as_rows(const clnorm_group_norm_desc *d, clnorm_norm_desc *rows) {
    const uint64_t channels = d->cols / d->groups;
    *rows = (clnorm_norm_desc)CLNORM_NORM_DESC_INIT;
    rows->norm = CLNORM_LAYER_NORM;
    rows->rows = d->rows * d->groups;
    rows->cols = rows->group_size = channels;
    rows->weight = rows_of_weights(&d->weight, channels);
    rows->bias = rows_of_weights(&d->bias, channels);
    rows->weight_rows = d->weight.dtype || d->bias.dtype ? d->groups : 1;
    rows->weight_repeat = 1;
    rows->eps = d->eps;
    rows->activation = d->activation;
    rows->save_mean = d->save_mean;
    rows->save_rstd = d->save_rstd;
    rows->batch_invariant = 1;
    return d->spatial == 1 && d->groups <= MOST_GROUPS && take_rows(&d->x, d->cols, channels, &rows->x) &&
           take_rows(&d->y, d->cols, channels, &rows->y) && take_rows(&d->residual, d->cols, channels, &rows->residual) &&
           take_rows(&d->residual_out, d->cols, channels, &rows->residual_out);
}

bool cln_group_norm_backward_as_rows(const clnorm_group_norm_backward_desc *d, clnorm_norm_backward_desc *rows) {
    const uint64_t channels = d->cols / d->groups;
    *rows = (clnorm_norm_backward_desc)CLNORM_NORM_BACKWARD_DESC_INIT;
    rows->norm = CLNORM_LAYER_NORM;
    rows->reduction = CLNORM_REDUCTION_PARTIAL;
    rows->rows = d->rows * d->groups;
    rows->cols = rows->group_size = channels;
    rows->weight = rows_of_weights(&d->weight, channels);
    rows->bias = rows_of_weights(&d->bias, channels);
    rows->dweight = rows_of_weights(&d->dweight, channels);
    rows->dbias = rows_of_weights(&d->dbias, channels);
    rows->weight_rows = d->weight.dtype || d->bias.dtype || d->dweight.dtype || d->dbias.dtype ? d->groups : 1;
    rows->weight_repeat = 1;
    rows->eps = d->eps;
    rows->activation = d->activation;
    rows->mean_given = rows->rstd_given = d->statistics_given;
    rows->accumulate = d->accumulate;
    rows->batch_invariant = 1;
    rows->s_given = d->dresidual.dtype || d->dresidual_out.dtype; /* x is the sum that was normalised */
    return d->spatial == 1 && d->groups <= MOST_GROUPS && take_rows(&d->x, d->cols, channels, &rows->x) &&
           take_rows(&d->dy, d->cols, channels, &rows->dy) && take_rows(&d->dx, d->cols, channels, &rows->dx) &&
           take_rows(&d->dresidual_out, d->cols, channels, &rows->dresidual_out) &&
           take_rows(&d->dresidual, d->cols, channels, &rows->dresidual);
}

clnorm_status cln_group_norm_choose(cln_choose_fn choose, const clnorm_device_info *device, const struct cln_workload *work,
                                    const struct cln_config *forced, struct cln_config *config) {
    if (work->users == CLN_KNOBS_GROUP)
        return cln_config_choose_group(device, work, forced, config);
    const struct cln_workload many = cln_config_many_rows(work);
    const clnorm_config wish = cln_config_close(forced);
    const clnorm_status status = choose(device, &many, forced, config);
    return status ? status : cln_config_share_out(choose, device, work, &wish, config);
}
