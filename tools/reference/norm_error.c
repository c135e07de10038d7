#include "reference/norm_error.h"

#include <math.h>
#include <stdlib.h>

#include "reference/activation.h"

/* ---------------------------------------------------------------------------------------------------------- elements */

/* The relative error of act(z): that of exp of a rounded argument, 3 units in the last place, of a sum and of a quotient.
 */
static double gate_error(const struct ref_norm_error *error, double z) {
    return error->norm->gate ? (16 + 2 * fabs(z)) * error->arithmetic->unit : 0;
}

/* Whether s is computed from several numbers. */
static bool is_sum(const struct ref_norm *norm) {
    return norm->residual.elements || norm->dropout > 0 || norm->row_scale.elements;
}

/* The factors of x are multiplied with each other first. The sum is rounded too. */
double ref_s_error(const struct ref_norm_error *error, uint64_t i) {
    const struct ref_segment *const segment = error->segment;
    const struct ref_arithmetic *const arithmetic = error->arithmetic;
    if (error->norm->gate_first)
        return arithmetic->tiny + fabs(segment->s[i]) * gate_error(error, segment->z[i]);
    if (!is_sum(error->norm))
        return arithmetic->tiny;
    return arithmetic->tiny + (3 * fabs(segment->part[i]) + fabs(segment->s[i])) * arithmetic->unit;
}

/* The error of activation(n). No activation's slope is more than 1.13. An activation has an exp to 3 units in the last
 * place, of an argument rounded a few times, or an erf to 16 units. */
static double activation_error(const struct ref_norm_error *error, double n, double n_error) {
    if (!error->norm->activation)
        return n_error;
    const double own = (24 + 4 * fmin(fabs(n), 16)) * error->arithmetic->unit;
    return 1.13 * n_error + own * fabs(n) + error->arithmetic->tiny;
}

/* The error of activation′(n). No activation's second derivative is more than 0.8. */
static double activation_slope_error(const struct ref_norm_error *error, double n, double n_error) {
    if (!error->norm->activation)
        return 0;
    const double own = (24 + 4 * fmin(fabs(n), 16)) * error->arithmetic->unit;
    return 0.8 * n_error + own * (1 + fabs(n)) + error->arithmetic->tiny;
}

/* The error of y without a rotation. */
static double plain_y_error(const struct ref_norm_error *error, uint64_t i) {
    const struct ref_segment *const segment = error->segment;
    const double unit = error->arithmetic->unit;
    const double centre = fabs(segment->centre[i]);
    const double scale = fabs(segment->scale[i]);
    const double centre_error = ref_s_error(error, i) + error->mean + unit * centre;
    const double normed_error =
        centre * error->rstd + centre_error * (segment->rstd + error->rstd) + 5 * unit * centre * segment->rstd;
    const double product = scale * centre * segment->rstd;
    const double n_error = scale * normed_error + unit * (product + fabs(segment->bias[i])) + error->arithmetic->tiny;
    const double active = activation_error(error, segment->n[i], n_error);
    if (!error->norm->gate || error->norm->gate_first)
        return active;
    return fabs(segment->act[i]) * active + (gate_error(error, segment->z[i]) + 2 * unit) * fabs(segment->y[i]) +
           error->arithmetic->tiny;
}

/* A rotated y is the sum of two products. */
double ref_y_error(const struct ref_norm_error *error, uint64_t i) {
    const struct ref_segment *const segment = error->segment;
    if (segment->sin[i] == 0 && segment->cos[i] == 1)
        return plain_y_error(error, i);
    const uint64_t partner = ref_rope_turn(&error->norm->rope, 0, i).partner;
    const double own = fabs(segment->n[i] * segment->cos[i]), other = fabs(segment->n[partner] * segment->sin[i]);
    return plain_y_error(error, i) * fabs(segment->cos[i]) + plain_y_error(error, partner) * fabs(segment->sin[i]) +
           3 * error->arithmetic->unit * (own + other) + 3 * error->arithmetic->tiny;
}

/* -------------------------------------------------------------------------------------------------------- statistics */

static double mean_error(const struct ref_norm_error *error) {
    const uint64_t n = error->norm->group_size;
    const struct ref_arithmetic *const arithmetic = error->arithmetic;
    double magnitude = 0;
    double largest = 0;
    double inputs = 0; /* the sum of the errors of s */
    for (uint64_t i = 0; i < n; i++) {
        magnitude += fabs(error->segment->s[i]);
        largest = fmax(largest, fabs(error->segment->s[i]));
        inputs += ref_s_error(error, i);
    }
    return (arithmetic->statistics * arithmetic->unit * magnitude + inputs) / (double)n +
           arithmetic->shift * arithmetic->unit * largest;
}

/* Parts that are merged have an error in their means each. */
static double variance_error(const struct ref_norm_error *error) {
    const struct ref_segment *const segment = error->segment;
    double spread = 0; /* error of the mean square */
    for (uint64_t i = 0; i < error->norm->group_size; i++)
        spread += 2 * fabs(segment->centre[i]) * (error->mean + ref_s_error(error, i));
    return (error->arithmetic->statistics + 6) * error->arithmetic->unit * segment->variance +
           spread / (double)error->norm->group_size + error->mean * error->mean;
}

static double rstd_error(const struct ref_norm_error *error) {
    const struct ref_segment *const segment = error->segment;
    const double eps = error->norm->eps;
    const double unit = error->arithmetic->unit;
    const double variance = error->variance;
    const double least = segment->variance > variance ? segment->variance - variance : 0;
    const double below = 8 * unit * segment->rstd + 1 / sqrt(least + eps) - segment->rstd;
    if (error->norm->dropout == 0)
        return below;
    /* With dropout even equal elements may have a variance above 0, and a smaller rstd than the reference. */
    return below + segment->rstd - 1 / sqrt(segment->variance + variance + eps);
}

struct ref_norm_error ref_norm_error_of(const struct ref_norm *norm, const struct ref_arithmetic *arithmetic,
                                        const struct ref_segment *segment) {
    struct ref_norm_error error = {.norm = norm, .arithmetic = arithmetic, .segment = segment};
    if (!isfinite(segment->variance))
        return error;
    if (norm->norm == CLNORM_LAYER_NORM)
        error.mean = mean_error(&error);
    error.variance = variance_error(&error);
    error.rstd = rstd_error(&error);
    return error;
}

/* -------------------------------------------------------------------------------------------------------- gradients */

struct ref_gradient_errors ref_gradient_errors_make(uint64_t group_size) {
    double *const memory = ref_arrays(group_size, 9);
    if (!memory)
        return (struct ref_gradient_errors){.xhat = NULL};
    return (struct ref_gradient_errors){
        .xhat = memory,
        .n = memory + group_size,
        .dn = memory + 2 * group_size,
        .wdn = memory + 3 * group_size,
        .dx = memory + 4 * group_size,
        .dz = memory + 5 * group_size,
        .y = memory + 6 * group_size,
        .dweight = memory + 7 * group_size,
        .dresidual = memory + 8 * group_size,
        .dbias = memory + 2 * group_size, /* its term is dn */
    };
}

void ref_gradient_errors_free(struct ref_gradient_errors *errors) {
    free(errors->xhat); /* the others are parts of it */
    *errors = (struct ref_gradient_errors){.xhat = NULL};
}

/* A segment's gradients and their errors. */
struct work {
    const struct ref_norm_backward *norm;
    const struct ref_gradients *gradients;
    struct ref_gradient_errors *errors;
    struct ref_norm_error forward;
    double c1, c2;
};

static double product(const struct work *work, double a, double a_error, double b, double b_error) {
    const struct ref_value factors[2] = {{a, a_error}, {b, b_error}};
    return ref_product_error(work->forward.arithmetic, factors[0], factors[1]);
}

/* act′(z) has the factor 1 − sigmoid(z), which is as exact as sigmoid(z); SiLU multiplies it by z. */
static double slope_error(const struct work *work, double z) {
    const clnorm_gate gate = work->norm->forward.gate;
    const double factor = gate == CLNORM_GATE_SILU ? 1 + fabs(z) : 1;
    return gate ? 2 * gate_error(&work->forward, z) * ref_sigmoid(z) * factor + work->forward.arithmetic->tiny : 0;
}

/* The error of an x̂ that is computed from an exact y: by the difference, the weight's offset, and a quotient to 2.5 units
 * in the last place. */
static double recovery_error(const struct work *work, double xhat, double scale) {
    const struct ref_arithmetic *const arithmetic = work->forward.arithmetic;
    return 8 * arithmetic->unit * fabs(xhat) + arithmetic->tiny * (1 + 1 / fabs(scale));
}

/* The errors of an element up to wdn, of y and of the terms of the sums over rows. */
static void forward_error(const struct work *work, uint64_t i) {
    const struct ref_gradients *const g = work->gradients;
    const struct ref_segment *const f = &g->forward;
    struct ref_gradient_errors *const e = work->errors;
    const struct ref_norm *const norm = &work->norm->forward;
    const bool gate_last = norm->gate && !norm->gate_first;
    const double unit = work->forward.arithmetic->unit;
    const double act = fabs(f->act[i]) * gate_error(&work->forward, f->z[i]);
    const double scale = unit * fabs(f->scale[i]); /* the weight's offset is added */
    const double centre = ref_s_error(&work->forward, i) + work->forward.mean + unit * fabs(f->centre[i]);
    e->xhat[i] = work->norm->y_given ? recovery_error(work, g->xhat[i], f->scale[i])
                                     : product(work, f->centre[i], centre, f->rstd, work->forward.rstd);
    e->n[i] = product(work, g->xhat[i], e->xhat[i], f->scale[i], scale) + 2 * unit * fabs(f->bias[i]);
    const double active = activation_error(&work->forward, g->n[i], e->n[i]);
    const double slope = activation_slope_error(&work->forward, g->n[i], e->n[i]);
    const double gated = gate_last ? product(work, g->dy[i], 0, f->act[i], act) : 0;
    e->dn[i] =
        norm->activation ? product(work, g->dy[i] * (gate_last ? f->act[i] : 1), gated, g->active_slope[i], slope) : gated;
    if (norm->rope.form)
        e->dn[i] = 3 * unit * g->turned[i] + 3 * work->forward.arithmetic->tiny;
    e->wdn[i] = product(work, g->dn[i], e->dn[i], f->scale[i], scale);
    e->y[i] = gate_last ? product(work, g->active[i], active, f->act[i], act) : active;
    e->dweight[i] = product(work, g->dn[i], e->dn[i], g->xhat[i], e->xhat[i]);
}

/* The errors of c1 and c2, which are the same for each element of a segment. */
static void take_means(struct work *work) {
    const struct ref_gradients *const g = work->gradients;
    const struct ref_gradient_errors *const e = work->errors;
    const double n = (double)work->norm->forward.group_size;
    const double unit = work->forward.arithmetic->unit;
    const double sum = work->forward.arithmetic->sum * unit;
    for (uint64_t i = 0; i < work->norm->forward.group_size; i++) {
        work->c1 += product(work, g->wdn[i], e->wdn[i], g->xhat[i], e->xhat[i]) + sum * fabs(g->wdn[i] * g->xhat[i]);
        work->c2 += e->wdn[i] + sum * fabs(g->wdn[i]);
    }
    work->c1 = work->c1 / n + 2 * unit * fabs(g->c1);
    work->c2 = work->norm->forward.norm == CLNORM_LAYER_NORM ? work->c2 / n + 2 * unit * fabs(g->c2) : 0;
}

static void input_error(const struct work *work, uint64_t i) {
    const struct ref_gradients *const g = work->gradients;
    const struct ref_segment *const f = &g->forward;
    struct ref_gradient_errors *const e = work->errors;
    const struct ref_norm *const norm = &work->norm->forward;
    const double unit = work->forward.arithmetic->unit;
    const double shift = g->xhat[i] * g->c1;
    const double difference = g->wdn[i] - shift - g->c2;
    const double largest = fabs(g->wdn[i]) + fabs(shift) + fabs(g->c2);
    const double difference_error =
        e->wdn[i] + work->c2 + 4 * unit * largest + product(work, g->xhat[i], e->xhat[i], g->c1, work->c1);
    const double ds = product(work, difference, difference_error, f->rstd, work->forward.rstd);
    const double act = fabs(f->act[i]) * gate_error(&work->forward, f->z[i]);
    const double slope = slope_error(work, f->z[i]);
    if (norm->gate_first) {
        e->dx[i] = product(work, g->ds[i], ds, f->act[i], act);
        e->dz[i] = product(work, g->ds[i] * g->x[i], ds * fabs(g->x[i]), g->slope[i], slope);
        return;
    }
    const double active = activation_error(&work->forward, g->n[i], e->n[i]);
    const bool scaled = norm->dropout > 0 || norm->row_scale.elements;
    e->dresidual[i] = ds + (work->norm->dresidual_out.elements ? unit * fabs(g->ds[i]) : 0);
    e->dx[i] =
        scaled ? product(work, g->ds[i], e->dresidual[i], g->factor[i], 2 * unit * fabs(g->factor[i])) : e->dresidual[i];
    e->dz[i] = product(work, g->dy[i] * g->active[i], active * fabs(g->dy[i]), g->slope[i], slope);
}

void ref_gradient_errors_of(const struct ref_norm_backward *norm, const struct ref_arithmetic *arithmetic,
                            const struct ref_gradients *gradients, struct ref_gradient_errors *errors) {
    const struct ref_norm forward = ref_norm_forward(norm);
    struct work work = {.norm = norm, .gradients = gradients, .errors = errors};
    work.forward = ref_norm_error_of(&forward, arithmetic, &gradients->forward);
    if (norm->rstd.elements) { /* given statistics have no error but rstd_error */
        work.forward.mean = 0;
        work.forward.rstd = norm->rstd_error * gradients->forward.rstd;
    }
    for (uint64_t i = 0; i < norm->forward.group_size; i++)
        forward_error(&work, i);
    take_means(&work);
    for (uint64_t i = 0; i < norm->forward.group_size; i++)
        input_error(&work, i);
}

/* ------------------------------------------------------------------------------------------------------ sums over rows */

void ref_row_sum_add(struct ref_row_sum *sum, double term, double error) {
    ref_sum_add(&sum->sum, term);
    ref_sum_add(&sum->magnitude, fabs(term));
    ref_sum_add(&sum->error, error);
}

void ref_add_row(const struct ref_gradients *gradients, const struct ref_gradient_errors *errors, uint64_t group_size,
                 struct ref_row_sum *dweight, struct ref_row_sum *dbias) {
    for (uint64_t i = 0; i < group_size; i++) {
        ref_row_sum_add(&dweight[i], gradients->dn[i] * gradients->xhat[i], errors->dweight[i]);
        ref_row_sum_add(&dbias[i], gradients->dn[i], errors->dbias[i]);
    }
}
