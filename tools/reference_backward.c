#include "reference_fused.h"

/* A segment and what is known of it. */
struct work {
    const clnorm_norm_backward_desc *desc;
    const struct norm_backward_inputs *inputs;
    const struct norm_gradients *gradients; /* y is x̂ until an element's turn has come */
    struct arithmetic arithmetic;
    uint64_t row;
    uint64_t start; /* index of its first element in a tensor of x's shape */
    uint64_t first; /* its first column */
    struct estimate rstd;
    struct estimate c1, c2; /* of the header's formulas */
};

/* The forward whose gradients are taken. */
static clnorm_norm_desc forward_of(const clnorm_norm_backward_desc *desc) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    forward.norm = desc->norm;
    forward.rows = desc->rows;
    forward.cols = desc->cols;
    forward.group_size = desc->group_size;
    forward.x_dtype = desc->x_dtype;
    forward.gate = desc->gate;
    forward.gate_first = desc->gate_first;
    forward.eps = desc->eps;
    forward.residual_dtype = desc->residual_dtype;
    forward.row_scale = desc->row_scale && !desc->s_given;
    forward.dropout = desc->s_given ? 0 : desc->dropout;
    return forward;
}

static struct estimate scale_at(const struct work *work, uint64_t i) {
    return reference_scale(&work->arithmetic, &work->inputs->forward, work->desc->weight_offset, work->first + i);
}

/* Puts x̂, recovered from y, into gradients->y. */
static void recover_hats(struct work *work) {
    const struct norm_inputs *const forward = &work->inputs->forward;
    for (uint64_t i = 0; i < work->desc->group_size; i++) {
        struct estimate product = reference_value(forward->x, work->start + i);
        if (forward->bias)
            product = estimate_subtract(&work->arithmetic, product, reference_value(forward->bias, work->first + i));
        work->gradients->y[i] = estimate_divide(&work->arithmetic, product, scale_at(work, i));
    }
}

/* Puts x̂ into gradients->y. */
static void take_hats(struct work *work, uint64_t row) {
    const clnorm_norm_desc forward = forward_of(work->desc);
    const uint64_t statistic = work->first / forward.group_size * forward.rows + row;
    struct norm_segment segment = {.y = work->gradients->y};
    reference_statistics(&forward, &work->inputs->forward, row, work->first, &segment);
    if (work->inputs->mean)
        segment.mean = reference_value(work->inputs->mean, statistic);
    if (work->inputs->rstd)
        segment.rstd = reference_value(work->inputs->rstd, statistic);
    for (uint64_t i = 0; i < forward.group_size; i++)
        segment.y[i] = reference_hat(&work->arithmetic, &segment, segment.y[i]);
    if (work->desc->y_given)
        recover_hats(work);
    work->rstd = segment.rstd;
}

struct gate {
    struct estimate factor, slope;
};

static struct gate gate_at(const struct work *work, uint64_t i) {
    const clnorm_gate gate = work->desc->gate;
    if (!gate)
        return (struct gate){estimate_exact(1), estimate_exact(0)};
    const double z = reference_value(work->inputs->forward.z, work->start + i).value;
    return (struct gate){estimate_gate(&work->arithmetic, gate, z), estimate_gate_slope(&work->arithmetic, gate, z)};
}

/* n, while y is x̂. */
static struct estimate n_at(const struct work *work, uint64_t i) {
    const struct norm_inputs *const forward = &work->inputs->forward;
    const struct estimate n = estimate_multiply(&work->arithmetic, work->gradients->y[i], scale_at(work, i));
    return forward->bias ? estimate_add(&work->arithmetic, n, reference_value(forward->bias, work->first + i)) : n;
}

static struct estimate dn_at(const struct work *work, uint64_t i) {
    struct estimate dn = reference_value(work->inputs->dy, work->start + i);
    if (work->desc->gate && !work->desc->gate_first)
        dn = estimate_multiply(&work->arithmetic, dn, gate_at(work, i).factor);
    if (!work->desc->activation)
        return dn;
    const clnorm_activation activation = work->desc->activation;
    return estimate_multiply(&work->arithmetic, dn,
                             reference_activation_slope(&work->arithmetic, activation, n_at(work, i)));
}

static void take_means(struct work *work) {
    const struct arithmetic *const arithmetic = &work->arithmetic;
    const uint64_t count = work->desc->group_size;
    const double error = error_over_segment(arithmetic, count);
    struct estimate_sum product = {0};
    struct estimate_sum gradient = {0};
    for (uint64_t i = 0; i < count; i++) {
        const struct estimate wdn = estimate_multiply(arithmetic, scale_at(work, i), dn_at(work, i));
        estimate_sum_add(&product, estimate_multiply(arithmetic, work->gradients->y[i], wdn));
        estimate_sum_add(&gradient, wdn);
    }
    work->c1 = estimate_sum_over(&product, (double)count, error);
    work->c2 = estimate_exact(0);
    if (work->desc->norm == CLNORM_LAYER_NORM)
        work->c2 = estimate_sum_over(&gradient, (double)count, error);
}

/* Gradients at s and at n, where y = n, or n gated. */
static void put_element(const struct work *work, uint64_t i) {
    const struct arithmetic *const arithmetic = &work->arithmetic;
    const struct norm_inputs *const forward = &work->inputs->forward;
    const struct norm_gradients *const gradients = work->gradients;
    const struct gate gate = gate_at(work, i);
    const struct estimate hat = gradients->y[i];
    const struct estimate dn = dn_at(work, i);
    const struct estimate wdn = estimate_multiply(arithmetic, scale_at(work, i), dn);
    const struct estimate common = estimate_add(arithmetic, estimate_multiply(arithmetic, hat, work->c1), work->c2);
    const struct estimate active = reference_activation(arithmetic, work->desc->activation, n_at(work, i));
    struct estimate ds = estimate_multiply(arithmetic, work->rstd, estimate_subtract(arithmetic, wdn, common));
    if (work->inputs->dresidual_out)
        ds = estimate_add(arithmetic, ds, reference_value(work->inputs->dresidual_out, work->start + i));

    gradients->dweight[i] = estimate_multiply(arithmetic, dn, hat);
    gradients->dbias[i] = dn;
    gradients->dresidual[i] = ds;
    gradients->dx[i] = ds;
    gradients->y[i] = active;
    if (work->desc->gate_first) {
        const struct estimate dfactor = estimate_multiply(arithmetic, ds, reference_value(forward->x, work->start + i));
        gradients->dz[i] = estimate_multiply(arithmetic, dfactor, gate.slope);
        gradients->dx[i] = estimate_multiply(arithmetic, ds, gate.factor);
    } else {
        const struct estimate dy = reference_value(work->inputs->dy, work->start + i);
        gradients->dx[i] = reference_branch(arithmetic, forward, work->desc->dropout, ds, work->row, work->first + i);
        gradients->dz[i] = estimate_multiply(arithmetic, estimate_multiply(arithmetic, dy, active), gate.slope);
        gradients->y[i] = estimate_multiply(arithmetic, active, gate.factor);
    }
}

void reference_backward_segment(const clnorm_norm_backward_desc *desc, const struct norm_backward_inputs *inputs,
                                uint64_t row, uint64_t first, const struct norm_gradients *gradients) {
    struct work work = {.desc = desc,
                        .inputs = inputs,
                        .gradients = gradients,
                        .arithmetic = arithmetic_of(desc->x_dtype),
                        .row = row,
                        .start = row * desc->cols + first,
                        .first = first};
    take_hats(&work, row);
    take_means(&work);
    for (uint64_t i = 0; i < desc->group_size; i++)
        put_element(&work, i);
}
