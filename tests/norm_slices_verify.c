#include "norm_slices_verify.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reference/reference.h"

/* Roundings of a sum over a segment: those of the fused norms' tests, and two for each merge. */
static double roundings_of(const struct slices_run *run) {
    const double chain = ceil((double)run->group_size / run->width);
    return 4 + log2(run->width) + (run->c->input >= (int)INPUT_SPIKES ? chain : 2 * sqrt(chain)) + 2 * run->slices;
}

/* The reference of a segment of whole rows, and its tolerances. */
struct expected {
    struct ref_norm_backward norm;
    struct ref_arithmetic arithmetic;
    struct ref_gradients gradients;
    struct ref_gradient_errors errors;
    struct ref_row_sum *dweight, *dbias; /* [cols] */
};

static struct expected expected_make(const struct slices_run *run) {
    const struct slices_case *const c = run->c;
    const double eps = c->x == CLNORM_F64 ? 1e-5 : (double)1e-5F;
    struct expected expected = {
        .norm = {.forward = {.norm = (clnorm_norm)c->norm,
                             .rows = c->rows,
                             .cols = run->cols,
                             .group_size = run->group_size,
                             .eps = eps},
                 .dy = tensor_operand(&run->dy)},
        .arithmetic = ref_arithmetic_of((clnorm_dtype)c->x),
        .gradients = ref_gradients_make(run->group_size),
        .errors = ref_gradient_errors_make(run->group_size),
        .dweight = calloc(2 * run->cols, sizeof(struct ref_row_sum)),
    };
    assert_true(expected.gradients.dy && expected.errors.xhat && expected.dweight);
    expected.dbias = expected.dweight + run->cols;
    expected.norm.forward.x = tensor_operand(&run->x);
    expected.norm.forward.weight = tensor_operand(&run->weight);
    expected.norm.forward.bias = tensor_operand(&run->bias);
    expected.arithmetic.statistics = expected.arithmetic.sum = roundings_of(run);
    return expected;
}

static void expected_free(struct expected *expected) {
    ref_gradients_free(&expected->gradients);
    ref_gradient_errors_free(&expected->errors);
    free(expected->dweight);
}

/* Whether a slice has the right moments of a segment: mean, sum of squared deviations and count. */
static bool moments_are_right(const struct expected *expected, const struct slice *slice, uint64_t row, uint64_t group,
                              const struct ref_norm_error *error) {
    const struct ref_segment *const segment = error->segment;
    const uint64_t index = group * expected->norm.forward.rows + row;
    const double n = (double)expected->norm.forward.group_size, tiny = expected->arithmetic.tiny;
    return tensor_holds(&slice->moments, "moments", index, 0, segment->mean, error->mean + tiny) &&
           tensor_holds(&slice->moments, "moments", index, 1, segment->variance * n, (error->variance + tiny) * n) &&
           tensor_holds(&slice->moments, "moments", index, 2, n, 0);
}

/* Whether a slice has the right sums over a whole segment. Each term may be off by the roundings of a product and a sum. */
static bool sums_are_right(const struct expected *expected, const struct slice *slice, uint64_t row, uint64_t group) {
    const struct ref_gradients *const g = &expected->gradients;
    const struct ref_gradient_errors *const e = &expected->errors;
    const struct ref_norm *const norm = &expected->norm.forward;
    const bool layer = norm->norm == CLNORM_LAYER_NORM;
    const double n = (double)norm->group_size, roundings = (expected->arithmetic.sum + 2) * expected->arithmetic.unit;
    double errors[2] = {expected->arithmetic.tiny * n, expected->arithmetic.tiny * n};
    for (uint64_t i = 0; i < norm->group_size; i++) {
        errors[0] += fabs(g->xhat[i]) * e->wdn[i] + fabs(g->wdn[i]) * e->xhat[i] + e->wdn[i] * e->xhat[i] +
                     roundings * fabs(g->xhat[i] * g->wdn[i]);
        errors[1] += e->wdn[i] + roundings * fabs(g->wdn[i]);
    }
    const uint64_t index = group * norm->rows + row;
    return tensor_holds(&slice->sums, "sums", index, 0, g->c1 * n, errors[0]) &&
           tensor_holds(&slice->sums, "sums", index, 1, layer ? g->c2 * n : 0, layer ? errors[1] : 0);
}

/* Whether a slice's results of a row are right. local: index of the group in the slice. */
static bool part_is_right(const struct slices_run *run, const struct expected *expected, const struct slice *slice,
                          uint64_t row, uint64_t local) {
    const struct ref_gradients *const g = &expected->gradients;
    const struct ref_norm_error error = ref_norm_error_of(&expected->norm.forward, &expected->arithmetic, &g->forward);
    const uint64_t first = run->c->whole ? 0 : slice->begin;
    bool right = moments_are_right(expected, slice, row, local, &error) && sums_are_right(expected, slice, row, local);
    for (uint64_t i = 0; i < slice->group_size && right; i++) {
        const uint64_t column = local * slice->group_size + i, k = first + i, place = slices_row(run->c, row);
        right = tensor_holds(&slice->y, "y", place, column, g->forward.y[k], ref_y_error(&error, k)) &&
                tensor_holds(slices_dx(run, slice), "dx", place, column, g->dx[k], expected->errors.dx[k]);
    }
    return right;
}

static bool segment_is_right(const struct slices_run *run, struct expected *expected, uint64_t row, uint64_t group) {
    ref_norm_backward_segment(&expected->norm, row, group, &expected->gradients);
    ref_gradient_errors_of(&expected->norm, &expected->arithmetic, &expected->gradients, &expected->errors);
    ref_add_row(&expected->gradients, &expected->errors, run->group_size, expected->dweight + group * run->group_size,
                expected->dbias + group * run->group_size);
    bool right = true;
    for (unsigned s = 0; s < run->slices && right; s++) {
        const struct slice *const slice = &run->slice[s];
        const bool has = !run->c->whole || (group >= slice->begin && group < slice->begin + slice->groups);
        right = !has || part_is_right(run, expected, slice, row, run->c->whole ? group - slice->begin : group);
    }
    return right;
}

static bool column_is_right(const struct slices_run *run, const struct expected *expected, const struct tensor *tensor,
                            const char *name, uint64_t column, const struct ref_row_sum *sum) {
    const double roundings = 4 + 2 * sqrt(2 * (double)run->c->rows);
    return tensor_holds(tensor, name, 0, column, ref_sum_value(&sum->sum),
                        ref_sum_value(&sum->error) +
                            roundings * expected->arithmetic.unit * ref_sum_value(&sum->magnitude) +
                            expected->arithmetic.tiny);
}

bool slices_run_is_right(const struct slices_run *run) {
    struct expected expected = expected_make(run);
    bool right = true;
    for (uint64_t row = 0; row < run->c->rows && right; row++)
        for (uint64_t group = 0; group < run->cols / run->group_size && right; group++)
            right = segment_is_right(run, &expected, row, group);
    for (unsigned s = 0; s < run->slices; s++)
        for (uint64_t column = 0; column < run->slice[s].cols && right; column++) {
            const struct slice *const slice = &run->slice[s];
            const uint64_t whole = slices_column(run, slice, column);
            right = column_is_right(run, &expected, &slice->dweight, "dweight", column, &expected.dweight[whole]) &&
                    column_is_right(run, &expected, &slice->dbias, "dbias", column, &expected.dbias[whole]);
        }
    expected_free(&expected);
    return right;
}
