#include "norm_case.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "fp8_tensor.h"
#include "knob.h"
#include "norm_quantized_check.h"
#include "plan_run.h"
#include "reference/reference.h"

/* ------------------------------------------------------------------------------------------------------ tolerance */

/* Whether s differs from x. */
static bool is_sum(const clnorm_norm_desc *desc) {
    return desc->residual.dtype || desc->dropout > 0 || desc->row_scale;
}

/* Roundings of a sum over a segment. Each vector element of a lane has a chain of additions, whose roundings add up like
 * a random walk. They add up in one direction where nearly the same number is added again and again, or where a large one
 * absorbs the small ones after it. Lanes and elements are then merged in pairs. */
static double sum_roundings(const struct norm_run *run) {
    const double width = (double)run->config.vec * run->config.lanes;
    const double chain = ceil((double)run->desc.group_size / width);
    const bool exact = run->input == INPUT_EXACT && !run->desc.gate_first && !is_sum(&run->desc) &&
                       (run->desc.norm == CLNORM_RMS_NORM || run->config.keep == CLN_KEEP_REGISTERS);
    if (exact)
        return 2;
    const bool one_way = run->input >= INPUT_SPIKES;
    return 4 + log2(width) + (one_way ? chain : 2 * sqrt(chain));
}

static struct ref_arithmetic arithmetic_of(const struct norm_run *run) {
    struct ref_arithmetic arithmetic = ref_arithmetic_of(run->desc.x.dtype);
    arithmetic.statistics = sum_roundings(run);
    return arithmetic;
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
    if (desc->x.scaling)
        print_error("  x of 8 bits, scaling %d by %" PRIu32 ", scales %s+%u\n", (int)desc->x.scaling, desc->x.scale_group,
                    clnorm_dtype_name(desc->x.scale_dtype), (unsigned)norm_case->shift.x_scale);
    const clnorm_tensor *const codes = norm_codes_of(desc);
    if (codes->scaling)
        print_error("  y %s+%u, y_t %s+%u quantised, scaling %d by %" PRIu32
                    ", scale %g, scales %s, accuracy %d, rows' %u\n",
                    clnorm_dtype_name(desc->y.dtype), (unsigned)norm_case->shift.y, clnorm_dtype_name(desc->y_t.dtype),
                    (unsigned)norm_case->shift.y_t, (int)codes->scaling, codes->scale_group, codes->scale,
                    clnorm_dtype_name(codes->scale_dtype), (int)desc->accuracy, desc->save_y_row_scale);
    if (desc->rope)
        print_error("  rope %d of %" PRIu64 " columns, %" PRIu64 " positions, given %u, repeat %" PRIu64
                    "; tables %s %s+%u, strides %" PRIu64 " %" PRIu64 "\n",
                    (int)desc->rope, desc->rope_dims, desc->rope_positions, desc->position_given, desc->rope_repeat,
                    clnorm_dtype_name(desc->rope_cos.dtype), clnorm_dtype_name(desc->rope_sin.dtype),
                    (unsigned)norm_case->shift.rope, desc->rope_cos.stride, desc->rope_sin.stride);
    print_error("  residual %s+%u, out %s+%u%s, strides %" PRIu64 " %" PRIu64
                "; dropout %g, mask %d; row_scale %d+%u; activation %s\n",
                clnorm_dtype_name(desc->residual.dtype), (unsigned)norm_case->shift.residual,
                clnorm_dtype_name(desc->residual_out.dtype), (unsigned)norm_case->shift.residual_out,
                norm_case->residual_in_place ? " in place" : "", desc->residual.stride, desc->residual_out.stride,
                desc->dropout, desc->save_mask, desc->row_scale, (unsigned)norm_case->shift.row_scale,
                activations[desc->activation]);
}

static const char *layout_text(const clnorm_norm_desc *desc, char *text, size_t capacity) {
    snprintf(text, capacity, "%s %" PRIu64 "x%" PRIu64 " groups of %" PRIu64 ", strides %" PRIu64 " %" PRIu64 " %" PRIu64,
             desc->norm == CLNORM_LAYER_NORM ? "layer_norm" : "rms_norm", desc->rows, desc->cols, desc->group_size,
             desc->x.stride, desc->y.stride, desc->z.stride);
    return text;
}

void norm_settle(const struct fixture *fixture, clnorm_norm_desc *desc) {
    clnorm_plan *plan = NULL;
    while (clnorm_norm_forward_plan_create(fixture->context, desc, &plan) == CLNORM_INVALID_VALUE &&
           strstr(clnorm_error_detail(), "desc.config.vec") != NULL && KNOB(desc->config, vec) > 1)
        KNOB(desc->config, vec) /= 2;
    clnorm_plan_destroy(plan);
}

void norm_case_print(const struct norm_case *norm_case) {
    const clnorm_norm_desc desc = ref_norm_complete(&norm_case->desc);
    static const char *const gates[] = {"none", "silu", "sigmoid"};
    char layout[200], config[320];
    clnorm_config_text(&desc.config, config, sizeof config);
    print_error("case: %s; x %s+%u y %s+%u z %s+%u weight %s+%u bias %s+%u; gate %s%s, offset %g, eps %g, mean %d+%u, "
                "rstd %d+%u%s; %s, seed %" PRIu64 "; config %s\n",
                layout_text(&desc, layout, sizeof layout), clnorm_dtype_name(desc.x.dtype), (unsigned)norm_case->shift.x,
                clnorm_dtype_name(desc.y.dtype), (unsigned)norm_case->shift.y, clnorm_dtype_name(desc.z.dtype),
                (unsigned)norm_case->shift.z, clnorm_dtype_name(desc.weight.dtype), (unsigned)norm_case->shift.weight,
                clnorm_dtype_name(desc.bias.dtype), (unsigned)norm_case->shift.bias, gates[desc.gate],
                desc.gate_first ? " first" : "", desc.weight_offset, desc.eps, desc.save_mean,
                (unsigned)norm_case->shift.mean, desc.save_rstd, (unsigned)norm_case->shift.rstd,
                norm_case->in_place ? ", in place" : "", input_name(norm_case->input), norm_case->seed, config);
    if (desc.weight_rows)
        print_error("  %" PRIu64 " rows of weights, %" PRIu64 " neighbours take one, strides %" PRIu64 " %" PRIu64 "\n",
                    desc.weight_rows, desc.weight_repeat, desc.weight.stride, desc.bias.stride);
    print_sum(norm_case);
}

/* The residual, the row scales, residual_out and the dropout mask. */
static void make_sum(const struct norm_case *norm_case, struct norm_run *run) {
    const clnorm_norm_desc *desc = &run->desc;
    const uint64_t rows = desc->rows;
    const uint64_t cols = desc->cols;
    const clnorm_dtype real = desc->x.dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    run->residual =
        tensor_make(desc->residual.dtype, rows, cols, desc->residual.stride, norm_case->shift.residual, TENSOR_NAN);
    run->row_scale =
        tensor_make(desc->row_scale ? real : CLNORM_DTYPE_NONE, 1, rows, rows, norm_case->shift.row_scale, TENSOR_NAN);
    tensor_fill(&run->residual, norm_case->input, desc->group_size, norm_case->seed + 4);
    tensor_fill_row_scale(&run->row_scale);
    run->residual_out = norm_case->residual_in_place
                            ? tensor_view(&run->residual, desc->residual_out.dtype)
                            : tensor_make(desc->residual_out.dtype, rows, cols, desc->residual_out.stride,
                                          norm_case->shift.residual_out, TENSOR_CANARY);
    const uint64_t pairs = (rows * cols + 1) / 2;
    run->mask = tensor_make(desc->save_mask ? CLNORM_F16 : CLNORM_DTYPE_NONE, 1, pairs, pairs, 0, TENSOR_CANARY);
}

/* An 8-bit x has codes of all magnitudes, whose sums round like those of spikes. */
static void fill_x(const struct norm_case *norm_case, struct norm_run *run) {
    const clnorm_norm_desc *desc = &run->desc;
    const struct scales scales = fp8_scales_of(&desc->x, desc->rows, desc->cols);
    const clnorm_dtype dtype = desc->x.scale_dtype ? desc->x.scale_dtype : CLNORM_F32;
    if (!desc->x.scaling) {
        tensor_fill(&run->x, norm_case->input, desc->group_size, norm_case->seed);
        return;
    }
    run->x_scale = tensor_make(dtype, scales.rows, scales.cols, scales.cols, norm_case->shift.x_scale, TENSOR_NAN);
    run->input = INPUT_SPIKES;
    fp8_fill(&run->x, false);
    fp8_fill_scales(&run->x_scale);
}

/* The transposed copy of an 8-bit y, and its measured scales. */
static void make_codes(const struct norm_case *norm_case, struct norm_run *run) {
    const clnorm_norm_desc *desc = &run->desc;
    const clnorm_tensor *const codes = norm_codes_of(desc);
    const struct scales scales = fp8_scales_of(codes, desc->rows, desc->cols);
    const clnorm_dtype otherwise = desc->accuracy == CLNORM_FP8_COMPATIBLE ? CLNORM_BF16 : CLNORM_F32;
    const clnorm_dtype dtype = codes->scale_dtype ? codes->scale_dtype : otherwise;
    run->y_t = tensor_make(desc->y_t.dtype, desc->cols, desc->rows, desc->y_t.stride, norm_case->shift.y_t, TENSOR_CANARY);
    run->y_scale = tensor_make(codes->scaling && codes->scale == 0 ? dtype : CLNORM_DTYPE_NONE, scales.rows, scales.cols,
                               scales.cols, norm_case->shift.y_scale, TENSOR_CANARY);
    run->y_row_scale = tensor_make(desc->save_y_row_scale ? dtype : CLNORM_DTYPE_NONE, 1, desc->rows, desc->rows,
                                   norm_case->shift.y_scale, TENSOR_CANARY);
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
    const clnorm_dtype z = desc->gate ? desc->z.dtype : CLNORM_DTYPE_NONE;
    const clnorm_dtype statistics = desc->x.dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const clnorm_dtype mean = desc->save_mean ? statistics : CLNORM_DTYPE_NONE;
    const clnorm_dtype rstd = desc->save_rstd ? statistics : CLNORM_DTYPE_NONE;
    run.x = tensor_make(desc->x.dtype, rows, cols, desc->x.stride, norm_case->shift.x, TENSOR_NAN);
    run.weight = tensor_of_weights(&desc->weight, desc->weight_rows, cols, norm_case->shift.weight, TENSOR_NAN);
    run.bias = tensor_of_weights(&desc->bias, desc->weight_rows, cols, norm_case->shift.bias, TENSOR_NAN);
    run.z = tensor_make(z, rows, cols, desc->z.stride, norm_case->shift.z, TENSOR_NAN);
    run.mean = tensor_make(mean, groups, rows, rows, norm_case->shift.mean, TENSOR_CANARY);
    run.rstd = tensor_make(rstd, groups, rows, rows, norm_case->shift.rstd, TENSOR_CANARY);
    fill_x(norm_case, &run);
    tensor_fill(&run.weight, INPUT_NORMAL, cols, norm_case->seed + 1);
    tensor_fill(&run.bias, INPUT_NORMAL, cols, norm_case->seed + 2);
    tensor_fill(&run.z, INPUT_NORMAL, cols, norm_case->seed + 3);
    run.y = norm_case->in_place ? tensor_view(&run.x, desc->y.dtype)
                                : tensor_make(desc->y.dtype, rows, cols, desc->y.stride, norm_case->shift.y, TENSOR_CANARY);
    make_codes(norm_case, &run);
    make_sum(norm_case, &run);
    run.rope = rope_tensors_make(desc, norm_case->shift.rope, norm_case->wild_positions);
    return run;
}

enum { RUN_TENSORS = 19 };

static void list_tensors(struct norm_run *run, struct tensor *tensors[RUN_TENSORS]) {
    struct tensor *const all[RUN_TENSORS] = {&run->x,        &run->weight,    &run->bias,         &run->z,
                                             &run->y,        &run->mean,      &run->rstd,         &run->workspace,
                                             &run->residual, &run->row_scale, &run->residual_out, &run->mask,
                                             &run->y_scale,  &run->x_scale,   &run->y_t,          &run->y_row_scale,
                                             &run->rope.cos, &run->rope.sin,  &run->rope.position};
    memcpy(tensors, all, sizeof all);
}

void norm_run_free(struct norm_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    for (int i = 0; i < RUN_TENSORS; i++)
        tensor_free(tensors[i]);
}

void norm_run_upload(const struct fixture *fixture, struct norm_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    if (run->in_place)
        tensor_share(fixture, &run->x, &run->y);
    if (run->residual_in_place)
        tensor_share(fixture, &run->residual, &run->residual_out);
    for (int i = 0; i < RUN_TENSORS; i++)
        tensor_upload(fixture, tensors[i]);
}

clnorm_args norm_run_args(const struct norm_run *run) {
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.x_scale = tensor_buffer(&run->x_scale);
    args.weight = tensor_buffer(&run->weight);
    args.bias = tensor_buffer(&run->bias);
    args.z = tensor_buffer(&run->z);
    args.y = tensor_buffer(&run->y);
    args.y_t = tensor_buffer(&run->y_t);
    rope_tensors_give(&run->rope, &args);
    args.y_scale = tensor_buffer(&run->y_scale);
    args.y_row_scale = tensor_buffer(&run->y_row_scale);
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

/* Avoids defects of drivers: a work-group has one segment, or a segment one lane. Where one lane cannot keep a segment,
 * it reads the segment again. */
static void avoid_defects(const struct fixture *fixture, clnorm_norm_desc *desc) {
    if ((desc->y.scaling || desc->y_t.scaling) && KNOB(desc->config, segments) > 1 &&
        cln_driver_defect(&fixture->device, CLN_DEFECT_CODES_SEGMENTS))
        KNOB(desc->config, segments) = 1;
    if (KNOB(desc->config, lanes) <= 1 || !cln_driver_defect(&fixture->device, CLN_DEFECT_SHARED_SEGMENTS))
        return;
    KNOB(desc->config, lanes) = 1;
    clnorm_plan *plan = NULL;
    if (clnorm_norm_forward_plan_create(fixture->context, desc, &plan) == CLNORM_INVALID_VALUE &&
        strstr(clnorm_error_detail(), "desc.config.keep")) {
        KNOB(desc->config, keep) = CLN_KEEP_REREAD;
        KNOB(desc->config, local_vectors) = 0;
    }
    clnorm_plan_destroy(plan);
}

clnorm_status norm_run_go(const struct fixture *fixture, struct norm_run *run) {
    clnorm_plan *plan = NULL;
    avoid_defects(fixture, &run->desc);
    const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &run->desc, &plan);
    if (status != CLNORM_SUCCESS)
        return status;
    run->config = chosen_knobs(plan);
    run->workspace = plan_workspace(plan);
    norm_run_upload(fixture, run);
    const clnorm_args args = norm_run_args(run);
    return plan_run(fixture, plan, &args);
}

/* -------------------------------------------------------------------------------------------------- verification */

static bool check_mask(const struct norm_run *run, uint64_t row, uint64_t column) {
    if (run->mask.dtype == CLNORM_DTYPE_NONE)
        return true;
    const unsigned char mask = ((const unsigned char *)tensor_elements(&run->mask))[row * run->desc.cols + column];
    const bool kept = ref_kept(run->seed, run->desc.dropout, row, column);
    if (mask != kept)
        print_error("dropout_mask[%" PRIu64 ", %" PRIu64 "] is %d, but should be %d\n", row, column, mask, kept);
    return mask == kept;
}

static bool check_quantized(const struct norm_run *run, uint64_t row, uint64_t group, const struct ref_norm_error *error,
                            struct magnitude *all) {
    const uint64_t size = run->desc.group_size;
    double *errors = malloc(size * sizeof *errors);
    assert_non_null(errors);
    for (uint64_t i = 0; i < size; i++)
        errors[i] = ref_y_error(error, i);
    const bool good = norm_quantized_check(run, row, group * size, size, error->segment->y, errors, all);
    free(errors);
    return good;
}

static bool check_segment(const struct norm_run *run, uint64_t row, uint64_t group, const struct ref_norm_error *error,
                          struct magnitude *all) {
    const bool quantized = norm_codes_of(&run->desc)->scaling;
    const struct ref_segment *const segment = error->segment;
    if (!tensor_holds(&run->mean, "mean", group, row, segment->mean, error->mean + error->arithmetic->tiny) ||
        !tensor_holds(&run->rstd, "rstd", group, row, segment->rstd, error->rstd))
        return false;
    for (uint64_t i = 0; i < run->desc.group_size; i++) {
        const uint64_t column = group * run->desc.group_size + i;
        if ((!quantized && !tensor_holds(&run->y, "y", row, column, segment->y[i], ref_y_error(error, i))) ||
            !tensor_holds(&run->residual_out, "residual_out", row, column, segment->s[i], ref_s_error(error, i)) ||
            !check_mask(run, row, column))
            return false;
    }
    return !quantized || check_quantized(run, row, group, error, all);
}

static struct ref_norm reference_of(const struct norm_run *run) {
    struct ref_norm norm = ref_norm_of(&run->desc);
    norm.x.elements = tensor_elements(&run->x);
    norm.x.scales = tensor_elements(&run->x_scale);
    norm.weight.elements = tensor_elements(&run->weight);
    norm.bias.elements = tensor_elements(&run->bias);
    norm.z.elements = tensor_elements(&run->z);
    norm.residual.elements = tensor_elements(&run->residual);
    norm.row_scale.elements = tensor_elements(&run->row_scale);
    norm.seed = run->seed;
    rope_tensors_lend(&run->rope, &norm.rope);
    return norm;
}

bool norm_run_check(const struct norm_run *run) {
    const struct ref_norm norm = reference_of(run);
    const struct ref_arithmetic arithmetic = arithmetic_of(run);
    const uint64_t groups = run->desc.cols / run->desc.group_size;
    struct ref_segment segment = ref_segment_make(run->desc.group_size);
    struct magnitude all = {0, 0};
    bool good = true;
    for (uint64_t i = 0; good && i < run->desc.rows * groups; i++) {
        ref_norm_segment(&norm, i / groups, i % groups, &segment);
        const struct ref_norm_error error = ref_norm_error_of(&norm, &arithmetic, &segment);
        good = check_segment(run, i / groups, i % groups, &error, &all);
    }
    ref_segment_free(&segment);
    return good && norm_quantized_check_whole(run, all);
}

bool norm_run_verify(const struct fixture *fixture, struct norm_run *run) {
    const bool inputs_kept =
        (run->in_place || tensor_unchanged(fixture, &run->x, "x")) && tensor_unchanged(fixture, &run->x_scale, "x_scale") &&
        tensor_unchanged(fixture, &run->weight, "weight") && tensor_unchanged(fixture, &run->bias, "bias") &&
        tensor_unchanged(fixture, &run->z, "z") &&
        (run->residual_in_place || tensor_unchanged(fixture, &run->residual, "residual")) &&
        tensor_unchanged(fixture, &run->row_scale, "row_scale") && rope_tensors_unchanged(fixture, &run->rope);
    return inputs_kept && tensor_receive(fixture, &run->residual_out, "residual_out") &&
           tensor_receive(fixture, &run->mask, "dropout_mask") && tensor_receive(fixture, &run->y, "y") &&
           tensor_receive(fixture, &run->y_t, "y_t") && tensor_receive(fixture, &run->y_scale, "y_scale") &&
           tensor_receive(fixture, &run->y_row_scale, "y_row_scale") && tensor_receive(fixture, &run->mean, "mean") &&
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
