/* Norms of slices of the columns: see include/clnorm/norm_slices.h. */
#include "clnorm/norm_slices.h"

#include <math.h>
#include <stdlib.h>

#include "reference/norm_error.h"
#include "reference/row.h"

/* Units of error of 1 / √(squares / number + eps), where OpenCL allows 5 for a quotient and 6 for a root; and of c1 and c2,
 * which are quotients by the number of elements. */
enum { RSTD_UNITS = 16, SHARE_UNITS = 14 };

/* A row of a norm, with x as its only tensor. eps is rounded to the dtype of the arithmetic. */
static struct ref_norm norm_of(const struct ref_row *row, clnorm_norm norm, clnorm_dtype x, double eps) {
    return (struct ref_norm){
        .norm = norm,
        .rows = 1,
        .cols = row->cols,
        .group_size = row->group_size,
        .x = ref_doubles(row->input[0], row->cols),
        .eps = x == CLNORM_F64 ? eps : (double)(float)eps,
    };
}

/* ----------------------------------------------------------------------------------------------------------- forward */

bool ref_norm_statistics_row(const struct ref_row *row) {
    const clnorm_norm_statistics_desc *const desc = row->desc;
    const struct ref_norm norm = norm_of(row, desc->norm, desc->x.dtype, 0);
    const double n = (double)row->group_size;
    struct ref_segment segment = ref_segment_make(row->group_size);
    for (uint64_t group = 0; segment.s && group < row->cols / row->group_size; group++) {
        ref_norm_segment(&norm, 0, group, &segment);
        const struct ref_norm_error error = ref_norm_error_of(&norm, &row->arithmetic, &segment);
        const bool finite = isfinite(segment.variance);
        struct ref_value *const moments = row->output[0] + 3 * group;
        const double tiny = desc->norm == CLNORM_LAYER_NORM ? row->arithmetic.tiny : 0;
        moments[0] = (struct ref_value){segment.mean, finite ? error.mean + tiny : INFINITY};
        moments[1] =
            (struct ref_value){segment.variance * n, finite ? (error.variance + row->arithmetic.tiny) * n : INFINITY};
        moments[2] = (struct ref_value){n, 0};
    }
    const bool done = segment.s;
    ref_segment_free(&segment);
    return done;
}

/* The mean and rstd of a segment's moments. */
struct given {
    double mean, rstd;
};

static struct given given_by(const double *moments, const struct ref_norm *norm) {
    return (struct given){norm->norm == CLNORM_LAYER_NORM ? moments[0] : 0, 1 / sqrt(moments[1] / moments[2] + norm->eps)};
}

/* The relative error of that rstd. Small squares may be flushed to 0. */
static double given_error(const struct ref_arithmetic *arithmetic, const struct given *given) {
    return RSTD_UNITS * arithmetic->unit + arithmetic->tiny * given->rstd * given->rstd;
}

bool ref_norm_apply_row(const struct ref_row *row) {
    const clnorm_norm_apply_desc *const desc = row->desc;
    struct ref_norm norm = norm_of(row, desc->norm, desc->x.dtype, desc->eps);
    norm.weight = ref_doubles(row->input[1], row->cols);
    norm.bias = ref_doubles(row->input[2], row->cols);
    struct ref_segment segment = ref_segment_make(row->group_size);
    for (uint64_t group = 0; segment.s && group < row->cols / row->group_size; group++) {
        const struct given given = given_by(row->input[3] + 3 * group, &norm);
        ref_norm_segment(&norm, 0, group, &segment);
        segment.mean = given.mean;
        segment.rstd = given.rstd;
        const struct ref_norm_error error = {.norm = &norm,
                                             .arithmetic = &row->arithmetic,
                                             .segment = &segment,
                                             .rstd = given_error(&row->arithmetic, &given) * given.rstd};
        for (uint64_t i = 0; i < row->group_size; i++) {
            segment.centre[i] = segment.s[i] - given.mean;
            const double y = segment.centre[i] * given.rstd * segment.scale[i] + segment.bias[i];
            row->output[0][group * row->group_size + i] = (struct ref_value){y, ref_y_error(&error, i)};
        }
    }
    const bool done = segment.s;
    ref_segment_free(&segment);
    return done;
}

/* ---------------------------------------------------------------------------------------------------------- backward */

/* A row's backward, and a segment of it. given: the means and rstds of the groups, [2, groups]. */
struct backward {
    struct ref_norm_backward norm;
    struct ref_gradients gradients;
    struct ref_gradient_errors errors;
    double *given;
};

static void backward_free(struct backward *backward) {
    ref_gradients_free(&backward->gradients);
    ref_gradient_errors_free(&backward->errors);
    free(backward->given);
}

/* The row's inputs are x, dy, weight and moments. false: out of memory. */
static bool backward_make(struct backward *backward, const struct ref_row *row, const struct ref_norm *forward) {
    const uint64_t groups = row->cols / row->group_size;
    *backward = (struct backward){.norm = {.forward = *forward, .dy = ref_doubles(row->input[1], row->cols)},
                                  .gradients = ref_gradients_make(row->group_size),
                                  .errors = ref_gradient_errors_make(row->group_size),
                                  .given = ref_arrays(groups, 2)};
    if (!backward->gradients.dy || !backward->errors.xhat || !backward->given) {
        backward_free(backward);
        return false;
    }
    backward->norm.forward.weight = ref_doubles(row->input[2], row->cols);
    backward->norm.mean = ref_doubles(backward->given, 1);
    backward->norm.rstd = ref_doubles(backward->given + groups, 1);
    for (uint64_t group = 0; group < groups; group++) {
        const struct given given = given_by(row->input[3] + 3 * group, forward);
        backward->given[group] = given.mean;
        backward->given[groups + group] = given.rstd;
    }
    return true;
}

static void backward_segment(struct backward *backward, const struct ref_row *row, uint64_t group) {
    const struct given given = given_by(row->input[3] + 3 * group, &backward->norm.forward);
    backward->norm.rstd_error = given_error(&row->arithmetic, &given);
    ref_norm_backward_segment(&backward->norm, 0, group, &backward->gradients);
    ref_gradient_errors_of(&backward->norm, &row->arithmetic, &backward->gradients, &backward->errors);
}

static double product_error(const struct ref_row *row, double a, double a_error, double b, double b_error) {
    return ref_product_error(&row->arithmetic, (struct ref_value){a, a_error}, (struct ref_value){b, b_error});
}

/* Writes Σ(x̂ · wdy) and Σwdy, with their errors. */
static void put_sums(const struct backward *backward, const struct ref_row *row, struct ref_value sums[2]) {
    const struct ref_gradients *const g = &backward->gradients;
    const struct ref_gradient_errors *const e = &backward->errors;
    const double n = (double)row->group_size, roundings = (row->arithmetic.sum + 2) * row->arithmetic.unit;
    const bool layer = backward->norm.forward.norm == CLNORM_LAYER_NORM;
    sums[0] = (struct ref_value){g->c1 * n, 0};
    sums[1] = (struct ref_value){layer ? g->c2 * n : 0, 0};
    for (uint64_t i = 0; i < row->group_size; i++) {
        sums[0].error +=
            product_error(row, g->wdn[i], e->wdn[i], g->xhat[i], e->xhat[i]) + roundings * fabs(g->wdn[i] * g->xhat[i]);
        sums[1].error += layer ? e->wdn[i] + roundings * fabs(g->wdn[i]) : 0;
    }
}

bool ref_norm_backward_statistics_row(const struct ref_row *row) {
    const clnorm_norm_backward_statistics_desc *const desc = row->desc;
    const struct ref_norm forward = norm_of(row, desc->norm, desc->x.dtype, desc->eps);
    struct backward backward;
    if (!backward_make(&backward, row, &forward))
        return false;
    for (uint64_t group = 0; group < row->cols / row->group_size; group++) {
        backward_segment(&backward, row, group);
        put_sums(&backward, row, row->output[0] + 2 * group);
    }
    backward_free(&backward);
    return true;
}

/* dx by the given sums, which are over as many elements as the moments. */
static struct ref_value dx_of(const struct backward *backward, const struct ref_row *row, uint64_t group, uint64_t i) {
    const struct ref_gradients *const g = &backward->gradients;
    const struct ref_gradient_errors *const e = &backward->errors;
    const double unit = row->arithmetic.unit, rstd = g->forward.rstd;
    const double *const sums = row->input[4] + 2 * group, n = row->input[3][3 * group + 2];
    const double c1 = sums[0] / n, c2 = backward->norm.forward.norm == CLNORM_LAYER_NORM ? sums[1] / n : 0;
    const double shift = g->xhat[i] * c1, difference = g->wdn[i] - shift - c2;
    const double largest = fabs(g->wdn[i]) + fabs(shift) + fabs(c2);
    const double error = e->wdn[i] + SHARE_UNITS * unit * fabs(c2) + 4 * unit * largest + 2 * row->arithmetic.tiny +
                         product_error(row, g->xhat[i], e->xhat[i], c1, SHARE_UNITS * unit * fabs(c1));
    return (struct ref_value){difference * rstd,
                              product_error(row, difference, error, rstd, backward->norm.rstd_error * rstd)};
}

bool ref_norm_backward_apply_row(const struct ref_row *row) {
    const clnorm_norm_backward_apply_desc *const desc = row->desc;
    const struct ref_norm forward = norm_of(row, desc->norm, desc->x.dtype, desc->eps);
    struct backward backward;
    if (!backward_make(&backward, row, &forward))
        return false;
    for (uint64_t group = 0; group < row->cols / row->group_size; group++) {
        backward_segment(&backward, row, group);
        const struct ref_gradients *const g = &backward.gradients;
        for (uint64_t i = 0; i < row->group_size; i++) {
            const uint64_t column = group * row->group_size + i;
            row->output[0][column] = dx_of(&backward, row, group, i);
            if (row->output[1])
                row->output[1][column] = (struct ref_value){g->dn[i] * g->xhat[i], backward.errors.dweight[i]};
            if (row->output[2])
                row->output[2][column] = (struct ref_value){g->dn[i], backward.errors.dbias[i]};
        }
    }
    backward_free(&backward);
    return true;
}
