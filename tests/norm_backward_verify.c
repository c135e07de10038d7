#include "norm_backward_verify.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------------------------- roundings */

/* Roundings of a chain of additions. They add up like a random walk, or all in one direction where a large number absorbs
 * the small ones after it. */
static double chain_roundings(double chain, bool one_way) {
    return one_way ? chain : 2 * sqrt(chain);
}

/* Roundings of the statistics' sums. Their kernel adds vectors of at least 8 elements, where the config has as many. */
static double statistic_roundings(const struct norm_backward_run *run) {
    const double n = (double)run->desc.group_size;
    const double width = fmin(8, (double)run->config.vec * run->config.lanes);
    return 4 + log2(n) + chain_roundings(ceil(n / width), run->input >= INPUT_SPIKES);
}

/* Roundings of c1 and c2. Each vector element of a lane has a chain of additions. Lanes and elements are merged in pairs,
 * and tiles in a chain again. */
static double segment_roundings(const struct norm_backward_run *run) {
    const double n = (double)run->desc.group_size;
    const double width = (double)run->config.vec * run->config.lanes;
    const double tile = fmin(n, (double)run->config.tile);
    return 4 + log2(width) + chain_roundings(ceil(tile / width) + ceil(n / tile), false);
}

static uint64_t weight_rows_of(const struct norm_backward_run *run) {
    return run->desc.weight_rows ? run->desc.weight_rows : 1;
}

/* Largest rounding error of a sum over rows. magnitude: the sum of its terms' magnitudes. Each row is added once, in any
 * order, and each slot once more. */
static double row_sum_error(const struct norm_backward_run *run, double magnitude) {
    const struct ref_arithmetic arithmetic = ref_arithmetic_of(run->desc.x.dtype);
    const uint64_t rows = run->desc.rows / weight_rows_of(run);
    return (4 + chain_roundings(2 * (double)rows, false)) * arithmetic.unit * magnitude + arithmetic.tiny;
}

static struct ref_arithmetic arithmetic_of(const struct norm_backward_run *run) {
    struct ref_arithmetic arithmetic = ref_arithmetic_of(run->desc.x.dtype);
    arithmetic.statistics = statistic_roundings(run);
    arithmetic.sum = segment_roundings(run);
    return arithmetic;
}

/* -------------------------------------------------------------------------------------------------- verification */

static bool check_segment(const struct norm_backward_run *run, uint64_t row, uint64_t group,
                          const struct ref_gradients *gradients, const struct ref_gradient_errors *errors) {
    for (uint64_t i = 0; i < run->desc.group_size; i++) {
        const uint64_t column = group * run->desc.group_size + i;
        if (!tensor_holds(&run->dx, "dx", row, column, gradients->dx[i], errors->dx[i]) ||
            !tensor_holds(&run->dz, "dz", row, column, gradients->dz[i], errors->dz[i]) ||
            !tensor_holds(&run->dresidual, "dresidual", row, column, gradients->ds[i], errors->dresidual[i]) ||
            !tensor_holds(&run->y, "y", row, column, gradients->forward.y[i], errors->y[i]))
            return false;
    }
    return true;
}

static bool check_sums(const struct norm_backward_run *run, const struct tensor *tensor, const struct tensor *before,
                       const char *name, const struct ref_row_sum *sums) {
    const uint64_t cols = run->desc.cols, count = tensor->dtype ? weight_rows_of(run) * cols : 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t row = i / cols, column = i % cols;
        struct ref_row_sum sum = sums[i];
        const double start =
            run->desc.accumulate ? ref_load(before->dtype, tensor_elements(before), row * before->stride + column) : 0;
        const double magnitude = ref_sum_value(&sum.magnitude) + 2 * fabs(start);
        const double additions = run->desc.rows ? row_sum_error(run, magnitude) : 0;
        ref_sum_add(&sum.sum, start);
        if (!tensor_holds(tensor, name, row, column, ref_sum_value(&sum.sum), ref_sum_value(&sum.error) + additions))
            return false;
    }
    return true;
}

static bool has_no_fault(const struct norm_backward_run *run) {
    if (!run->desc.y_given || norm_backward_run_fault(run) == 0)
        return true;
    print_error("fault is %u\n", norm_backward_run_fault(run));
    return false;
}

bool norm_backward_run_check(const struct norm_backward_run *run) {
    return norm_backward_runs_check(run, 1);
}

bool norm_backward_runs_check(const struct norm_backward_run *runs, size_t count) {
    const clnorm_norm_backward_desc *desc = &runs->desc;
    const struct ref_norm_backward norm = norm_backward_reference_of(runs);
    const struct ref_arithmetic arithmetic = arithmetic_of(runs);
    const uint64_t groups = desc->cols / desc->group_size;
    struct ref_gradients gradients = ref_gradients_make(desc->group_size);
    struct ref_gradient_errors errors = ref_gradient_errors_make(desc->group_size);
    const uint64_t sums = weight_rows_of(runs) * desc->cols;
    struct ref_row_sum *dweight = calloc(sums, 2 * sizeof *dweight);
    assert_non_null(dweight);
    struct ref_row_sum *dbias = dweight + sums;
    bool good = true;
    for (size_t k = 0; good && k < count; k++)
        good = has_no_fault(&runs[k]);
    for (uint64_t i = 0; good && i < desc->rows * groups; i++) {
        const uint64_t first = ref_norm_weight_row(&norm.forward, i / groups) * desc->cols + i % groups * desc->group_size;
        ref_norm_backward_segment(&norm, i / groups, i % groups, &gradients);
        ref_gradient_errors_of(&norm, &arithmetic, &gradients, &errors);
        for (size_t k = 0; good && k < count; k++)
            good = check_segment(&runs[k], i / groups, i % groups, &gradients, &errors);
        ref_add_row(&gradients, &errors, desc->group_size, dweight + first, dbias + first);
    }
    for (size_t k = 0; good && k < count; k++)
        good = check_sums(&runs[k], &runs[k].dweight, &runs[k].dweight_before, "dweight", dweight) &&
               check_sums(&runs[k], &runs[k].dbias, &runs[k].dbias_before, "dbias", dbias);
    if (!good && count > 1)
        print_error("in one of %zu runs of a case\n", count);
    free(dweight);
    ref_gradient_errors_free(&errors);
    ref_gradients_free(&gradients);
    return good;
}
