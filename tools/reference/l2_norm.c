#include "reference/l2_norm.h"

#include <math.h>
#include <stdlib.h>

#include "clnorm/l2_norm.h"
#include "reference/row.h"
#include "reference/sum.h"

struct ref_l2_segment ref_l2_segment_make(uint64_t group_size) {
    double *const memory = ref_arrays(group_size, 5);
    if (!memory)
        return (struct ref_l2_segment){.xhat = NULL};
    return (struct ref_l2_segment){
        .xhat = memory,
        .y = memory + group_size,
        .wdy = memory + 2 * group_size,
        .dx = memory + 3 * group_size,
        .dweight = memory + 4 * group_size,
    };
}

void ref_l2_segment_free(struct ref_l2_segment *segment) {
    free(segment->xhat); /* the others are parts of it */
    *segment = (struct ref_l2_segment){.xhat = NULL};
}

uint64_t ref_l2_weight_row(const struct ref_l2_norm *norm, uint64_t row) {
    return norm->weight_rows ? row / norm->weight_repeat % norm->weight_rows : 0;
}

/* Sets the length. Returns whether it is the floor. */
static bool take_length(const struct ref_l2_norm *norm, uint64_t row, uint64_t group, struct ref_l2_segment *segment) {
    if (norm->length.elements) {
        segment->length = ref_at(&norm->length, group, row);
        return norm->eps_is_floor && segment->length == norm->eps;
    }
    struct ref_sum squares = {0};
    for (uint64_t i = 0; i < norm->group_size; i++) {
        const double x = ref_at(&norm->x, row, group * norm->group_size + i);
        ref_sum_add_product(&squares, x, x);
    }
    const double root = sqrt(ref_sum_value(&squares));
    const bool on_floor = norm->eps_is_floor && root < norm->eps;
    segment->length = norm->eps_is_floor ? (on_floor ? norm->eps : root) : sqrt(ref_sum_value(&squares) + norm->eps);
    return on_floor;
}

void ref_l2_norm_segment(const struct ref_l2_norm *norm, uint64_t row, uint64_t group, struct ref_l2_segment *segment) {
    const uint64_t size = norm->group_size;
    const uint64_t first = group * size;
    const bool on_floor = take_length(norm, row, group, segment);
    struct ref_sum products = {0};
    for (uint64_t i = 0; i < size; i++) {
        const double weight = ref_at_or(&norm->weight, ref_l2_weight_row(norm, row), first + i, 1);
        const double dy = ref_at_or(&norm->dy, row, first + i, 0);
        segment->xhat[i] = ref_at(&norm->x, row, first + i) / segment->length;
        segment->y[i] = segment->xhat[i] * weight;
        segment->wdy[i] = weight * dy;
        segment->dweight[i] = dy * segment->xhat[i];
        ref_sum_add_product(&products, segment->xhat[i], segment->wdy[i]);
    }
    segment->c1 = on_floor ? 0 : ref_sum_value(&products);
    for (uint64_t i = 0; i < size; i++)
        segment->dx[i] = (segment->wdy[i] - segment->xhat[i] * segment->c1) / segment->length;
}

/* --------------------------------------------------------------------------------------------------- rows with errors */

/* The relative error of a computed length: half of that of the sum of squares, and that of a root. Small squares may be
 * flushed to 0. */
static double length_error(const struct ref_arithmetic *arithmetic, const struct ref_l2_norm *norm, double length) {
    if (norm->length.elements)
        return 0;
    const double dropped = (double)norm->group_size * arithmetic->tiny / 2 / (length * length);
    return ((arithmetic->statistics + 2) / 2 + arithmetic->function) * arithmetic->unit + fmin(dropped, 1);
}

/* A row of a norm, with x as its only tensor. eps is rounded to the dtype of the arithmetic. */
static struct ref_l2_norm norm_of(const struct ref_row *row, clnorm_dtype x, double eps, clnorm_eps_mode mode) {
    return (struct ref_l2_norm){
        .rows = 1,
        .cols = row->cols,
        .group_size = row->group_size,
        .x = ref_doubles(row->input[0], row->cols),
        .eps = x == CLNORM_F64 ? eps : (double)(float)eps,
        .eps_is_floor = mode == CLNORM_EPS_FLOOR,
    };
}

bool ref_l2_norm_row(const struct ref_row *row) {
    const clnorm_l2_norm_desc *const desc = row->desc;
    const struct ref_arithmetic *const arithmetic = &row->arithmetic;
    struct ref_l2_norm norm = norm_of(row, desc->x.dtype, desc->eps, desc->eps_mode);
    norm.weight = ref_doubles(row->input[1], row->cols);
    struct ref_l2_segment segment = ref_l2_segment_make(norm.group_size);
    for (uint64_t group = 0; segment.xhat && group < norm.cols / norm.group_size; group++) {
        ref_l2_norm_segment(&norm, 0, group, &segment);
        const double relative = length_error(arithmetic, &norm, segment.length);
        const double quotient = relative + (arithmetic->function + 1) * arithmetic->unit;
        if (row->output[1])
            row->output[1][group] = (struct ref_value){segment.length, relative * segment.length};
        for (uint64_t i = 0; i < norm.group_size; i++) {
            const uint64_t column = group * norm.group_size + i;
            const double dropped = arithmetic->tiny * (1 + fabs(ref_at_or(&norm.weight, 0, column, 1)));
            row->output[0][column] = (struct ref_value){segment.y[i], quotient * fabs(segment.y[i]) + dropped};
        }
    }
    const bool done = segment.xhat;
    ref_l2_segment_free(&segment);
    return done;
}

/* Writes dx and the row's term of dweight, with their errors. The error of Σ(x̂ · wdy) is in units of the sum of magnitudes.
 */
static void put_gradients(const struct ref_row *row, const struct ref_l2_norm *norm, uint64_t first,
                          const struct ref_l2_segment *segment) {
    const struct ref_arithmetic *const arithmetic = &row->arithmetic;
    const double relative = length_error(arithmetic, norm, segment->length);
    const double quotient = relative + (arithmetic->function + 1) * arithmetic->unit;
    const double length = fabs(segment->length); /* one that is given may be any number */
    double magnitude = 0;
    for (uint64_t i = 0; i < norm->group_size; i++)
        magnitude += fabs(segment->xhat[i] * segment->wdy[i]);
    const double sum_error = magnitude * ((arithmetic->sum + 3) * arithmetic->unit + 3 * quotient) +
                             (double)norm->group_size * arithmetic->tiny / length;
    for (uint64_t i = 0; i < norm->group_size; i++) {
        const double numerator = 2 * arithmetic->unit * fabs(segment->wdy[i]) + fabs(segment->xhat[i]) * sum_error;
        const double dx = segment->dx[i], term = segment->dweight[i];
        row->output[0][first + i] =
            (struct ref_value){dx, (numerator + 2 * arithmetic->tiny) / length + quotient * fabs(dx) + arithmetic->tiny};
        if (row->output[1])
            row->output[1][first + i] =
                (struct ref_value){term, quotient * fabs(term) + arithmetic->tiny * (1 + fabs(row->input[1][first + i]))};
    }
}

bool ref_l2_norm_backward_row(const struct ref_row *row) {
    const clnorm_l2_norm_backward_desc *const desc = row->desc;
    struct ref_l2_norm norm = norm_of(row, desc->x.dtype, desc->eps, desc->eps_mode);
    norm.dy = ref_doubles(row->input[1], row->cols);
    norm.weight = ref_doubles(row->input[2], row->cols);
    norm.length = ref_doubles(row->input[3], 1);
    struct ref_l2_segment segment = ref_l2_segment_make(norm.group_size);
    for (uint64_t group = 0; segment.xhat && group < norm.cols / norm.group_size; group++) {
        ref_l2_norm_segment(&norm, 0, group, &segment);
        put_gradients(row, &norm, group * norm.group_size, &segment);
    }
    const bool done = segment.xhat;
    ref_l2_segment_free(&segment);
    return done;
}
