/* L2 norm as a norm: RMS norm's kernels, which divide by the length. */
#include "clnorm/l2_norm.h"
#include "base/arithmetic.h"
#include "config/config.h"
#include "operation/norm_backward_stages.h"
#include "operation/norm_stages.h"
#include "operation/operations.h"

typedef clnorm_l2_norm_desc forward_desc;
typedef clnorm_l2_norm_backward_desc backward_desc;

_Static_assert(offsetof(forward_desc, weight_repeat) == offsetof(forward_desc, weight_rows) + sizeof(uint64_t), "adjacent");
_Static_assert(offsetof(backward_desc, weight_repeat) == offsetof(backward_desc, weight_rows) + sizeof(uint64_t),
               "adjacent");

static const struct cln_tensor_rule forward_tensors[] = {
    {"x", CLN_X, offsetof(forward_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(forward_desc, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(forward_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_tensor_rule backward_tensors[] = {
    {"x", CLN_X, offsetof(backward_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(backward_desc, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(backward_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(backward_desc, dx), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"dweight", CLN_DWEIGHT, offsetof(backward_desc, dweight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
};
static const struct cln_field_rule forward_fields[] = {
    {"eps_mode", offsetof(forward_desc, eps_mode), CLNORM_EPS_ADD, CLNORM_EPS_FLOOR, "clnorm_eps_mode"},
    {"save_norm", offsetof(forward_desc, save_norm), 0, 1, NULL},
    {"batch_invariant", offsetof(forward_desc, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(forward_desc, reserved), 0, 0, NULL},
};
static const struct cln_field_rule backward_fields[] = {
    {"eps_mode", offsetof(backward_desc, eps_mode), CLNORM_EPS_ADD, CLNORM_EPS_FLOOR, "clnorm_eps_mode"},
    {"norm_given", offsetof(backward_desc, norm_given), 0, 1, NULL},
    {"batch_invariant", offsetof(backward_desc, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(backward_desc, reserved), 0, 0, NULL},
};
static const struct cln_statistic_rule forward_statistics[] = {
    {"norm", CLN_NORM, offsetof(forward_desc, save_norm), true, 1}};
static const struct cln_statistic_rule backward_statistics[] = {
    {"norm", CLN_NORM, offsetof(backward_desc, norm_given), false, 1}};
static const struct cln_enum_option eps_mode = {"eps-mode",
                                                "L2 norm: add eps to the sum of squares, or floor the length at it (add)",
                                                "eps_mode",
                                                {{"add", CLNORM_EPS_ADD}, {"floor", CLNORM_EPS_FLOOR}}};

/* ---------------------------------------------------------------------------------------------- as one of the norms */

static clnorm_norm norm_of(clnorm_eps_mode mode) {
    return (clnorm_norm)(mode == CLNORM_EPS_FLOOR ? CLN_FLOORED_L2_NORM : CLN_L2_NORM);
}

static clnorm_norm_desc norm_of_forward(const forward_desc *d) {
    clnorm_norm_desc p = CLNORM_NORM_DESC_INIT;
    p.norm = norm_of(d->eps_mode);
    p.rows = d->rows;
    p.cols = d->cols;
    p.group_size = d->group_size;
    p.weight_rows = d->weight_rows;
    p.weight_repeat = d->weight_repeat;
    p.x = d->x;
    p.y = d->y;
    p.weight = d->weight;
    p.eps = d->eps;
    p.save_rstd = d->save_norm;
    return p;
}

static clnorm_norm_backward_desc norm_of_backward(const backward_desc *d) {
    clnorm_norm_backward_desc p = CLNORM_NORM_BACKWARD_DESC_INIT;
    p.norm = norm_of(d->eps_mode);
    p.reduction = CLNORM_REDUCTION_PARTIAL;
    p.rows = d->rows;
    p.cols = d->cols;
    p.group_size = d->group_size;
    p.weight_rows = d->weight_rows;
    p.weight_repeat = d->weight_repeat;
    p.x = d->x;
    p.dy = d->dy;
    p.weight = d->weight;
    p.dx = d->dx;
    p.dweight = d->dweight;
    p.eps = d->eps;
    p.rstd_given = d->norm_given;
    p.batch_invariant = d->batch_invariant;
    return p;
}

static struct cln_workload forward_workload(const struct cln_operation *operation, const void *desc) {
    const clnorm_norm_desc p = norm_of_forward(desc);
    (void)operation;
    return cln_norm_workload(&cln_norm_forward, &p);
}

static struct cln_workload backward_workload(const struct cln_operation *operation, const void *desc) {
    const clnorm_norm_backward_desc p = norm_of_backward(desc);
    (void)operation;
    return cln_backward_workload(&cln_norm_backward, &p);
}

static void forward_key(const void *desc, struct cln_tuning_key *key) {
    (void)desc;
    key->like = "rms_norm";
}

static void backward_key(const void *desc, struct cln_tuning_key *key) {
    (void)desc;
    key->like = "rms_norm_backward";
}

static clnorm_status add_forward(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const clnorm_norm_desc p = norm_of_forward(desc);
    return cln_norm_add_stages(plan, &p, work);
}

static clnorm_status add_backward(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const clnorm_norm_backward_desc p = norm_of_backward(desc);
    return cln_backward_add_stages(plan, &p, work);
}

static const forward_desc initial_forward = CLNORM_L2_NORM_DESC_INIT;
static const backward_desc initial_backward = CLNORM_L2_NORM_BACKWARD_DESC_INIT;

const struct cln_operation cln_l2_norm = {
    .name = "l2_norm",
    .summary = "x / length * weight, with the length sqrt(sum of squares + eps)",
    .init = "CLNORM_L2_NORM_DESC_INIT",
    .initial = &initial_forward,
    .size = sizeof initial_forward,
    .config = offsetof(forward_desc, config),
    .tensors = forward_tensors,
    .tensor_count = sizeof forward_tensors / sizeof *forward_tensors,
    .fields = forward_fields,
    .field_count = sizeof forward_fields / sizeof *forward_fields,
    .choices = {&eps_mode},
    .outer = true,
    .weight_map = offsetof(forward_desc, weight_rows),
    .group_size = offsetof(forward_desc, group_size),
    .batch_invariant = offsetof(forward_desc, batch_invariant),
    .eps = offsetof(forward_desc, eps),
    .statistics = forward_statistics,
    .statistic_count = sizeof forward_statistics / sizeof *forward_statistics,
    .workload = forward_workload,
    .tuning_key = forward_key,
    .choose = cln_norm_choose,
    .add_stages = add_forward,
};

const struct cln_operation cln_l2_norm_backward = {
    .name = "l2_norm_backward",
    .summary = "the gradients of l2_norm",
    .init = "CLNORM_L2_NORM_BACKWARD_DESC_INIT",
    .initial = &initial_backward,
    .size = sizeof initial_backward,
    .config = offsetof(backward_desc, config),
    .tensors = backward_tensors,
    .tensor_count = sizeof backward_tensors / sizeof *backward_tensors,
    .fields = backward_fields,
    .field_count = sizeof backward_fields / sizeof *backward_fields,
    .choices = {&eps_mode},
    .outer = true,
    .weight_map = offsetof(backward_desc, weight_rows),
    .group_size = offsetof(backward_desc, group_size),
    .batch_invariant = offsetof(backward_desc, batch_invariant),
    .eps = offsetof(backward_desc, eps),
    .statistics = backward_statistics,
    .statistic_count = sizeof backward_statistics / sizeof *backward_statistics,
    .workload = backward_workload,
    .tuning_key = backward_key,
    .choose = cln_config_choose,
    .add_stages = add_backward,
};
