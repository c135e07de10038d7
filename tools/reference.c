#include "reference.h"

#include <math.h>

/* The arithmetic that the kernel computes in. */
struct arithmetic {
    double unit; /* largest relative error of one operation */
    double tiny; /* a device may take smaller numbers for 0 */
    double sum;  /* largest relative error of a sum over the segment, of numbers of one sign */
};

/* A sum of n terms in lanes and vectors makes a random walk of n / 16 steps or fewer in each; with a margin. */
static struct arithmetic arithmetic_of(clnorm_dtype dtype, uint64_t n) {
    const double unit = dtype == CLNORM_F64 ? 0x1p-53 : 0x1p-24;
    return (struct arithmetic){unit, dtype == CLNORM_F64 ? 0x1p-1022 : 0x1p-126, (4 + sqrt((double)n) / 4) * unit};
}

enum { FUNCTION_UNITS = 8 }; /* units of error that a device may put into exp, a division or a reciprocal square root */

static double gate_factor(clnorm_gate gate, double z) {
    const double sigmoid = 1 / (1 + exp(-z));
    return gate == CLNORM_GATE_SILU ? z * sigmoid : sigmoid;
}

static double value_at(const struct tensor *tensor, uint64_t index) {
    return element_load(tensor->element, tensor->data, index);
}

/* Puts s into segment->y, as a value and its slack. */
static void load_segment(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t start,
                         const struct arithmetic *arithmetic, struct norm_segment *segment) {
    for (uint64_t i = 0; i < desc->group_size; i++) {
        double s = value_at(inputs->x, start + i);
        double slack = 0;
        if (desc->gate && desc->gate_first) {
            s *= gate_factor(desc->gate, value_at(inputs->z, start + i));
            slack = 2 * FUNCTION_UNITS * arithmetic->unit * fabs(s);
        }
        segment->y[i] = (struct estimate){s, slack + arithmetic->tiny};
    }
}

/* Mean and rstd of the s in segment->y. */
static void take_statistics(const clnorm_norm_desc *desc, const struct arithmetic *arithmetic,
                            struct norm_segment *segment) {
    const uint64_t n = desc->group_size;
    long double sum = 0;
    long double magnitude = 0;
    long double slacks = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += segment->y[i].value;
        magnitude += fabs(segment->y[i].value);
        slacks += segment->y[i].slack;
    }
    segment->mean = (struct estimate){0, 0};
    if (desc->norm == CLNORM_LAYER_NORM)
        segment->mean = (struct estimate){(double)(sum / n), (double)(arithmetic->sum * magnitude / n + slacks / n)};

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
    const double partial = 2 * sqrt(var) * 4 * arithmetic->unit * (double)(magnitude / n);
    const double error = (arithmetic->sum + 4 * arithmetic->unit) * var + segment->mean.slack * segment->mean.slack + own +
                         2 * sqrt(var * own) + partial + arithmetic->tiny;
    const double rstd = 1 / sqrt(var + desc->eps);
    const double most = 1 / sqrt(fmax(var - error, 0) + desc->eps);
    const double least = 1 / sqrt(var + error + desc->eps);
    segment->rstd = (struct estimate){rstd, fmax(most - rstd, rstd - least) + FUNCTION_UNITS * arithmetic->unit * rstd +
                                                arithmetic->tiny};
}

/* y for the s in place of which it comes. */
static struct estimate normalise(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t index,
                                 uint64_t column, const struct arithmetic *arithmetic, const struct norm_segment *segment,
                                 struct estimate s) {
    const double unit = arithmetic->unit;
    const double deviation = s.value - segment->mean.value;
    const double hat = deviation * segment->rstd.value;
    const double hat_slack = fabs(deviation) * segment->rstd.slack + (s.slack + segment->mean.slack) * segment->rstd.value +
                             2 * unit * fabs(hat);
    const double weight = inputs->weight ? desc->weight_offset + value_at(inputs->weight, column) : 1;
    const double bias = inputs->bias ? value_at(inputs->bias, column) : 0;
    double y = hat * weight + bias;
    double slack = fabs(weight) * hat_slack + 2 * unit * fabs(hat * weight) + unit * (fabs(y) + fabs(bias));
    if (desc->gate && !desc->gate_first) {
        const double factor = gate_factor(desc->gate, value_at(inputs->z, index));
        y *= factor;
        slack = slack * fabs(factor) + 2 * FUNCTION_UNITS * unit * fabs(y);
    }
    slack += arithmetic->tiny;
    return (struct estimate){y, isnan(slack) ? 0 : slack}; /* NaN comes from infinities, whose results are exact */
}

void reference_segment(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                       struct norm_segment *segment) {
    const struct arithmetic arithmetic = arithmetic_of(desc->x_dtype, desc->group_size);
    const uint64_t start = row * desc->cols + first;
    load_segment(desc, inputs, start, &arithmetic, segment);
    take_statistics(desc, &arithmetic, segment);
    for (uint64_t i = 0; i < desc->group_size; i++)
        segment->y[i] = normalise(desc, inputs, start + i, first + i, &arithmetic, segment, segment->y[i]);
}
