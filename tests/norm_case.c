#include "norm_case.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "norm_quantized_check.h"
#include "plan_run.h"
#include "reference.h"

/* ------------------------------------------------------------------------------------------------------ tolerance */

/* How far results may be off, before they are rounded to their dtype. u is half a step of the arithmetic at 1. */
struct tolerance {
    double u;
    double tiny; /* what a device without denormals may drop */
    double sum;  /* error of a segment's mean, in u of the mean magnitude */
    double mean; /* of the mean */
    double rstd; /* of rstd */
};

/* Whether s is put together of several numbers. */
static bool is_sum(const clnorm_norm_desc *desc) {
    return desc->residual_dtype || desc->dropout > 0 || desc->row_scale;
}

/* Additions of one lane's one vector element follow each other; their roundings add up like a random walk, or all one way
 * where much the same number is added over and over or a large one swallows the small ones that come after it. The sums of
 * lanes and elements are then merged in pairs. */
static double sum_roundings(const struct norm_run *run) {
    const double width = (double)run->config.vec * run->config.lanes;
    const double chain = ceil((double)run->desc.group_size / width);
    const bool exact = run->input == INPUT_EXACT && !run->desc.gate_first && !is_sum(&run->desc) &&
                       (run->desc.norm == CLNORM_RMS_NORM || run->config.keep == CLNORM_KEEP_REGISTERS);
    if (exact)
        return 2;
    const bool one_way = run->input >= INPUT_SPIKES;
    return 4 + log2(width) + (one_way ? chain : 2 * sqrt(chain));
}

/* Relative error of act(z): exp to 3 units in the last place of an argument that was rounded, a sum and a quotient. */
static double gate_error(const struct norm_run *run, const struct tolerance *t, double z) {
    return run->desc.gate ? (16 + 2 * fabs(z)) * t->u : 0;
}

static double s_error(const struct norm_run *run, const struct tolerance *t, const struct ref_segment *segment,
                      uint64_t i) {
    if (run->desc.gate_first)
        return t->tiny + fabs(segment->s[i]) * gate_error(run, t, segment->z[i]);
    /* factors are multiplied first, and then x; the sum is rounded, too */
    return t->tiny + (is_sum(&run->desc) ? (3 * fabs(segment->part[i]) + fabs(segment->s[i])) * t->u : 0);
}

static struct tolerance tolerance_of(const struct norm_run *run, const struct ref_segment *segment) {
    const uint64_t n = run->desc.group_size;
    const bool wide = run->desc.x_dtype == CLNORM_F64;
    struct tolerance t = {.u = wide ? 0x1p-53 : 0x1p-24, .tiny = wide ? DBL_MIN : FLT_MIN, .sum = sum_roundings(run)};
    if (!isfinite(segment->variance))
        return t; /* the results follow from the formula without a rounding */
    double magnitude = 0;
    double largest = 0;
    double shift = 0; /* error of the mean that the errors of s make */
    for (uint64_t i = 0; i < n; i++) {
        magnitude += fabs(segment->s[i]);
        largest = fmax(largest, fabs(segment->s[i]));
        shift += s_error(run, &t, segment, i);
    }
    if (run->desc.norm == CLNORM_LAYER_NORM) /* sums may be of differences to one of the elements */
        t.mean = (t.sum * t.u * magnitude + shift) / (double)n + 4 * t.u * largest;
    double spread = 0; /* error of the mean square; where parts are merged, each has an error of its own in its mean */
    for (uint64_t i = 0; i < n; i++)
        spread += 2 * fabs(segment->centre[i]) * (t.mean + s_error(run, &t, segment, i));
    const double variance = (t.sum + 6) * t.u * segment->variance + spread / (double)n + t.mean * t.mean;
    const double least = segment->variance > variance ? segment->variance - variance : 0;
    t.rstd = 8 * t.u * segment->rstd + 1 / sqrt(least + run->desc.eps) - segment->rstd;
    if (run->desc.dropout > 0) /* a row of equal elements is as rare there as it is not exact */
        t.rstd += segment->rstd - 1 / sqrt(segment->variance + variance + run->desc.eps);
    return t;
}

/* No activation's slope is more than 1.13. exp to 3 units in the last place of an argument rounded a few times, or erf to
 * 16 of one. */
static double activated_error(const struct tolerance *t, double n, double n_error) {
    return 1.13 * n_error + (24 + 4 * fmin(fabs(n), 16)) * t->u * fabs(n) + t->tiny;
}

static double y_error(const struct norm_run *run, const struct tolerance *t, const struct ref_segment *segment,
                      uint64_t i) {
    const double centre = fabs(segment->centre[i]);
    const double scale = fabs(segment->scale[i]);
    const double act = fabs(segment->act[i]);
    const double centre_error = s_error(run, t, segment, i) + t->mean + t->u * centre;
    const double normed_error =
        centre * t->rstd + centre_error * (segment->rstd + t->rstd) + 5 * t->u * centre * segment->rstd;
    const double product = scale * centre * segment->rstd;
    const double n_error = scale * normed_error + t->u * (product + fabs(segment->bias[i])) + t->tiny;
    const double error = run->desc.activation ? activated_error(t, segment->n[i], n_error) : n_error;
    if (!run->desc.gate || run->desc.gate_first)
        return error;
    return act * error + (gate_error(run, t, segment->z[i]) + 2 * t->u) * fabs(segment->y[i]) + t->tiny;
}

/* Whether a stored result is a rounding of something within error of what is expected. */
static bool close_enough(clnorm_dtype dtype, double result, double expected, double error) {
    if (isnan(expected))
        return isnan(result);
    return result >= ref_round(dtype, expected - error) && result <= ref_round(dtype, expected + error);
}

/* ------------------------------------------------------------------------------------------------------- the case */

clnorm_norm_desc norm_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = norm;
    desc.rows = rows;
    desc.cols = cols;
    return desc;
}

static void print_sum(const struct norm_case *norm_case) {
    const clnorm_norm_desc *desc = &norm_case->desc;
    static const char *const activations[] = {"none", "gelu", "gelu_tanh", "silu"};
    if (desc->y_scaling)
        print_error("  y quantised, scaling %d by %" PRIu64 ", scale %g\n", (int)desc->y_scaling, desc->y_group_size,
                    desc->y_scale);
    print_error("  residual %s+%u, out %s+%u%s, strides %" PRIu64 " %" PRIu64
                "; dropout %g, mask %d; row_scale %d+%u; activation %s\n",
                clnorm_dtype_name(desc->residual_dtype), (unsigned)norm_case->shift.residual,
                clnorm_dtype_name(desc->residual_out_dtype), (unsigned)norm_case->shift.residual_out,
                norm_case->residual_in_place ? " in place" : "", desc->residual_stride, desc->residual_out_stride,
                desc->dropout, desc->save_mask, desc->row_scale, (unsigned)norm_case->shift.row_scale,
                activations[desc->activation]);
}

static const char *layout_text(const clnorm_norm_desc *desc, char *text, size_t capacity) {
    snprintf(text, capacity, "%s %" PRIu64 "x%" PRIu64 " groups of %" PRIu64 ", strides %" PRIu64 " %" PRIu64 " %" PRIu64,
             desc->norm == CLNORM_LAYER_NORM ? "layer_norm" : "rms_norm", desc->rows, desc->cols, desc->group_size,
             desc->x_stride, desc->y_stride, desc->z_stride);
    return text;
}

void norm_case_print(const struct norm_case *norm_case) {
    const clnorm_norm_desc desc = ref_norm_complete(&norm_case->desc);
    static const char *const gates[] = {"none", "silu", "sigmoid"};
    const clnorm_config *config = &desc.config;
    char layout[200];
    print_error(
        "case: %s; x %s+%u y %s+%u z %s+%u weight %s+%u bias %s+%u; gate %s%s, offset %g, eps %g, mean %d+%u, "
        "rstd %d+%u%s; %s, seed %" PRIu64
        "; config %u %u %u %u keep %u unroll %u reduce %u stores %u weights %u isa %u chunks %u prefetch %u registers %u "
        "shelved %u asked %u\n",
        layout_text(&desc, layout, sizeof layout), clnorm_dtype_name(desc.x_dtype), (unsigned)norm_case->shift.x,
        clnorm_dtype_name(desc.y_dtype), (unsigned)norm_case->shift.y, clnorm_dtype_name(desc.z_dtype),
        (unsigned)norm_case->shift.z, clnorm_dtype_name(desc.weight_dtype), (unsigned)norm_case->shift.weight,
        clnorm_dtype_name(desc.bias_dtype), (unsigned)norm_case->shift.bias, gates[desc.gate],
        desc.gate_first ? " first" : "", desc.weight_offset, desc.eps, desc.save_mean, (unsigned)norm_case->shift.mean,
        desc.save_rstd, (unsigned)norm_case->shift.rstd, norm_case->in_place ? ", in place" : "",
        input_name(norm_case->input), norm_case->seed, config->vec, config->lanes, config->segments, config->rounds,
        config->keep, config->unroll, config->reduce, config->stores, config->weights, config->isa, config->chunks,
        config->prefetch, config->registers, config->shelved, config->asked);
    print_sum(norm_case);
}

/* An output in an input's own buffer: a second view of it, with a copy of its bytes. */
static struct tensor view_of(const struct tensor *input) {
    struct tensor output = *input;
    output.host = malloc(input->size);
    assert_non_null(output.host);
    memcpy(output.host, input->host, input->size);
    return output;
}

/* What is added to x, and where the sum goes. */
static void make_sum(const struct norm_case *norm_case, struct norm_run *run) {
    const clnorm_norm_desc *desc = &run->desc;
    const uint64_t rows = desc->rows;
    const uint64_t cols = desc->cols;
    const clnorm_dtype real = desc->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    run->residual =
        tensor_make(desc->residual_dtype, rows, cols, desc->residual_stride, norm_case->shift.residual, TENSOR_NAN);
    run->row_scale =
        tensor_make(desc->row_scale ? real : CLNORM_DTYPE_NONE, 1, rows, rows, norm_case->shift.row_scale, TENSOR_NAN);
    tensor_fill(&run->residual, norm_case->input, desc->group_size, norm_case->seed + 4);
    tensor_fill_row_scale(&run->row_scale);
    run->residual_out = norm_case->residual_in_place
                            ? view_of(&run->residual)
                            : tensor_make(desc->residual_out_dtype, rows, cols, desc->residual_out_stride,
                                          norm_case->shift.residual_out, TENSOR_CANARY);
    const uint64_t pairs = (rows * cols + 1) / 2;
    run->mask = tensor_make(desc->save_mask ? CLNORM_F16 : CLNORM_DTYPE_NONE, 1, pairs, pairs, 0, TENSOR_CANARY);
}

struct norm_run norm_run_make(const struct norm_case *norm_case) {
    struct norm_run run = {.desc = ref_norm_complete(&norm_case->desc),
                           .in_place = norm_case->in_place,
                           .residual_in_place = norm_case->residual_in_place,
                           .input = norm_case->input,
                           .seed = {norm_case->seed * 0x9e3779b97f4a7c15, norm_case->seed << 31}};
    const clnorm_norm_desc *desc = &run.desc;
    const uint64_t rows = desc->rows;
    const uint64_t cols = desc->cols;
    const uint64_t groups = cols / desc->group_size;
    const clnorm_dtype z = desc->gate ? desc->z_dtype : CLNORM_DTYPE_NONE;
    const clnorm_dtype statistics = desc->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const clnorm_dtype mean = desc->save_mean ? statistics : CLNORM_DTYPE_NONE;
    const clnorm_dtype rstd = desc->save_rstd ? statistics : CLNORM_DTYPE_NONE;
    run.x = tensor_make(desc->x_dtype, rows, cols, desc->x_stride, norm_case->shift.x, TENSOR_NAN);
    run.weight = tensor_make(desc->weight_dtype, 1, cols, cols, norm_case->shift.weight, TENSOR_NAN);
    run.bias = tensor_make(desc->bias_dtype, 1, cols, cols, norm_case->shift.bias, TENSOR_NAN);
    run.z = tensor_make(z, rows, cols, desc->z_stride, norm_case->shift.z, TENSOR_NAN);
    run.mean = tensor_make(mean, groups, rows, rows, norm_case->shift.mean, TENSOR_CANARY);
    run.rstd = tensor_make(rstd, groups, rows, rows, norm_case->shift.rstd, TENSOR_CANARY);
    tensor_fill(&run.x, norm_case->input, desc->group_size, norm_case->seed);
    tensor_fill(&run.weight, INPUT_NORMAL, cols, norm_case->seed + 1);
    tensor_fill(&run.bias, INPUT_NORMAL, cols, norm_case->seed + 2);
    tensor_fill(&run.z, INPUT_NORMAL, cols, norm_case->seed + 3);
    run.y = norm_case->in_place ? view_of(&run.x)
                                : tensor_make(desc->y_dtype, rows, cols, desc->y_stride, norm_case->shift.y, TENSOR_CANARY);
    const struct scales scales = norm_scales_of(desc);
    run.y_scale = tensor_make(scales.cols ? CLNORM_F32 : CLNORM_DTYPE_NONE, scales.rows, scales.cols, scales.cols,
                              norm_case->shift.y_scale, TENSOR_CANARY);
    make_sum(norm_case, &run);
    return run;
}

enum { RUN_TENSORS = 13 };

static void list_tensors(struct norm_run *run, struct tensor *tensors[RUN_TENSORS]) {
    struct tensor *const all[RUN_TENSORS] = {&run->x,        &run->weight,    &run->bias,         &run->z,
                                             &run->y,        &run->mean,      &run->rstd,         &run->workspace,
                                             &run->residual, &run->row_scale, &run->residual_out, &run->mask,
                                             &run->y_scale};
    memcpy(tensors, all, sizeof all);
}

void norm_run_free(struct norm_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    for (int i = 0; i < RUN_TENSORS; i++)
        tensor_free(tensors[i]);
}

static void share_buffer(const struct fixture *fixture, struct tensor *input, struct tensor *output) {
    if (output->mem != NULL)
        return;
    tensor_upload(fixture, input);
    output->mem = input->mem;
    assert_int_equal(clRetainMemObject(output->mem), CL_SUCCESS);
}

void norm_run_upload(const struct fixture *fixture, struct norm_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    if (run->in_place)
        share_buffer(fixture, &run->x, &run->y);
    if (run->residual_in_place)
        share_buffer(fixture, &run->residual, &run->residual_out);
    for (int i = 0; i < RUN_TENSORS; i++)
        tensor_upload(fixture, tensors[i]);
}

clnorm_args norm_run_args(const struct norm_run *run) {
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.weight = tensor_buffer(&run->weight);
    args.bias = tensor_buffer(&run->bias);
    args.z = tensor_buffer(&run->z);
    args.y = tensor_buffer(&run->y);
    args.y_scale = tensor_buffer(&run->y_scale);
    args.mean = tensor_buffer(&run->mean);
    args.rstd = tensor_buffer(&run->rstd);
    args.workspace = tensor_buffer(&run->workspace);
    args.residual = tensor_buffer(&run->residual);
    args.row_scale = tensor_buffer(&run->row_scale);
    args.residual_out = tensor_buffer(&run->residual_out);
    args.dropout_mask = tensor_buffer(&run->mask);
    args.seed = run->desc.dropout > 0 ? &run->seed : NULL;
    return args;
}

clnorm_status norm_run_go(const struct fixture *fixture, struct norm_run *run) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &run->desc, &plan);
    if (status != CLNORM_SUCCESS)
        return status;
    clnorm_plan_config(plan, &run->config);
    run->workspace = plan_workspace(plan);
    norm_run_upload(fixture, run);
    const clnorm_args args = norm_run_args(run);
    return plan_run(fixture, plan, &args);
}

/* -------------------------------------------------------------------------------------------------- verification */

static bool check(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column, double expected,
                  double error) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return true;
    const double result = ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column);
    if (close_enough(tensor->dtype, result, expected, error))
        return true;
    print_error("%s[%" PRIu64 ", %" PRIu64 "] is %.9g, but should be %.9g within %.3g\n", name, row, column, result,
                expected, error);
    return false;
}

static bool check_mask(const struct norm_run *run, uint64_t row, uint64_t column) {
    if (run->mask.dtype == CLNORM_DTYPE_NONE)
        return true;
    const unsigned char mask = ((const unsigned char *)tensor_elements(&run->mask))[row * run->desc.cols + column];
    const bool kept = ref_kept(run->seed, run->desc.dropout, row, column);
    if (mask != kept)
        print_error("dropout_mask[%" PRIu64 ", %" PRIu64 "] is %d, but should be %d\n", row, column, mask, kept);
    return mask == kept;
}

static bool check_quantized(const struct norm_run *run, uint64_t row, uint64_t group, const struct ref_segment *segment,
                            const struct tolerance *tolerance) {
    const uint64_t size = run->desc.group_size;
    double *error = malloc(size * sizeof *error);
    assert_non_null(error);
    for (uint64_t i = 0; i < size; i++)
        error[i] = y_error(run, tolerance, segment, i);
    const bool good = norm_quantized_check(run, row, group * size, size, segment->y, error);
    free(error);
    return good;
}

static bool check_segment(const struct norm_run *run, uint64_t row, uint64_t group, const struct ref_segment *segment) {
    const struct tolerance tolerance = tolerance_of(run, segment);
    if (!check(&run->mean, "mean", group, row, segment->mean, tolerance.mean + tolerance.tiny) ||
        !check(&run->rstd, "rstd", group, row, segment->rstd, tolerance.rstd))
        return false;
    for (uint64_t i = 0; i < run->desc.group_size; i++) {
        const uint64_t column = group * run->desc.group_size + i;
        if ((!run->desc.y_scaling &&
             !check(&run->y, "y", row, column, segment->y[i], y_error(run, &tolerance, segment, i))) ||
            !check(&run->residual_out, "residual_out", row, column, segment->s[i], s_error(run, &tolerance, segment, i)) ||
            !check_mask(run, row, column))
            return false;
    }
    return !run->desc.y_scaling || check_quantized(run, row, group, segment, &tolerance);
}

bool norm_run_check(const struct norm_run *run) {
    const struct ref_norm norm = {.desc = run->desc,
                                  .x = tensor_elements(&run->x),
                                  .weight = tensor_elements(&run->weight),
                                  .bias = tensor_elements(&run->bias),
                                  .z = tensor_elements(&run->z),
                                  .residual = tensor_elements(&run->residual),
                                  .row_scale = tensor_elements(&run->row_scale),
                                  .seed = run->seed};
    const uint64_t groups = run->desc.cols / run->desc.group_size;
    struct ref_segment segment = ref_segment_make(run->desc.group_size);
    bool good = true;
    for (uint64_t i = 0; good && i < run->desc.rows * groups; i++) {
        ref_norm_segment(&norm, i / groups, i % groups, &segment);
        good = check_segment(run, i / groups, i % groups, &segment);
    }
    ref_segment_free(&segment);
    return good;
}

bool norm_run_verify(const struct fixture *fixture, struct norm_run *run) {
    const bool inputs_kept = (run->in_place || tensor_unchanged(fixture, &run->x, "x")) &&
                             tensor_unchanged(fixture, &run->weight, "weight") &&
                             tensor_unchanged(fixture, &run->bias, "bias") && tensor_unchanged(fixture, &run->z, "z") &&
                             (run->residual_in_place || tensor_unchanged(fixture, &run->residual, "residual")) &&
                             tensor_unchanged(fixture, &run->row_scale, "row_scale");
    return inputs_kept && tensor_receive(fixture, &run->residual_out, "residual_out") &&
           tensor_receive(fixture, &run->mask, "dropout_mask") && tensor_receive(fixture, &run->y, "y") &&
           tensor_receive(fixture, &run->y_scale, "y_scale") && tensor_receive(fixture, &run->mean, "mean") &&
           tensor_receive(fixture, &run->rstd, "rstd") && tensor_receive(fixture, &run->workspace, "workspace") &&
           norm_run_check(run);
}

bool norm_case_passes(const struct fixture *fixture, const struct norm_case *norm_case) {
    struct norm_run run = norm_run_make(norm_case);
    const clnorm_status status = norm_run_go(fixture, &run);
    bool good = status == CLNORM_SUCCESS;
    if (good)
        good = norm_run_verify(fixture, &run);
    else
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
    if (!good)
        norm_case_print(norm_case);
    norm_run_free(&run);
    return good;
}
