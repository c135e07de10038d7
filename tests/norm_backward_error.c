#include "norm_backward_error.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct gradient_errors gradient_errors_make(uint64_t group_size) {
    double *room = calloc(group_size, 9 * sizeof(double));
    if (room == NULL) {
        fprintf(stderr, "no memory for the errors of %llu gradients\n", (unsigned long long)group_size);
        exit(1);
    }
    const struct gradient_errors errors = {
        .xhat = room,
        .n = room + group_size,
        .dn = room + 2 * group_size,
        .wdn = room + 3 * group_size,
        .dx = room + 4 * group_size,
        .dz = room + 5 * group_size,
        .y = room + 6 * group_size,
        .dweight = room + 7 * group_size,
        .dresidual = room + 8 * group_size,
        .dbias = room + 2 * group_size, /* its term is dn */
    };
    return errors;
}

void gradient_errors_free(struct gradient_errors *errors) {
    free(errors->xhat); /* the others are parts of it */
    *errors = (struct gradient_errors){0};
}

/* ------------------------------------------------------------------------------------------------------- roundings */

/* Half a step of the arithmetic at 1. */
static double unit_of(const struct rounding *rounding) {
    return rounding->desc->x_dtype == CLNORM_F64 ? 0x1p-53 : 0x1p-24;
}

/* What a device without denormals may drop. */
static double tiny_of(const struct rounding *rounding) {
    return rounding->desc->x_dtype == CLNORM_F64 ? DBL_MIN : FLT_MIN;
}

/* Roundings that count of a sum with this many additions in a row: like a random walk, or all one way where a large number
 * swallows the small ones that come after it. */
static double chain_roundings(double chain, bool one_way) {
    return one_way ? chain : 2 * sqrt(chain);
}

/* Of the sums that statistics are: by a kernel of their own, in vectors of 8 elements at least where there are as many. */
static double statistic_roundings(const struct rounding *rounding) {
    const double n = (double)rounding->desc->group_size;
    const double width = fmin(8, (double)rounding->config.vec * rounding->config.lanes);
    return 4 + log2(n) + chain_roundings(ceil(n / width), rounding->input >= INPUT_SPIKES);
}

/* Of c1 and c2: additions of one lane's one vector element follow each other, those of lanes and elements are merged in
 * pairs, and those of tiles follow each other again. */
static double segment_roundings(const struct rounding *rounding) {
    const double n = (double)rounding->desc->group_size;
    const double width = (double)rounding->config.vec * rounding->config.lanes;
    const double tile = fmin(n, (double)rounding->config.tile);
    return 4 + log2(width) + chain_roundings(ceil(tile / width) + ceil(n / tile), false);
}

/* Each row is added once, in any order, and the slots then once more. */
double row_sum_error(const struct rounding *rounding, double magnitude) {
    const double rows = (double)rounding->desc->rows;
    return (4 + chain_roundings(2 * rows, false)) * unit_of(rounding) * magnitude + tiny_of(rounding);
}

bool within_error(clnorm_dtype dtype, double result, double expected, double error) {
    if (isnan(expected))
        return isnan(result);
    if (isinf(expected))
        return result == expected;
    return result >= ref_round(dtype, expected - error) && result <= ref_round(dtype, expected + error);
}

/* ------------------------------------------------------------------------------------------------------------ gates */

/* Relative error of sigmoid(z) and of act(z): exp to 3 units in the last place of an argument that was rounded, a sum and a
 * quotient. */
static double gate_error(const struct rounding *rounding, double z) {
    return rounding->desc->gate ? (16 + 2 * fabs(z)) * unit_of(rounding) : 0;
}

/* act′(z) has the factor 1 − sigmoid(z), which is as good as sigmoid(z) is, for SiLU times z. */
static double slope_error(const struct rounding *rounding, double z) {
    const double sigmoid = 1 / (1 + exp(-z));
    const double factor = rounding->desc->gate == CLNORM_GATE_SILU ? 1 + fabs(z) : 1;
    return rounding->desc->gate ? 2 * gate_error(rounding, z) * sigmoid * factor + tiny_of(rounding) : 0;
}

/* ------------------------------------------------------------------------------------------------------- statistics */

struct statistic_errors {
    double mean, rstd;
};

static double s_error(const struct rounding *rounding, const struct ref_segment *segment, uint64_t i) {
    const clnorm_norm_backward_desc *desc = rounding->desc;
    if (desc->gate_first)
        return tiny_of(rounding) + fabs(segment->s[i]) * gate_error(rounding, segment->z[i]);
    const bool is_sum = !desc->s_given && (desc->residual_dtype || desc->dropout > 0 || desc->row_scale);
    return tiny_of(rounding) +
           (is_sum ? (3 * fabs(segment->part[i]) + fabs(segment->s[i])) * unit_of(rounding) : 0); /* factors, x, the sum */
}

/* The mean's and the variance's errors as the forward has them; what is given has none. */
static struct statistic_errors statistic_errors_of(const struct rounding *rounding, const struct ref_segment *segment) {
    const clnorm_norm_backward_desc *desc = rounding->desc;
    struct statistic_errors errors = {0};
    if (desc->rstd_given || !isfinite(segment->variance))
        return errors;
    const double n = (double)desc->group_size;
    const double u = unit_of(rounding);
    const double sum = statistic_roundings(rounding);
    double magnitude = 0;
    double largest = 0;
    double shift = 0;
    for (uint64_t i = 0; i < desc->group_size; i++) {
        magnitude += fabs(segment->s[i]);
        largest = fmax(largest, fabs(segment->s[i]));
        shift += s_error(rounding, segment, i);
    }
    if (desc->norm == CLNORM_LAYER_NORM)
        errors.mean = (sum * u * magnitude + shift) / n + 4 * u * largest;
    double spread = 0;
    for (uint64_t i = 0; i < desc->group_size; i++)
        spread += 2 * fabs(segment->centre[i]) * (errors.mean + s_error(rounding, segment, i));
    const double variance = (sum + 6) * u * segment->variance + spread / n + errors.mean * errors.mean;
    const double least = segment->variance > variance ? segment->variance - variance : 0;
    errors.rstd = 8 * u * segment->rstd + 1 / sqrt(least + desc->eps) - segment->rstd;
    if (desc->dropout > 0) /* a row of equal elements is as rare there as it is not exact */
        errors.rstd += segment->rstd - 1 / sqrt(segment->variance + variance + desc->eps);
    return errors;
}

/* -------------------------------------------------------------------------------------------------------- gradients */

/* Of a product, from those of its factors, with two roundings of its own. */
static double product_error(const struct rounding *rounding, double a, double a_error, double b, double b_error) {
    return fabs(a) * b_error + fabs(b) * a_error + a_error * b_error + 2 * unit_of(rounding) * fabs(a * b) +
           tiny_of(rounding);
}

/* Of activation(n) and its slope at n: 1.13 and 0.8 are the most that the first and the second derivatives come to, and
 * what they are computed from are exponentials of numbers that were rounded a few times. */
struct activation_errors {
    double value, slope;
};

static struct activation_errors activation_errors_of(const struct rounding *rounding, double n, double n_error) {
    const double own = (24 + 4 * fmin(fabs(n), 16)) * unit_of(rounding);
    if (!rounding->desc->activation)
        return (struct activation_errors){n_error, 0};
    return (struct activation_errors){1.13 * n_error + own * fabs(n) + tiny_of(rounding),
                                      0.8 * n_error + own * (1 + fabs(n)) + tiny_of(rounding)};
}

/* Of x̂ from y as it is: the difference, the weight's offset, and a quotient to 2.5 units in the last place. */
static double recovery_error(const struct rounding *rounding, double xhat, double scale) {
    return 8 * unit_of(rounding) * fabs(xhat) + tiny_of(rounding) * (1 + 1 / fabs(scale));
}

/* Everything up to wdn, y and the terms of the sums over rows. */
static void forward_errors(const struct rounding *rounding, const struct ref_gradients *gradients,
                           struct gradient_errors *errors) {
    const struct ref_segment *forward = &gradients->forward;
    const struct statistic_errors statistics = statistic_errors_of(rounding, forward);
    const bool gate_last = rounding->desc->gate && !rounding->desc->gate_first;
    const double u = unit_of(rounding);
    for (uint64_t i = 0; i < rounding->desc->group_size; i++) {
        const double act = fabs(forward->act[i]) * gate_error(rounding, forward->z[i]);
        const double scale = u * fabs(forward->scale[i]); /* the weight's offset is added */
        const double centre = s_error(rounding, forward, i) + statistics.mean + u * fabs(forward->centre[i]);
        errors->xhat[i] = rounding->desc->y_given
                              ? recovery_error(rounding, gradients->xhat[i], forward->scale[i])
                              : product_error(rounding, forward->centre[i], centre, forward->rstd, statistics.rstd);
        errors->n[i] = product_error(rounding, gradients->xhat[i], errors->xhat[i], forward->scale[i], scale) +
                       2 * u * fabs(forward->bias[i]);
        const struct activation_errors active = activation_errors_of(rounding, gradients->n[i], errors->n[i]);
        const double gated = gate_last ? product_error(rounding, gradients->dy[i], 0, forward->act[i], act) : 0;
        errors->dn[i] = rounding->desc->activation
                            ? product_error(rounding, gradients->dy[i] * (gate_last ? forward->act[i] : 1), gated,
                                            gradients->active_slope[i], active.slope)
                            : gated;
        errors->wdn[i] = product_error(rounding, gradients->dn[i], errors->dn[i], forward->scale[i], scale);
        errors->y[i] =
            gate_last ? product_error(rounding, gradients->active[i], active.value, forward->act[i], act) : active.value;
        errors->dweight[i] = product_error(rounding, gradients->dn[i], errors->dn[i], gradients->xhat[i], errors->xhat[i]);
    }
}

/* The same for each element of a segment. */
struct mean_errors {
    double c1, c2, rstd;
};

static struct mean_errors mean_errors_of(const struct rounding *rounding, const struct ref_gradients *gradients,
                                         const struct gradient_errors *errors) {
    const double n = (double)rounding->desc->group_size;
    const double sum = segment_roundings(rounding) * unit_of(rounding);
    struct mean_errors means = {.rstd = statistic_errors_of(rounding, &gradients->forward).rstd};
    for (uint64_t i = 0; i < rounding->desc->group_size; i++) {
        const double wdn = gradients->wdn[i];
        const double xhat = gradients->xhat[i];
        means.c1 += product_error(rounding, wdn, errors->wdn[i], xhat, errors->xhat[i]) + sum * fabs(wdn * xhat);
        means.c2 += errors->wdn[i] + sum * fabs(wdn);
    }
    means.c1 = means.c1 / n + 2 * unit_of(rounding) * fabs(gradients->c1);
    means.c2 = rounding->desc->norm == CLNORM_LAYER_NORM ? means.c2 / n + 2 * unit_of(rounding) * fabs(gradients->c2) : 0;
    return means;
}

void gradient_errors_of(const struct rounding *rounding, const struct ref_gradients *gradients,
                        struct gradient_errors *errors) {
    forward_errors(rounding, gradients, errors);
    const struct ref_segment *forward = &gradients->forward;
    const struct mean_errors means = mean_errors_of(rounding, gradients, errors);
    const double u = unit_of(rounding);
    for (uint64_t i = 0; i < rounding->desc->group_size; i++) {
        const double shift = gradients->xhat[i] * gradients->c1;
        const double difference = gradients->wdn[i] - shift - gradients->c2;
        const double largest = fabs(gradients->wdn[i]) + fabs(shift) + fabs(gradients->c2);
        const double error = errors->wdn[i] + means.c2 + 4 * u * largest +
                             product_error(rounding, gradients->xhat[i], errors->xhat[i], gradients->c1, means.c1);
        const double ds = product_error(rounding, difference, error, forward->rstd, means.rstd);
        const double act = fabs(forward->act[i]) * gate_error(rounding, forward->z[i]);
        const double slope = slope_error(rounding, forward->z[i]);
        if (rounding->desc->gate_first) {
            errors->dx[i] = product_error(rounding, gradients->ds[i], ds, forward->act[i], act);
            errors->dz[i] = product_error(rounding, gradients->ds[i] * gradients->x[i], ds * fabs(gradients->x[i]),
                                          gradients->slope[i], slope);
        } else {
            const double dyn = gradients->dy[i] * gradients->active[i];
            const double active = activation_errors_of(rounding, gradients->n[i], errors->n[i]).value;
            const double sum = rounding->desc->dresidual_out_dtype ? u * fabs(gradients->ds[i]) : 0;
            const bool scaled = rounding->desc->dropout > 0 || rounding->desc->row_scale;
            const double factor = gradients->factor[i];
            errors->dresidual[i] = ds + sum;
            errors->dx[i] =
                scaled ? product_error(rounding, gradients->ds[i], ds + sum, factor, 2 * u * fabs(factor)) : ds + sum;
            errors->dz[i] = product_error(rounding, dyn, active * fabs(gradients->dy[i]), gradients->slope[i], slope);
        }
    }
}
