#include "group_norm_verify.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codes_check.h"
#include "reference/format.h"
#include "reference/group_norm.h"

/* Roundings of a sum over a group. Runs of 64 elements are summed about a pivot, with squares that are at most four times
 * those about the mean. Then come chains of runs and of chunks, vectors and lanes. */
static struct ref_arithmetic arithmetic_of(const struct group_case *c) {
    const uint64_t size = c->cols / c->groups * c->spatial;
    const double n = (double)size;
    struct ref_arithmetic arithmetic = ref_arithmetic_of((clnorm_dtype)c->x);
    arithmetic.statistics = arithmetic.sum = 4 * fmin(n, 64) + n / 64 + 32;
    return arithmetic;
}

static struct ref_tensor x_operand(const struct group_run *run) {
    struct ref_tensor x = tensor_operand(&run->x);
    x.scales = tensor_elements(&run->x_scale);
    x.scale_dtype = run->x_scale.dtype;
    x.scaling = (clnorm_scaling)run->more.x_scaling;
    return x;
}

static struct ref_group_norm reference_of(const struct group_run *run) {
    const struct group_case *const c = run->c;
    return (struct ref_group_norm){
        .rows = c->rows,
        .cols = c->cols,
        .spatial = c->spatial,
        .groups = c->groups,
        .layout = (clnorm_layout)c->layout,
        .x = x_operand(run),
        .dresidual_out = tensor_operand(&run->dresidual_out),
        .residual = tensor_operand(&run->residual),
        .dy = tensor_operand(&run->dy),
        .weight = tensor_operand(&run->weight),
        .bias = tensor_operand(&run->bias),
        .activation = (clnorm_activation)c->activation,
        .eps = c->x == CLNORM_F64 ? 1e-5 : (double)1e-5F,
    };
}

void group_statistics_fill(struct group_run *run) {
    const struct ref_group_norm norm = reference_of(run);
    struct ref_gathered gathered = ref_gathered_make(&norm);
    assert_non_null(gathered.memory);
    for (uint64_t i = 0; i < norm.rows * norm.groups; i++) {
        ref_group_norm_segment(&norm, i / norm.groups, i % norm.groups, &gathered);
        ref_store(run->mean.dtype, tensor_elements(&run->mean), i, gathered.gradients.forward.mean);
        ref_store(run->rstd.dtype, tensor_elements(&run->rstd), i, gathered.gradients.forward.rstd);
    }
    ref_gathered_free(&gathered);
}

/* The given or measured scale of a sample's y. */
static double y_scale_of(const struct group_run *run, uint64_t row) {
    if (run->more.y_given != 0)
        return (double)(float)run->more.y_given;
    const bool own = run->more.y_scaling == CLNORM_SCALING_ROW;
    return ref_load(run->y_scale.dtype, tensor_elements(&run->y_scale), own ? row : 0);
}

/* Whether a code lies between those of y's bounds: codes are ordered like their values. */
static bool code_is_right(const struct group_run *run, uint64_t row, uint64_t column, struct ref_value y) {
    const clnorm_dtype dtype = run->y.dtype;
    const unsigned code = ((const unsigned char *)tensor_elements(&run->y))[row * run->y.stride + column];
    const double scale = y_scale_of(run, row), slack = isfinite(y.value) ? y.error : 0;
    const double value = ref_code_value(dtype, code);
    if (isnan(y.value) ? code == 0x7f
                       : value >= codes_value(dtype, y.value - slack, scale, -1) &&
                             value <= codes_value(dtype, y.value + slack, scale, 1))
        return true;
    print_error("y[%" PRIu64 ", %" PRIu64 "] is code %02x, %g of %g: expected %.9g +- %.3g\n", row, column, code, value,
                scale, y.value, slack);
    return false;
}

static bool y_is_right(const struct group_run *run, uint64_t row, uint64_t column, struct ref_value y) {
    return run->more.y_scaling ? code_is_right(run, row, column, y)
                               : tensor_holds(&run->y, "y", row, column, y.value, y.error);
}

static bool group_is_right(const struct group_run *run, const struct ref_group_norm *norm, uint64_t row, uint64_t group,
                           const struct ref_gathered *gathered, struct magnitude *magnitude) {
    const struct ref_arithmetic arithmetic = arithmetic_of(run->c);
    const struct ref_segment *const s = &gathered->gradients.forward;
    const struct ref_norm_error error = ref_norm_error_of(&gathered->norm.forward, &arithmetic, s);
    bool right = tensor_holds(&run->mean, "mean", row, group, s->mean, error.mean) &&
                 tensor_holds(&run->rstd, "rstd", row, group, s->rstd, error.rstd);
    for (uint64_t i = 0; i < ref_group_norm_size(norm) && right; i++) {
        const uint64_t at = ref_group_norm_at(norm, group, i);
        const struct ref_value y = {s->y[i], ref_y_error(&error, i)};
        magnitude_add(magnitude, y.value, y.error);
        right = y_is_right(run, row, at, y) &&
                tensor_holds(&run->residual_out, "residual_out", row, at, s->s[i], ref_s_error(&error, i));
    }
    return right;
}

bool group_forward_is_right(const struct group_run *run) {
    const struct ref_group_norm norm = reference_of(run);
    struct ref_gathered gathered = ref_gathered_make(&norm);
    assert_non_null(gathered.memory);
    bool right = true;
    struct magnitude magnitude = {0, 0};
    for (uint64_t row = 0; row < norm.rows && right; row++) {
        for (uint64_t group = 0; group < norm.groups && right; group++) {
            ref_group_norm_segment(&norm, row, group, &gathered);
            right = group_is_right(run, &norm, row, group, &gathered, &magnitude);
        }
        const bool own = run->more.y_scaling == CLNORM_SCALING_ROW;
        if (right && run->y_scale.dtype && (own || row + 1 == norm.rows)) {
            right = codes_scale_is_right(run->y.dtype, "y_scale", &run->y_scale, own ? row : 0, magnitude);
            magnitude = (struct magnitude){0, 0};
        }
    }
    ref_gathered_free(&gathered);
    return right;
}

unsigned group_forward_check_cases(const struct fixture *fixture, const struct group_case *cases, size_t count) {
    unsigned ran = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        struct group_case c = cases[i / 2];
        if (!group_case_takes(fixture, &c, i % 2 ? CLNORM_LAYOUT_LAST : CLNORM_LAYOUT_FIRST, i / 2))
            continue;
        struct group_run run = group_run_make(&c);
        if (!group_forward_execute(fixture, &run, false) || !group_forward_is_right(&run))
            group_case_fail(fixture, &c, i / 2);
        group_run_free(&run);
        ran++;
    }
    return ran;
}

/* before: the values that the sum is added to; absent without accumulation. */
static bool sum_is_right(const struct tensor *tensor, const struct tensor *before, const char *name, uint64_t channel,
                         const struct ref_row_sum *sum, double roundings) {
    const double old = before->dtype ? ref_load(before->dtype, tensor_elements(before), channel) : 0;
    const double value = old + ref_sum_value(&sum->sum), unit = ref_arithmetic_of(tensor->dtype).unit;
    const double error = ref_sum_value(&sum->error) + roundings * ref_sum_value(&sum->magnitude);
    return tensor_holds(tensor, name, 0, channel, value, error + (old != 0 ? unit * fabs(value) : 0));
}

bool group_backward_is_right(const struct group_run *run, bool statistics_given) {
    const struct ref_arithmetic arithmetic = arithmetic_of(run->c);
    struct ref_group_norm norm = reference_of(run);
    norm.residual.elements = NULL;
    if (statistics_given) {
        norm.mean = tensor_operand(&run->mean);
        norm.rstd = tensor_operand(&run->rstd);
    }
    struct ref_gathered gathered = ref_gathered_make(&norm);
    struct ref_row_sum *const dweight = calloc(norm.cols, sizeof *dweight);
    struct ref_row_sum *const dbias = calloc(norm.cols, sizeof *dbias);
    assert_true(gathered.memory && dweight && dbias);
    bool right = true;
    for (uint64_t row = 0; row < norm.rows && right; row++)
        for (uint64_t group = 0; group < norm.groups && right; group++) {
            ref_group_norm_gradients(&norm, &arithmetic, row, group, &gathered);
            ref_group_norm_add(&norm, group, &gathered, dweight, dbias);
            for (uint64_t i = 0; i < ref_group_norm_size(&norm) && right; i++) {
                const uint64_t at = ref_group_norm_at(&norm, group, i);
                const double ds = gathered.gradients.ds[i], error = gathered.errors.dresidual[i];
                right = tensor_holds(&run->dx, "dx", row, at, ds, error) &&
                        tensor_holds(&run->dresidual, "dresidual", row, at, ds, error);
            }
        }
    const double roundings = arithmetic.sum * arithmetic.unit;
    for (uint64_t channel = 0; channel < norm.cols && right; channel++)
        right = sum_is_right(&run->dweight, &run->dweight_before, "dweight", channel, &dweight[channel], roundings) &&
                sum_is_right(&run->dbias, &run->dbias_before, "dbias", channel, &dbias[channel], roundings);
    free(dweight);
    free(dbias);
    ref_gathered_free(&gathered);
    return right;
}
