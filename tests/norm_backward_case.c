#include "norm_backward_case.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fp8_tensor.h"
#include "knob.h"
#include "plan_run.h"
#include "reference/reference.h"

/* ------------------------------------------------------------------------------------------------------- the case */

clnorm_norm_backward_desc norm_backward_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols) {
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = norm;
    desc.rows = rows;
    desc.cols = cols;
    desc.dx.dtype = CLNORM_F32;
    return desc;
}

clnorm_norm_backward_desc norm_backward_full_desc(clnorm_norm norm, uint64_t rows, uint64_t cols, clnorm_dtype dtype) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(norm, rows, cols);
    desc.x.dtype = desc.weight.dtype = desc.bias.dtype = dtype;
    desc.dx.dtype = desc.y.dtype = desc.dweight.dtype = desc.dbias.dtype = dtype;
    return desc;
}

bool norm_backward_locks(const struct fixture *fixture) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_RMS_NORM, 1, 1);
    desc.dbias.dtype = CLNORM_F32;
    desc.reduction = CLNORM_REDUCTION_LOCKED;
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
    clnorm_plan_destroy(plan);
    return status != CLNORM_UNSUPPORTED;
}

static void print_tensor(const char *name, clnorm_dtype dtype, uint64_t stride, uint64_t shift) {
    if (dtype != CLNORM_DTYPE_NONE)
        print_error("  %s %s, stride %" PRIu64 ", shift %" PRIu64 "\n", name, clnorm_dtype_name(dtype), stride, shift);
}

static void print_config(const clnorm_config *config) {
    char text[320];
    clnorm_config_text(config, text, sizeof text);
    print_error("  config: %s\n", text);
}

void norm_backward_case_print(const struct norm_backward_case *backward_case) {
    static const char *const gates[] = {"none", "silu", "sigmoid"};
    static const char *const places[] = {"", ", dx over x", ", dx over dy"};
    const clnorm_norm_backward_desc desc = ref_norm_backward_complete(&backward_case->desc);
    print_error("case: %s %" PRIu64 "x%" PRIu64 ", groups of %" PRIu64 ", %s, seed %" PRIu64 "%s%s\n",
                desc.norm == CLNORM_LAYER_NORM ? "layer_norm" : "rms_norm", desc.rows, desc.cols, desc.group_size,
                input_name(backward_case->input), backward_case->seed, places[backward_case->dx_place],
                backward_case->dz_over_z ? ", dz over z" : "");
    print_error("  gate %s%s, offset %g, eps %g, mean %d, rstd %d, accumulate %d, %s with %u slots\n", gates[desc.gate],
                desc.gate_first ? " first" : "", desc.weight_offset, desc.eps, desc.mean_given, desc.rstd_given,
                desc.accumulate, desc.reduction == CLNORM_REDUCTION_LOCKED ? "locked" : "partial", desc.slots);
    if (desc.weight_rows)
        print_error("  %" PRIu64 " rows of weights, %" PRIu64 " neighbours take one, strides %" PRIu64 " %" PRIu64
                    ", of the gradients %" PRIu64 " %" PRIu64 "\n",
                    desc.weight_rows, desc.weight_repeat, desc.weight.stride, desc.bias.stride, desc.dweight.stride,
                    desc.dbias.stride);
    print_tensor("x", desc.x.dtype, desc.x.stride, backward_case->shift.x);
    print_tensor("z", desc.gate ? desc.z.dtype : CLNORM_DTYPE_NONE, desc.z.stride, backward_case->shift.z);
    print_tensor("dy", desc.dy.dtype, desc.dy.stride, backward_case->shift.dy);
    print_tensor("weight", desc.weight.dtype, desc.cols, backward_case->shift.weight);
    print_tensor("bias", desc.bias.dtype, desc.cols, backward_case->shift.bias);
    print_tensor("dx", desc.dx.dtype, desc.dx.stride, backward_case->shift.dx);
    print_tensor("dz", desc.dz.dtype, desc.dz.stride, backward_case->shift.dz);
    print_tensor("y", desc.y.dtype, desc.y.stride, backward_case->shift.y);
    print_tensor("dweight", desc.dweight.dtype, desc.cols, backward_case->shift.dweight);
    print_tensor("dbias", desc.dbias.dtype, desc.cols, backward_case->shift.dbias);
    print_tensor("residual", desc.residual.dtype, desc.residual.stride, backward_case->shift.residual);
    print_tensor("dresidual_out", desc.dresidual_out.dtype, desc.dresidual_out.stride, backward_case->shift.dresidual_out);
    print_tensor("dresidual", desc.dresidual.dtype, desc.dresidual.stride, backward_case->shift.dresidual);
    if (desc.rope)
        print_error("  rope %d of %" PRIu64 " columns, %" PRIu64 " positions, given %u, repeat %" PRIu64
                    "; tables %s %s+%u\n",
                    (int)desc.rope, desc.rope_dims, desc.rope_positions, desc.position_given, desc.rope_repeat,
                    clnorm_dtype_name(desc.rope_cos.dtype), clnorm_dtype_name(desc.rope_sin.dtype),
                    (unsigned)backward_case->shift.rope);
    print_error("  dropout %g, row_scale %d, s_given %d, y_given %d, activation %d%s\n", desc.dropout, desc.row_scale,
                desc.s_given, desc.y_given, (int)desc.activation,
                backward_case->dresidual_in_place ? ", dresidual over dresidual_out" : "");
    print_config(&desc.config);
}

/* ------------------------------------------------------------------------------------------------------ its tensors */

/* A second view of a tensor's own buffer, with a copy of its bytes. */
static struct tensor view_of(const struct tensor *input, clnorm_dtype dtype) {
    struct tensor output = *input;
    output.dtype = dtype;
    output.host = malloc(input->size);
    assert_non_null(output.host);
    memcpy(output.host, input->host, input->size);
    return output;
}

static struct tensor copy_of(const struct tensor *tensor) {
    const struct tensor absent = {0};
    return tensor->dtype == CLNORM_DTYPE_NONE ? absent : view_of(tensor, tensor->dtype);
}

/* The dtype of an output that lies over an input. */
static clnorm_dtype fitting(clnorm_dtype output, clnorm_dtype input) {
    return clnorm_dtype_size(output) == clnorm_dtype_size(input) ? output : input;
}

static clnorm_norm_backward_desc settled_desc(const struct norm_backward_case *backward_case) {
    clnorm_norm_backward_desc desc = ref_norm_backward_complete(&backward_case->desc);
    if (backward_case->dx_place != DX_APART) {
        const bool over_x = backward_case->dx_place == DX_OVER_X;
        desc.dx.stride = over_x ? desc.x.stride : desc.dy.stride;
        desc.dx.dtype = fitting(desc.dx.dtype, over_x ? desc.x.dtype : desc.dy.dtype);
    }
    if (backward_case->dz_over_z) {
        desc.dz.stride = desc.z.stride;
        desc.dz.dtype = fitting(desc.dz.dtype, desc.z.dtype);
    }
    if (backward_case->dresidual_in_place) {
        desc.dresidual.stride = desc.dresidual_out.stride;
        desc.dresidual.dtype = fitting(desc.dresidual.dtype, desc.dresidual_out.dtype);
    }
    return desc;
}

static struct ref_norm_backward reference_of(const struct norm_backward_run *run) {
    struct ref_norm_backward norm = ref_norm_backward_of(&run->desc);
    norm.forward.x.elements = tensor_elements(&run->x);
    norm.forward.x.scales = tensor_elements(&run->x_scale);
    norm.forward.weight.elements = tensor_elements(&run->weight);
    norm.forward.bias.elements = tensor_elements(&run->bias);
    norm.forward.z.elements = tensor_elements(&run->z);
    norm.forward.residual.elements = tensor_elements(&run->residual);
    norm.forward.row_scale.elements = tensor_elements(&run->row_scale);
    norm.forward.seed = run->seed;
    norm.dy.elements = tensor_elements(&run->dy);
    norm.mean.elements = tensor_elements(&run->mean);
    norm.rstd.elements = tensor_elements(&run->rstd);
    norm.dresidual_out.elements = tensor_elements(&run->dresidual_out);
    rope_tensors_lend(&run->rope, &norm.forward.rope);
    return norm;
}

/* A quarter of a deviation off the mean, and an eighth more than rstd. */
static void fill_statistics(struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    const struct ref_norm_backward norm = reference_of(run);
    const struct ref_norm forward = ref_norm_forward(&norm);
    const uint64_t groups = desc->cols / desc->group_size;
    struct ref_segment segment = ref_segment_make(desc->group_size);
    for (uint64_t i = 0; i < desc->rows * groups; i++) {
        const uint64_t row = i / groups;
        const uint64_t group = i % groups;
        ref_norm_segment(&forward, row, group, &segment);
        if (desc->mean_given)
            ref_store(run->mean.dtype, tensor_elements(&run->mean), group * desc->rows + row,
                      segment.mean + 0.25 / segment.rstd);
        ref_store(run->rstd.dtype, tensor_elements(&run->rstd), group * desc->rows + row, 1.125 * segment.rstd);
    }
    ref_segment_free(&segment);
}

/* Makes every column one that x̂ can be had from y at. */
static void bound_columns(struct norm_backward_run *run) {
    for (uint64_t i = 0; i < run->desc.cols; i++) {
        double scale = 1;
        if (run->weight.dtype) {
            const double w = run->desc.weight_offset + ref_load(run->weight.dtype, tensor_elements(&run->weight), i);
            scale = fabs(w) < 0.25 ? 0.5 : w;
            ref_store(run->weight.dtype, tensor_elements(&run->weight), i, scale - run->desc.weight_offset);
        }
        const double bias = run->bias.dtype ? ref_load(run->bias.dtype, tensor_elements(&run->bias), i) : 0;
        if (fabs(bias) > 2 * fabs(scale))
            ref_store(run->bias.dtype, tensor_elements(&run->bias), i, 2 * scale);
    }
}

/* Puts y in x's place. */
static void put_y(struct norm_backward_run *run) {
    const struct ref_norm_backward norm = reference_of(run);
    const struct ref_norm forward = ref_norm_forward(&norm);
    struct ref_segment segment = ref_segment_make(run->desc.group_size);
    const uint64_t groups = run->desc.cols / run->desc.group_size;
    for (uint64_t i = 0; i < run->desc.rows * groups; i++) {
        ref_norm_segment(&forward, i / groups, i % groups, &segment);
        for (uint64_t j = 0; j < run->desc.group_size; j++)
            ref_store(run->x.dtype, tensor_elements(&run->x),
                      i / groups * run->desc.x.stride + i % groups * run->desc.group_size + j, segment.y[j]);
    }
    ref_segment_free(&segment);
}

/* What is added to x before the norm, and what comes back by way of it. */
static void make_sum_inputs(const struct norm_backward_case *backward_case, struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    const clnorm_dtype real = desc->x.dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    run->residual = tensor_make(desc->residual.dtype, desc->rows, desc->cols, desc->residual.stride,
                                backward_case->shift.residual, TENSOR_NAN);
    run->dresidual_out = tensor_make(desc->dresidual_out.dtype, desc->rows, desc->cols, desc->dresidual_out.stride,
                                     backward_case->shift.dresidual_out, TENSOR_NAN);
    run->row_scale = tensor_make(desc->row_scale ? real : CLNORM_DTYPE_NONE, 1, desc->rows, desc->rows, 0, TENSOR_NAN);
    tensor_fill(&run->residual, backward_case->input, desc->group_size, backward_case->seed + 7);
    tensor_fill(&run->dresidual_out, INPUT_NORMAL, desc->cols, backward_case->seed + 8);
    tensor_fill_row_scale(&run->row_scale);
}

/* x of 8 bits has codes of all magnitudes. */
static void fill_x(const struct norm_backward_case *backward_case, struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    if (!desc->x.scaling) {
        tensor_fill(&run->x, backward_case->input, desc->group_size, backward_case->seed);
        return;
    }
    const struct scales scales = fp8_scales_of(&desc->x, desc->rows, desc->cols);
    const clnorm_dtype dtype = desc->x.scale_dtype ? desc->x.scale_dtype : CLNORM_F32;
    run->x_scale = tensor_make(dtype, scales.rows, scales.cols, scales.cols, backward_case->shift.x_scale, TENSOR_NAN);
    run->input = INPUT_SPIKES;
    fp8_fill(&run->x, false);
    fp8_fill_scales(&run->x_scale);
}

static void make_inputs(const struct norm_backward_case *backward_case, struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    const uint64_t rows = desc->rows;
    const uint64_t cols = desc->cols;
    const uint64_t groups = cols / desc->group_size;
    const uint64_t seed = backward_case->seed;
    const clnorm_dtype z = desc->gate ? desc->z.dtype : CLNORM_DTYPE_NONE;
    const clnorm_dtype statistics = desc->x.dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const clnorm_dtype mean = desc->mean_given ? statistics : CLNORM_DTYPE_NONE;
    const clnorm_dtype rstd = desc->rstd_given ? statistics : CLNORM_DTYPE_NONE;
    run->x = tensor_make(desc->x.dtype, rows, cols, desc->x.stride, backward_case->shift.x, TENSOR_NAN);
    run->weight = tensor_of_weights(&desc->weight, desc->weight_rows, cols, backward_case->shift.weight, TENSOR_NAN);
    run->bias = tensor_of_weights(&desc->bias, desc->weight_rows, cols, backward_case->shift.bias, TENSOR_NAN);
    run->z = tensor_make(z, rows, cols, desc->z.stride, backward_case->shift.z, TENSOR_NAN);
    run->dy = tensor_make(desc->dy.dtype, rows, cols, desc->dy.stride, backward_case->shift.dy, TENSOR_NAN);
    run->mean = tensor_make(mean, groups, rows, rows, backward_case->shift.mean, TENSOR_NAN);
    run->rstd = tensor_make(rstd, groups, rows, rows, backward_case->shift.rstd, TENSOR_NAN);
    fill_x(backward_case, run);
    tensor_fill(&run->weight, INPUT_NORMAL, cols, seed + 1);
    tensor_fill(&run->bias, INPUT_NORMAL, cols, seed + 2);
    tensor_fill(&run->z, INPUT_NORMAL, cols, seed + 3);
    tensor_fill(&run->dy, INPUT_NORMAL, cols, seed + 4);
    make_sum_inputs(backward_case, run);
    const clnorm_norm_desc forward = ref_norm_forward_of(desc);
    run->rope = rope_tensors_make(&forward, backward_case->shift.rope, backward_case->wild_positions);
    if (desc->y_given)
        bound_columns(run);
    if (desc->rstd_given)
        fill_statistics(run);
    if (desc->y_given)
        put_y(run);
}

static void make_outputs(const struct norm_backward_case *backward_case, struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    const uint64_t rows = desc->rows;
    const uint64_t cols = desc->cols;
    if (run->dx_place == DX_APART)
        run->dx = tensor_make(desc->dx.dtype, rows, cols, desc->dx.stride, backward_case->shift.dx, TENSOR_CANARY);
    else
        run->dx = view_of(run->dx_place == DX_OVER_X ? &run->x : &run->dy, desc->dx.dtype);
    if (run->dz_over_z)
        run->dz = view_of(&run->z, desc->dz.dtype);
    else
        run->dz = tensor_make(desc->dz.dtype, rows, cols, desc->dz.stride, backward_case->shift.dz, TENSOR_CANARY);
    run->dresidual = run->dresidual_in_place ? view_of(&run->dresidual_out, desc->dresidual.dtype)
                                             : tensor_make(desc->dresidual.dtype, rows, cols, desc->dresidual.stride,
                                                           backward_case->shift.dresidual, TENSOR_CANARY);
    run->y = tensor_make(desc->y_given ? CLNORM_DTYPE_NONE : desc->y.dtype, rows, cols, desc->y.stride,
                         backward_case->shift.y, TENSOR_CANARY);
    run->fault = tensor_make(desc->y_given ? CLNORM_F32 : CLNORM_DTYPE_NONE, 1, 1, 1, 3, TENSOR_CANARY);
    run->dweight = tensor_of_weights(&desc->dweight, desc->weight_rows, cols, backward_case->shift.dweight, TENSOR_CANARY);
    run->dbias = tensor_of_weights(&desc->dbias, desc->weight_rows, cols, backward_case->shift.dbias, TENSOR_CANARY);
    if (desc->accumulate) {
        tensor_fill(&run->dweight, INPUT_NORMAL, cols, backward_case->seed + 5);
        tensor_fill(&run->dbias, INPUT_NORMAL, cols, backward_case->seed + 6);
        run->dweight_before = copy_of(&run->dweight);
        run->dbias_before = copy_of(&run->dbias);
    }
}

struct norm_backward_run norm_backward_run_make(const struct norm_backward_case *backward_case) {
    struct norm_backward_run run = {.desc = settled_desc(backward_case),
                                    .dx_place = backward_case->dx_place,
                                    .dz_over_z = backward_case->dz_over_z,
                                    .dresidual_in_place = backward_case->dresidual_in_place,
                                    .input = backward_case->input,
                                    .seed = {backward_case->seed * 0x9e3779b97f4a7c15, backward_case->seed << 31}};
    make_inputs(backward_case, &run);
    make_outputs(backward_case, &run);
    return run;
}

enum { RUN_TENSORS = 22 };

static void list_tensors(struct norm_backward_run *run, struct tensor *tensors[RUN_TENSORS]) {
    struct tensor *const all[RUN_TENSORS] = {&run->x,         &run->weight,
                                             &run->bias,      &run->z,
                                             &run->dy,        &run->mean,
                                             &run->rstd,      &run->dx,
                                             &run->dz,        &run->y,
                                             &run->dweight,   &run->dbias,
                                             &run->workspace, &run->residual,
                                             &run->row_scale, &run->dresidual_out,
                                             &run->dresidual, &run->fault,
                                             &run->x_scale,   &run->rope.cos,
                                             &run->rope.sin,  &run->rope.position};
    memcpy(tensors, all, sizeof all);
}

void norm_backward_run_free(struct norm_backward_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    for (int i = 0; i < RUN_TENSORS; i++)
        tensor_free(tensors[i]);
    tensor_free(&run->dweight_before);
    tensor_free(&run->dbias_before);
}

/* ------------------------------------------------------------------------------------------------------- on the device */

void norm_backward_run_prepare(const clnorm_plan *plan, struct norm_backward_run *run) {
    run->config = chosen_knobs(plan);
    tensor_free(&run->workspace);
    run->workspace = plan_workspace(plan);
}

static void share_buffer(const struct fixture *fixture, struct tensor *input, struct tensor *output) {
    if (output->mem != NULL)
        return;
    tensor_upload(fixture, input);
    output->mem = input->mem;
    assert_int_equal(clRetainMemObject(output->mem), CL_SUCCESS);
}

void norm_backward_run_upload(const struct fixture *fixture, struct norm_backward_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    if (run->dx_place != DX_APART)
        share_buffer(fixture, run->dx_place == DX_OVER_X ? &run->x : &run->dy, &run->dx);
    if (run->dz_over_z)
        share_buffer(fixture, &run->z, &run->dz);
    if (run->dresidual_in_place)
        share_buffer(fixture, &run->dresidual_out, &run->dresidual);
    for (int i = 0; i < RUN_TENSORS; i++)
        tensor_upload(fixture, tensors[i]);
}

clnorm_args norm_backward_run_args(const struct norm_backward_run *run) {
    clnorm_args args = CLNORM_ARGS_INIT;
    *(run->desc.y_given ? &args.y : &args.x) = tensor_buffer(&run->x);
    args.x_scale = tensor_buffer(&run->x_scale);
    args.weight = tensor_buffer(&run->weight);
    args.bias = tensor_buffer(&run->bias);
    args.z = tensor_buffer(&run->z);
    args.dy = tensor_buffer(&run->dy);
    args.mean = tensor_buffer(&run->mean);
    args.rstd = tensor_buffer(&run->rstd);
    args.dx = tensor_buffer(&run->dx);
    args.dz = tensor_buffer(&run->dz);
    if (!run->desc.y_given)
        args.y = tensor_buffer(&run->y);
    args.fault = tensor_buffer(&run->fault);
    args.dweight = tensor_buffer(&run->dweight);
    args.dbias = tensor_buffer(&run->dbias);
    args.workspace = tensor_buffer(&run->workspace);
    args.residual = tensor_buffer(&run->residual);
    args.row_scale = tensor_buffer(&run->row_scale);
    args.dresidual_out = tensor_buffer(&run->dresidual_out);
    args.dresidual = tensor_buffer(&run->dresidual);
    rope_tensors_give(&run->rope, &args);
    args.seed = run->desc.dropout > 0 ? &run->seed : NULL;
    return args;
}

clnorm_status norm_backward_run_go(const struct fixture *fixture, struct norm_backward_run *run) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &run->desc, &plan);
    if (status != CLNORM_SUCCESS)
        return status;
    norm_backward_run_prepare(plan, run);
    norm_backward_run_upload(fixture, run);
    const clnorm_args args = norm_backward_run_args(run);
    return plan_run(fixture, plan, &args);
}

bool norm_backward_run_receive(const struct fixture *fixture, struct norm_backward_run *run) {
    const bool inputs_kept =
        (run->dx_place == DX_OVER_X || tensor_unchanged(fixture, &run->x, "x")) &&
        tensor_unchanged(fixture, &run->x_scale, "x_scale") &&
        (run->dx_place == DX_OVER_DY || tensor_unchanged(fixture, &run->dy, "dy")) &&
        (run->dz_over_z || tensor_unchanged(fixture, &run->z, "z")) && tensor_unchanged(fixture, &run->weight, "weight") &&
        tensor_unchanged(fixture, &run->bias, "bias") && tensor_unchanged(fixture, &run->mean, "mean") &&
        tensor_unchanged(fixture, &run->rstd, "rstd") && tensor_unchanged(fixture, &run->residual, "residual") &&
        tensor_unchanged(fixture, &run->row_scale, "row_scale") && rope_tensors_unchanged(fixture, &run->rope) &&
        (run->dresidual_in_place || tensor_unchanged(fixture, &run->dresidual_out, "dresidual_out"));
    return inputs_kept && tensor_receive(fixture, &run->dresidual, "dresidual") &&
           tensor_receive(fixture, &run->dx, "dx") && tensor_receive(fixture, &run->dz, "dz") &&
           tensor_receive(fixture, &run->y, "y") && tensor_receive(fixture, &run->dweight, "dweight") &&
           tensor_receive(fixture, &run->dbias, "dbias") && tensor_receive(fixture, &run->workspace, "workspace") &&
           tensor_receive(fixture, &run->fault, "fault");
}

uint32_t norm_backward_run_fault(const struct norm_backward_run *run) {
    uint32_t columns;
    memcpy(&columns, tensor_elements(&run->fault), sizeof columns);
    return columns;
}

/* ------------------------------------------------------------------------------------------------------- roundings */

/* Roundings that count of a sum with this many additions in a row: like a random walk, or all one way where a large number
 * swallows the small ones that come after it. */
static double chain_roundings(double chain, bool one_way) {
    return one_way ? chain : 2 * sqrt(chain);
}

/* Of the sums that statistics are: by a kernel of their own, in vectors of 8 elements at least where there are as many. */
static double statistic_roundings(const struct norm_backward_run *run) {
    const double n = (double)run->desc.group_size;
    const double width = fmin(8, (double)run->config.vec * run->config.lanes);
    return 4 + log2(n) + chain_roundings(ceil(n / width), run->input >= INPUT_SPIKES);
}

/* Of c1 and c2: additions of one lane's one vector element follow each other, those of lanes and elements are merged in
 * pairs, and those of tiles follow each other again. */
static double segment_roundings(const struct norm_backward_run *run) {
    const double n = (double)run->desc.group_size;
    const double width = (double)run->config.vec * run->config.lanes;
    const double tile = fmin(n, (double)run->config.tile);
    return 4 + log2(width) + chain_roundings(ceil(tile / width) + ceil(n / tile), false);
}

static uint64_t weight_rows_of(const struct norm_backward_run *run) {
    return run->desc.weight_rows ? run->desc.weight_rows : 1;
}

/* The most that a sum over rows may be off by its additions, for terms whose magnitudes add up to that: each row is added
 * once, in any order, and the slots then once more. */
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

static bool check(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column, double expected,
                  double error) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return true;
    const double result = ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column);
    if (ref_within(tensor->dtype, result, (struct ref_value){expected, error}))
        return true;
    print_error("%s[%" PRIu64 ", %" PRIu64 "] is %.9g, but should be %.9g within %.3g\n", name, row, column, result,
                expected, error);
    return false;
}

static bool check_segment(const struct norm_backward_run *run, uint64_t row, uint64_t group,
                          const struct ref_gradients *gradients, const struct ref_gradient_errors *errors) {
    for (uint64_t i = 0; i < run->desc.group_size; i++) {
        const uint64_t column = group * run->desc.group_size + i;
        if (!check(&run->dx, "dx", row, column, gradients->dx[i], errors->dx[i]) ||
            !check(&run->dz, "dz", row, column, gradients->dz[i], errors->dz[i]) ||
            !check(&run->dresidual, "dresidual", row, column, gradients->ds[i], errors->dresidual[i]) ||
            !check(&run->y, "y", row, column, gradients->forward.y[i], errors->y[i]))
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
        if (!check(tensor, name, row, column, ref_sum_value(&sum.sum), ref_sum_value(&sum.error) + additions))
            return false;
    }
    return true;
}

bool norm_backward_run_check(const struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    const struct ref_norm_backward norm = reference_of(run);
    const struct ref_arithmetic arithmetic = arithmetic_of(run);
    const uint64_t groups = desc->cols / desc->group_size;
    struct ref_gradients gradients = ref_gradients_make(desc->group_size);
    struct ref_gradient_errors errors = ref_gradient_errors_make(desc->group_size);
    const uint64_t sums = weight_rows_of(run) * desc->cols;
    struct ref_row_sum *dweight = calloc(sums, 2 * sizeof *dweight);
    assert_non_null(dweight);
    struct ref_row_sum *dbias = dweight + sums;
    bool good = !desc->y_given || norm_backward_run_fault(run) == 0;
    if (!good)
        print_error("fault is %u\n", norm_backward_run_fault(run));
    for (uint64_t i = 0; good && i < desc->rows * groups; i++) {
        const uint64_t first = ref_norm_weight_row(&norm.forward, i / groups) * desc->cols + i % groups * desc->group_size;
        ref_norm_backward_segment(&norm, i / groups, i % groups, &gradients);
        ref_gradient_errors_of(&norm, &arithmetic, &gradients, &errors);
        good = check_segment(run, i / groups, i % groups, &gradients, &errors);
        ref_add_row(&gradients, &errors, desc->group_size, dweight + first, dbias + first);
    }
    good = good && check_sums(run, &run->dweight, &run->dweight_before, "dweight", dweight) &&
           check_sums(run, &run->dbias, &run->dbias_before, "dbias", dbias);
    free(dweight);
    ref_gradient_errors_free(&errors);
    ref_gradients_free(&gradients);
    return good;
}

bool norm_backward_case_passes(const struct fixture *fixture, const struct norm_backward_case *backward_case) {
    struct norm_backward_run run = norm_backward_run_make(backward_case);
    const clnorm_status status = norm_backward_run_go(fixture, &run);
    bool good = status == CLNORM_SUCCESS;
    if (good)
        good = norm_backward_run_receive(fixture, &run) && norm_backward_run_check(&run);
    else
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
    if (!good)
        norm_backward_case_print(backward_case);
    norm_backward_run_free(&run);
    return good;
}

void norm_backward_settle(const struct fixture *fixture, clnorm_norm_backward_desc *desc) {
    clnorm_plan *plan = NULL;
    while (clnorm_norm_backward_plan_create(fixture->context, desc, &plan) == CLNORM_INVALID_VALUE) {
        if (strstr(clnorm_error_detail(), "desc.config.vec") != NULL && KNOB(desc->config, vec) > 1)
            KNOB(desc->config, vec) /= 2;
        else if (KNOB(desc->config, tile))
            KNOB(desc->config, tile) = KNOB(desc->config, chunks) = 0;
        else
            break;
    }
    clnorm_plan_destroy(plan);
}
