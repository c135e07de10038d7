#include "operation/group_norm_rows.h"

#include <string.h>

/* Most groups: in the backward wide ones take work-groups of their own. */
enum { MOST_GROUPS = 1 << 16 };

/* Whether a forced config is one of rows. The kernels of images have no knob keep, and a chosen config has every knob. */
static bool is_of_rows(const clnorm_config *config) {
    static const struct cln_config automatic = {0};
    struct cln_config forced;
    return !cln_config_open(config, &forced) && (forced.keep || memcmp(&forced, &automatic, sizeof forced) == 0);
}

/* Whether images are so small that their kernels would leave most lanes without work: those of few positions, or in the
 * forward groups of few elements, where vectors do not divide a channel. A work-group takes a whole row. */
static bool are_small(const struct cln_group_norm *norm, bool backward) {
    enum { FORWARD = 32, BACKWARD = 15 };             /* positions */
    enum { VECTOR = 8, NARROW = 512, ROW = 1 << 15 }; /* elements of an access, and of a group */
    const uint64_t elements = norm->cols / norm->groups * norm->spatial;
    const bool narrow = !backward && norm->spatial % VECTOR && elements <= NARROW;
    return norm->layout == CLNORM_LAYOUT_FIRST && elements <= ROW &&
           (norm->spatial <= (backward ? BACKWARD : FORWARD) || narrow);
}

static bool are_rows(const struct cln_group_norm *norm, const clnorm_config *config, bool backward) {
    return norm->groups <= MOST_GROUPS && (norm->spatial == 1 || (are_small(norm, backward) && is_of_rows(config)));
}

/* A matrix of rows of so many elements. Returns false if they are apart, or have scales. */
static bool take_rows(const clnorm_tensor *samples, uint64_t sample, uint64_t row, clnorm_tensor *rows) {
    *rows = *samples;
    if (samples->dtype)
        rows->stride = row;
    return !samples->dtype || (samples->stride == sample && !samples->scaling);
}

static clnorm_tensor rows_of_weights(const clnorm_tensor *weights, uint64_t channels) {
    clnorm_tensor rows = *weights;
    if (weights->dtype)
        rows.stride = channels;
    return rows;
}

uint64_t cln_group_norm_columns_of_weight(const struct cln_group_norm *norm) {
    return norm->spatial > 1 ? norm->spatial : 0;
}

bool cln_group_norm_as_rows(const clnorm_group_norm_desc *d, const struct cln_group_norm *norm, clnorm_norm_desc *rows) {
    const uint64_t channels = d->cols / d->groups, row = channels * d->spatial, sample = d->cols * d->spatial;
    *rows = (clnorm_norm_desc)CLNORM_NORM_DESC_INIT;
    rows->norm = CLNORM_LAYER_NORM;
    rows->rows = d->rows * d->groups;
    rows->cols = rows->group_size = row;
    rows->weight = rows_of_weights(&d->weight, channels);
    rows->bias = rows_of_weights(&d->bias, channels);
    rows->weight_rows = d->weight.dtype || d->bias.dtype ? d->groups : 1;
    rows->weight_repeat = 1;
    rows->eps = d->eps;
    rows->activation = d->activation;
    rows->save_mean = d->save_mean;
    rows->save_rstd = d->save_rstd;
    rows->batch_invariant = 1;
    return are_rows(norm, &d->config, false) && take_rows(&d->x, sample, row, &rows->x) &&
           take_rows(&d->y, sample, row, &rows->y) && take_rows(&d->residual, sample, row, &rows->residual) &&
           take_rows(&d->residual_out, sample, row, &rows->residual_out);
}

bool cln_group_norm_backward_as_rows(const clnorm_group_norm_backward_desc *d, const struct cln_group_norm *norm,
                                     clnorm_norm_backward_desc *rows) {
    const uint64_t channels = d->cols / d->groups, row = channels * d->spatial, sample = d->cols * d->spatial;
    *rows = (clnorm_norm_backward_desc)CLNORM_NORM_BACKWARD_DESC_INIT;
    rows->norm = CLNORM_LAYER_NORM;
    rows->reduction = CLNORM_REDUCTION_PARTIAL;
    rows->rows = d->rows * d->groups;
    rows->cols = rows->group_size = row;
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
    return are_rows(norm, &d->config, true) && take_rows(&d->x, sample, row, &rows->x) &&
           take_rows(&d->dy, sample, row, &rows->dy) && take_rows(&d->dx, sample, row, &rows->dx) &&
           take_rows(&d->dresidual_out, sample, row, &rows->dresidual_out) &&
           take_rows(&d->dresidual, sample, row, &rows->dresidual);
}

clnorm_status cln_group_norm_describe_rows(const struct cln_operation *operation, const void *rows,
                                           const struct cln_group_norm *norm, struct cln_tensor tensor[CLN_ROLES]) {
    static const enum cln_role of_channels[] = {CLN_WEIGHT, CLN_BIAS, CLN_DWEIGHT, CLN_DBIAS};
    struct cln_tensor channels[CLN_ROLES];
    memcpy(channels, tensor, sizeof channels);
    const clnorm_status status = cln_operation_describe_tensors(operation, rows, tensor);
    for (size_t i = 0; norm->spatial > 1 && i < sizeof of_channels / sizeof *of_channels; i++) {
        tensor[of_channels[i]] = channels[of_channels[i]];
        tensor[of_channels[i]].vector = 0;
    }
    return status;
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
