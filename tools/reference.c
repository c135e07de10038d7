#include "reference.h"

#include <math.h>

#include "reference_fused.h"

struct estimate reference_value(const struct tensor *tensor, uint64_t index) {
    return estimate_exact(element_load(tensor->element, tensor->data, index));
}

/* Puts s into segment->y, as a value and its slack. */
static void load_segment(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                         const struct arithmetic *arithmetic, struct norm_segment *segment) {
    const uint64_t start = row * desc->cols + first;
    for (uint64_t i = 0; i < desc->group_size; i++) {
        struct estimate s = reference_value(inputs->x, start + i);
        if (desc->dropout > 0 || desc->row_scale)
            s = reference_branch(arithmetic, inputs, desc->dropout, s, row, first + i);
        if (desc->residual_dtype)
            s = estimate_add(arithmetic, s, reference_value(inputs->residual, start + i));
        if (desc->gate && desc->gate_first)
            s = estimate_multiply(arithmetic, s,
                                  estimate_gate(arithmetic, desc->gate, reference_value(inputs->z, start + i).value));
        s.slack += arithmetic->tiny;
        segment->y[i] = s;
    }
}

/* Mean and rstd of the s in segment->y. */
static void take_statistics(const clnorm_norm_desc *desc, const struct arithmetic *arithmetic,
                            struct norm_segment *segment) {
    const uint64_t n = desc->group_size;
    const double sum_error = error_over_segment(arithmetic, n);
    struct estimate_sum sum = {0};
    for (uint64_t i = 0; i < n; i++)
        estimate_sum_add(&sum, segment->y[i]);
    segment->mean = (struct estimate){0, 0};
    if (desc->norm == CLNORM_LAYER_NORM)
        segment->mean = estimate_sum_over(&sum, (double)n, sum_error);

    long double squares = 0;
    long double slack_squares = 0;
    for (uint64_t i = 0; i < n; i++) {
        const long double deviation = (long double)segment->y[i].value - segment->mean.value;
        squares += deviation * deviation;
        slack_squares += (long double)segment->y[i].slack * segment->y[i].slack;
    }
    const double var = (double)(squares / n);
    const double own = (double)(slack_squares / n); /* what the slacks of s add, were they all of one sign */
    /* Partial sums are merged by their means, each of which was rounded: where the mean is far from 0, that is most of it.
     */
    const double partial = 2 * sqrt(var) * 4 * arithmetic->unit * (double)(sum.magnitude / n);
    const double error = (sum_error + 4 * arithmetic->unit) * var + segment->mean.slack * segment->mean.slack + own +
                         2 * sqrt(var * own) + partial + arithmetic->tiny;
    const double rstd = 1 / sqrt(var + desc->eps);
    const double most = 1 / sqrt(fmax(var - error, 0) + desc->eps);
    const double least = 1 / sqrt(var + error + desc->eps);
    segment->rstd = (struct estimate){rstd, fmax(most - rstd, rstd - least) + FUNCTION_UNITS * arithmetic->unit * rstd +
                                                arithmetic->tiny};
}

void reference_statistics(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                          struct norm_segment *segment) {
    const struct arithmetic arithmetic = arithmetic_of(desc->x_dtype);
    load_segment(desc, inputs, row, first, &arithmetic, segment);
    take_statistics(desc, &arithmetic, segment);
}

struct estimate reference_hat(const struct arithmetic *arithmetic, const struct norm_segment *segment, struct estimate s) {
    return estimate_multiply(arithmetic, estimate_subtract(arithmetic, s, segment->mean), segment->rstd);
}

struct estimate reference_scale(const struct arithmetic *arithmetic, const struct norm_inputs *inputs, double weight_offset,
                                uint64_t column) {
    if (!inputs->weight)
        return estimate_exact(1);
    return estimate_add(arithmetic, estimate_exact(weight_offset), reference_value(inputs->weight, column));
}

void reference_segment(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                       struct norm_segment *segment) {
    const struct arithmetic arithmetic = arithmetic_of(desc->x_dtype);
    const uint64_t start = row * desc->cols + first;
    reference_statistics(desc, inputs, row, first, segment);
    for (uint64_t i = 0; i < desc->group_size; i++) {
        if (segment->s)
            segment->s[i] = segment->y[i];
        struct estimate y = reference_hat(&arithmetic, segment, segment->y[i]);
        y = estimate_multiply(&arithmetic, y, reference_scale(&arithmetic, inputs, desc->weight_offset, first + i));
        if (inputs->bias)
            y = estimate_add(&arithmetic, y, reference_value(inputs->bias, first + i));
        y = reference_activation(&arithmetic, desc->activation, y);
        if (desc->gate && !desc->gate_first)
            y = estimate_multiply(&arithmetic, y,
                                  estimate_gate(&arithmetic, desc->gate, reference_value(inputs->z, start + i).value));
        segment->y[i] = y;
    }
}
