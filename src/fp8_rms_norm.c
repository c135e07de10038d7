#include <inttypes.h>
#include <math.h>

#include "arithmetic.h"
#include "context.h"
#include "dtype.h"
#include "fp8.h"
#include "one_call.h"
#include "status.h"
#include "tensor.h"

/* From here on a descriptor is a problem: validated, with no default left in it. */
typedef clnorm_fp8_rms_norm_desc problem;

/* The only gap between a descriptor's fields. */
enum {
    GAP = offsetof(clnorm_fp8_rms_norm_desc, save_row_scale) + sizeof(bool),
    GAP_END = offsetof(clnorm_fp8_rms_norm_desc, eps)
};
_Static_assert(sizeof(clnorm_fp8_rms_norm_desc) == sizeof(size_t) + 6 * sizeof(uint64_t) + 6 * sizeof(clnorm_dtype) +
                                                       3 * sizeof(bool) + (GAP_END - GAP) + sizeof(double) +
                                                       sizeof(clnorm_config),
               "a descriptor has one gap");
_Static_assert(sizeof(clnorm_fp8_rms_norm_desc) <= CLN_DESCRIPTOR_MOST, "a descriptor can be copied");
static const struct cln_descriptor descriptor = {"CLNORM_FP8_RMS_NORM_DESC_INIT", sizeof(clnorm_fp8_rms_norm_desc), GAP,
                                                 GAP_END};

static clnorm_status check_dtypes(const clnorm_fp8_rms_norm_desc *desc) {
    if (!cln_dtype_fp8(desc->x_dtype))
        return cln_dtype_refuse("x_dtype", desc->x_dtype, "CLNORM_F8_E4M3 or CLNORM_F8_E5M2");
    if (desc->y_dtype != CLNORM_DTYPE_NONE && !cln_dtype_fp8(desc->y_dtype))
        return cln_dtype_refuse("y_dtype", desc->y_dtype, "CLNORM_F8_E4M3, CLNORM_F8_E5M2 or CLNORM_DTYPE_NONE");
    if (desc->weight_dtype != CLNORM_DTYPE_NONE &&
        (!cln_dtype_valid(desc->weight_dtype) || desc->weight_dtype == CLNORM_F64))
        return cln_dtype_refuse("weight_dtype", desc->weight_dtype,
                                "CLNORM_F32, CLNORM_F16, CLNORM_BF16 or CLNORM_DTYPE_NONE");
    const clnorm_status status = cln_fp8_check_scale_dtype("x_scale_dtype", desc->x_scale_dtype);
    return status || !desc->scale_dtype ? status : cln_fp8_check_scale_dtype("scale_dtype", desc->scale_dtype);
}

static clnorm_status check_values(const clnorm_fp8_rms_norm_desc *desc) {
    if (desc->accuracy != CLNORM_FP8_FUSED && desc->accuracy != CLNORM_FP8_COMPATIBLE)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.accuracy is %d: expected a clnorm_fp8_accuracy", (int)desc->accuracy);
    if (!desc->write_y && !desc->write_y_t)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.write_y and desc.write_y_t are false: expected one of them or both");
    if (!(desc->eps >= 0) || isinf(desc->eps))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.eps is %g: expected a finite number, 0 or more", desc->eps);
    return CLNORM_SUCCESS;
}

static clnorm_status check_shape(const problem *p) {
    clnorm_status status = cln_fp8_check_group("group_size", p->cols, p->group_size);
    if (!status)
        status = cln_fp8_check_stride("x_stride", p->x_stride, "cols", p->cols);
    if (!status)
        status = cln_fp8_check_stride("y_stride", p->y_stride, "cols", p->cols);
    return status ? status : cln_fp8_check_stride("y_t_stride", p->y_t_stride, "rows", p->rows);
}

static clnorm_status validate(const clnorm_fp8_rms_norm_desc *desc, problem *p) {
    clnorm_status status = cln_descriptor_check(&descriptor, desc);
    if (status)
        return status;
    *p = *desc;
    if ((status = check_dtypes(desc)) || (status = check_values(desc)))
        return status;
    p->x_stride = cln_or_else(desc->x_stride, desc->cols);
    p->y_stride = cln_or_else(desc->write_y ? desc->y_stride : 0, desc->cols);
    p->y_t_stride = cln_or_else(desc->write_y_t ? desc->y_t_stride : 0, desc->rows);
    if (!p->y_dtype)
        p->y_dtype = p->x_dtype;
    if (!p->scale_dtype)
        p->scale_dtype = p->accuracy == CLNORM_FP8_COMPATIBLE ? CLNORM_BF16 : CLNORM_F32;
    return check_shape(p);
}

/* ------------------------------------------------------------------------------------------------ tensors and stages */

static clnorm_status describe_tensors(const problem *p, uint32_t vec, uint64_t row_vec,
                                      struct cln_tensor tensor[CLN_ROLES]) {
    const clnorm_dtype y = p->write_y ? p->y_dtype : CLNORM_DTYPE_NONE;
    const clnorm_dtype y_t = p->write_y_t ? p->y_dtype : CLNORM_DTYPE_NONE;
    const uint64_t groups = p->cols / p->group_size, scale = clnorm_dtype_size(p->scale_dtype);
    clnorm_status status;
    if ((status = cln_tensor_matrix(&tensor[CLN_X], "x", p->rows, p->cols, p->x_stride, p->x_dtype, vec)) ||
        (status = cln_tensor_matrix(&tensor[CLN_X_SCALE], "x_scale", p->rows, groups, groups, p->x_scale_dtype, 0)) ||
        (status = cln_tensor_matrix(&tensor[CLN_Y], "y", p->rows, p->cols, p->y_stride, y, vec)) ||
        (status = cln_tensor_matrix(&tensor[CLN_Y_T], "y_t", p->rows ? p->cols : 0, p->rows, p->y_t_stride, y_t,
                                    (uint32_t)row_vec)) ||
        (status =
             cln_tensor_matrix(&tensor[CLN_WEIGHT], "weight", p->rows ? 1 : 0, p->cols, p->cols, p->weight_dtype, vec)) ||
        (status = cln_tensor_vector(&tensor[CLN_RSTD], "rstd", p->rows, sizeof(cl_float), 0)) ||
        (status = cln_tensor_vector(&tensor[CLN_Y_SCALE], "y_scale", p->rows ? 1 : 0, scale, 0)))
        return status;
    return p->save_row_scale ? cln_tensor_vector(&tensor[CLN_ROW_SCALE], "row_scale", p->rows, scale, 0) : CLNORM_SUCCESS;
}

static struct cln_workload workload_of(const problem *p) {
    return (struct cln_workload){
        .rows = p->rows,
        .groups = 1,
        .group_size = p->cols,
        .alignment = cln_lowest_bit(p->group_size | p->x_stride | p->y_stride),
        .x_size = clnorm_dtype_size(p->x_dtype),
        .held_size = clnorm_dtype_size(p->x_dtype),
        .norm = CLNORM_RMS_NORM,
        .real_size = sizeof(cl_float),
    };
}

static struct cln_spec spec_of(const clnorm_plan *plan, const problem *p) {
    struct cln_spec spec = cln_fp8_spec(&plan->context->device, &plan->config);
    spec.x_dtype = p->x_dtype;
    spec.x_scale_dtype = p->x_scale_dtype;
    spec.weight_dtype = p->weight_dtype;
    spec.q_dtype = p->y_dtype;
    spec.group_size = p->group_size;
    spec.compatible = p->accuracy == CLNORM_FP8_COMPATIBLE;
    return spec;
}

/* Two rows have the weights in common, which are loaded and widened once; more of them take up registers that let fewer
 * work-groups run at once. The time of a work-item alone goes into its sums, not into weights. */
static uint64_t rows_at_once(const clnorm_config *config) {
    return config->lanes > 1 ? 2 : 1;
}

/* fp8_rms_norm_rows.cl. largest: where each work-group's largest |n| goes. */
static clnorm_status add_rows(clnorm_plan *plan, const problem *p, const struct cln_fp8_share *share,
                              struct cln_binding largest) {
    struct cln_spec spec = spec_of(plan, p);
    spec.scale_dtype = p->save_row_scale ? p->scale_dtype : CLNORM_DTYPE_NONE;
    spec.rows = rows_at_once(&plan->config);
    const struct cln_binding binding[] = {{.role = CLN_X}, {.role = CLN_X_SCALE},  {.role = CLN_WEIGHT}, {.role = CLN_RSTD},
                                          largest,         {.role = CLN_ROW_SCALE}};
    const cl_float eps = (cl_float)p->eps;
    const struct cln_constant constant[] = {
        {sizeof share->rounds, &share->rounds},
        {sizeof p->cols, &p->cols},
        {sizeof p->x_stride, &p->x_stride},
        {sizeof eps, &eps},
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_fp8_rms_norm_rows,
        .kernel = "fp8_rms_norm_rows",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->rows,
        .groups = share->groups,
        .items = share->items,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* fp8_rms_norm_tile.cl. count: of the magnitudes that it looks through; 0: y_scale is there. */
static clnorm_status add_tiles(clnorm_plan *plan, const problem *p, const struct cln_fp8_tile *tile,
                               struct cln_binding magnitudes, cl_ulong count) {
    struct cln_spec spec = spec_of(plan, p);
    spec.scale_dtype = p->scale_dtype;
    spec.write_q = p->write_y;
    spec.transposed = p->write_y_t;
    cln_fp8_spec_tile(&spec, tile);
    const struct cln_binding binding[] = {
        {.role = CLN_X},       {.role = CLN_X_SCALE}, {.role = CLN_WEIGHT}, {.role = CLN_RSTD},
        {.role = CLN_Y_SCALE}, {.role = CLN_Y},       {.role = CLN_Y_T},    magnitudes};
    const struct cln_constant constant[] = {
        {sizeof p->rows, &p->rows},
        {sizeof p->cols, &p->cols},
        {sizeof p->x_stride, &p->x_stride},
        {sizeof p->y_stride, &p->y_stride},
        {sizeof p->y_t_stride, &p->y_t_stride},
        {sizeof count, &count},
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_fp8_rms_norm_tile,
        .kernel = "fp8_rms_norm_tile",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = tile->count,
        .groups = (size_t)tile->count,
        .items = (size_t)tile->lanes,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status add_stages(clnorm_plan *plan, const problem *p, const struct cln_fp8_tile *tile) {
    const uint64_t rows = cln_divide_up(p->rows, rows_at_once(&plan->config));
    const struct cln_fp8_share share = cln_fp8_share_of_largest(&plan->context->device, &plan->config, rows);
    const struct cln_fp8_largest largest = {
        .magnitudes = {CLN_WORKSPACE, sizeof(cl_float), 0, share.groups * sizeof(cl_float)},
        .count = share.groups,
        .q_dtype = p->y_dtype,
        .scale_dtype = p->scale_dtype,
        .scale = CLN_Y_SCALE,
    };
    const bool tiles_search = cln_fp8_tiles_search(tile, largest.count);
    cln_plan_set_workspace(plan, share.groups * sizeof(cl_float));
    clnorm_status status = add_rows(plan, p, &share, largest.magnitudes);
    if (!status && !tiles_search)
        status = cln_fp8_add_largest(plan, &largest);
    return status ? status : add_tiles(plan, p, tile, largest.magnitudes, tiles_search ? largest.count : 0);
}

clnorm_status clnorm_fp8_rms_norm_plan_create(clnorm_context *context, const clnorm_fp8_rms_norm_desc *desc,
                                              clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    problem p;
    clnorm_status status = validate(desc, &p);
    if (status)
        return status;
    clnorm_plan *made = NULL;
    if ((status = cln_plan_create(context, &made)))
        return status;
    struct cln_tensor unsized[CLN_ROLES] = {{0}};
    struct cln_fp8_tile tile = {0};
    if (!(status = describe_tensors(&p, 1, 1, unsized))) { /* before the config: its arithmetic relies on sizes that fit */
        const struct cln_workload work = workload_of(&p);
        status = cln_fp8_config(&context->device, &work, p.group_size, &p.config, &made->config);
    }
    if (!status) {
        tile = cln_fp8_tile_of(&context->device, &made->config, p.rows, p.cols, p.write_y_t, p.y_t_stride);
        status = describe_tensors(&p, made->config.vec, tile.row_vec, made->tensor);
    }
    if (!status && p.rows)
        status = add_stages(made, &p, &tile);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- one call */

static clnorm_status make_fp8_rms_norm(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_fp8_rms_norm_plan_create(context, desc, plan);
}

clnorm_status clnorm_fp8_rms_norm(clnorm_context *context, cl_command_queue queue, const clnorm_fp8_rms_norm_desc *desc,
                                  const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &descriptor, make_fp8_rms_norm, desc, queue, args, num_wait, wait_list, event);
}
