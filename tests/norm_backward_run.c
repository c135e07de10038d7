#include "norm_backward_run.h"

#include <math.h>
#include <string.h>

#include "fp8_tensor.h"
#include "knob.h"
#include "plan_run.h"

/* ------------------------------------------------------------------------------------------------------ its tensors */

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

struct ref_norm_backward norm_backward_reference_of(const struct norm_backward_run *run) {
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

/* A given mean is off by a quarter of a deviation, and a given rstd is an eighth too large. */
static void fill_statistics(struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *desc = &run->desc;
    const struct ref_norm_backward norm = norm_backward_reference_of(run);
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

/* Bounds weights and biases, so that x̂ can be recovered from y in every column. */
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

/* Replaces x by y. */
static void put_y(struct norm_backward_run *run) {
    const struct ref_norm_backward norm = norm_backward_reference_of(run);
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

/* The residual, the row scales, and the gradient of residual_out. */
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

/* An 8-bit x has codes of all magnitudes, whose sums round like those of spikes. */
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
        run->dx = tensor_view(run->dx_place == DX_OVER_X ? &run->x : &run->dy, desc->dx.dtype);
    if (run->dz_over_z)
        run->dz = tensor_view(&run->z, desc->dz.dtype);
    else
        run->dz = tensor_make(desc->dz.dtype, rows, cols, desc->dz.stride, backward_case->shift.dz, TENSOR_CANARY);
    run->dresidual = run->dresidual_in_place ? tensor_view(&run->dresidual_out, desc->dresidual.dtype)
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
        run->dweight_before = tensor_view(&run->dweight, run->dweight.dtype);
        run->dbias_before = tensor_view(&run->dbias, run->dbias.dtype);
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

void norm_backward_run_upload(const struct fixture *fixture, struct norm_backward_run *run) {
    struct tensor *tensors[RUN_TENSORS];
    list_tensors(run, tensors);
    if (run->dx_place != DX_APART)
        tensor_share(fixture, run->dx_place == DX_OVER_X ? &run->x : &run->dy, &run->dx);
    if (run->dz_over_z)
        tensor_share(fixture, &run->z, &run->dz);
    if (run->dresidual_in_place)
        tensor_share(fixture, &run->dresidual_out, &run->dresidual);
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
