#include <float.h>
#include <inttypes.h>

#include "arithmetic.h"
#include "context.h"
#include "dtype.h"
#include "fp8.h"
#include "one_call.h"
#include "scaling.h"
#include "status.h"
#include "tensor.h"

/* From here on a descriptor is a problem: validated, with no default left in it. */
typedef clnorm_quantize_desc problem;

/* The only gap between a descriptor's fields. */
enum { GAP = offsetof(clnorm_quantize_desc, stochastic) + sizeof(bool), GAP_END = offsetof(clnorm_quantize_desc, scale) };
_Static_assert(sizeof(clnorm_quantize_desc) == sizeof(size_t) + 7 * sizeof(uint64_t) + 4 * sizeof(clnorm_dtype) +
                                                   3 * sizeof(bool) + (GAP_END - GAP) + sizeof(double) +
                                                   sizeof(clnorm_config),
               "a descriptor has one gap");
_Static_assert(sizeof(clnorm_quantize_desc) <= CLN_DESCRIPTOR_MOST, "a descriptor can be copied");
static const struct cln_descriptor descriptor = {"CLNORM_QUANTIZE_DESC_INIT", sizeof(clnorm_quantize_desc), GAP, GAP_END};

static clnorm_status check_values(const clnorm_quantize_desc *desc) {
    if (desc->scale != 0 && !(desc->scale >= FLT_MIN && desc->scale <= FLT_MAX))
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.scale is %g: expected 0, or a number from %g to %g that x is divided by", desc->scale,
                        (double)FLT_MIN, (double)FLT_MAX);
    if (desc->scale != 0 && desc->scaling != CLNORM_SCALING_TENSOR)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.scale is %g: expected 0 without CLNORM_SCALING_TENSOR", desc->scale);
    if (!desc->stochastic && desc->seed)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.seed is %" PRIu64 ": expected 0 where desc.stochastic is false",
                        desc->seed);
    return CLNORM_SUCCESS;
}

static clnorm_status validate(const clnorm_quantize_desc *desc, problem *p) {
    clnorm_status status = cln_descriptor_check(&descriptor, desc);
    if (status)
        return status;
    *p = *desc;
    if (!cln_dtype_valid(desc->x_dtype) || desc->x_dtype == CLNORM_F64)
        return cln_dtype_refuse("x_dtype", desc->x_dtype, "CLNORM_F32, CLNORM_F16 or CLNORM_BF16");
    if (!cln_dtype_fp8(desc->q_dtype))
        return cln_dtype_refuse("q_dtype", desc->q_dtype, "CLNORM_F8_E4M3 or CLNORM_F8_E5M2");
    if ((status = cln_fp8_check_scale_dtype("scale_dtype", desc->scale_dtype)) || (status = check_values(desc)) ||
        (status = cln_scaling_check(desc->scaling, desc->rows, desc->cols, desc->group_size)))
        return status;
    p->x_stride = cln_or_else(desc->x_stride, desc->cols);
    p->q_stride = cln_or_else(desc->q_stride, desc->cols);
    p->q_t_stride = cln_or_else(desc->transpose ? desc->q_t_stride : 0, desc->rows);
    p->group_size = desc->scaling == CLNORM_SCALING_GROUP ? desc->group_size : desc->cols;
    if ((status = cln_fp8_check_stride("x_stride", p->x_stride, "cols", p->cols)) ||
        (status = cln_fp8_check_stride("q_stride", p->q_stride, "cols", p->cols)))
        return status;
    return cln_fp8_check_stride("q_t_stride", p->q_t_stride, "rows", p->rows);
}

/* ------------------------------------------------------------------------------------------------ tensors and stages */

static clnorm_status describe_tensors(const problem *p, uint32_t vec, uint64_t row_vec,
                                      struct cln_tensor tensor[CLN_ROLES]) {
    const uint64_t scales = cln_scaling_count(p->scaling, p->rows, p->cols, p->group_size);
    const clnorm_dtype q_t = p->transpose ? p->q_dtype : CLNORM_DTYPE_NONE;
    clnorm_status status;
    if ((status = cln_tensor_matrix(&tensor[CLN_X], "x", p->rows, p->cols, p->x_stride, p->x_dtype, vec)) ||
        (status = cln_tensor_matrix(&tensor[CLN_Q], "q", p->rows, p->cols, p->q_stride, p->q_dtype, vec)) ||
        (status = cln_tensor_matrix(&tensor[CLN_Q_T], "q_t", p->rows ? p->cols : 0, p->rows, p->q_t_stride, q_t,
                                    (uint32_t)row_vec)))
        return status;
    if (p->scale == 0 &&
        (status = cln_tensor_vector(&tensor[CLN_SCALE], "scale", scales, clnorm_dtype_size(p->scale_dtype), 0)))
        return status;
    return p->save_amax ? cln_tensor_vector(&tensor[CLN_AMAX], "amax", scales, sizeof(cl_float), 0) : CLNORM_SUCCESS;
}

static struct cln_workload workload_of(const problem *p) {
    return (struct cln_workload){
        .rows = p->rows,
        .groups = cln_divide_up(p->cols, p->group_size),
        .group_size = p->group_size,
        .alignment = cln_lowest_bit(p->cols | p->group_size | p->x_stride | p->q_stride),
        .x_size = clnorm_dtype_size(p->x_dtype),
        .held_size = clnorm_dtype_size(p->x_dtype),
        .norm = CLNORM_RMS_NORM,
        .real_size = sizeof(cl_float),
    };
}

static struct cln_spec spec_of(const clnorm_plan *plan, const problem *p) {
    struct cln_spec spec = cln_fp8_spec(&plan->context->device, &plan->config);
    spec.x_dtype = p->x_dtype;
    spec.q_dtype = p->q_dtype;
    if (p->scaling == CLNORM_SCALING_GROUP) { /* else kernels of all widths are the same */
        spec.group_size = p->group_size;
        spec.groups = cln_divide_up(p->cols, p->group_size);
    }
    spec.scaling = p->scaling;
    spec.stochastic = p->stochastic;
    spec.write_q = true;
    return spec;
}

static struct cln_fp8_share share_of(const clnorm_plan *plan, const problem *p) {
    const uint64_t segments = p->rows * cln_divide_up(p->cols, p->group_size);
    return p->scaling == CLNORM_SCALING_TENSOR ? cln_fp8_share_of_largest(&plan->context->device, &plan->config, segments)
                                               : cln_fp8_share_of(&plan->config, segments);
}

/* quantize_segments.cl over all rows or groups. With CLNORM_SCALING_TENSOR: what it says of each share goes to magnitudes.
 */
static clnorm_status add_segments(clnorm_plan *plan, const problem *p, const struct cln_fp8_share *share,
                                  struct cln_binding magnitudes) {
    const bool whole = p->scaling == CLNORM_SCALING_TENSOR;
    struct cln_spec spec = spec_of(plan, p);
    spec.scale_dtype = whole ? CLNORM_DTYPE_NONE : p->scale_dtype;
    spec.amax = whole || p->save_amax;
    spec.write_q = !whole && !p->transpose;
    const struct cln_binding amax = {.role = CLN_AMAX};
    const struct cln_binding binding[] = {{.role = CLN_X}, {.role = CLN_Q}, {.role = CLN_SCALE}, whole ? magnitudes : amax};
    const struct cln_constant constant[] = {
        {sizeof share->rounds, &share->rounds}, {sizeof p->cols, &p->cols}, {sizeof p->x_stride, &p->x_stride},
        {sizeof p->q_stride, &p->q_stride},     {sizeof p->seed, &p->seed}, {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_quantize_segments,
        .kernel = "quantize_segments",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->rows * cln_divide_up(p->cols, p->group_size),
        .groups = share->groups,
        .items = share->items,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* quantize_tile.cl. count: of the magnitudes that it looks through; 0: the scale is there. */
static clnorm_status add_tiles(clnorm_plan *plan, const problem *p, const struct cln_fp8_tile *tile,
                               struct cln_binding magnitudes, cl_ulong count) {
    struct cln_spec spec = spec_of(plan, p);
    spec.scale_dtype = p->scale != 0 ? CLNORM_DTYPE_NONE : p->scale_dtype;
    spec.transposed = p->transpose;
    spec.amax = count > 0 && p->save_amax;
    cln_fp8_spec_tile(&spec, tile);
    const struct cln_binding binding[] = {{.role = CLN_X},   {.role = CLN_SCALE}, {.role = CLN_Q},
                                          {.role = CLN_Q_T}, {.role = CLN_AMAX},  magnitudes};
    const cl_float given = (cl_float)p->scale;
    const struct cln_constant constant[] = {
        {sizeof p->rows, &p->rows},
        {sizeof p->cols, &p->cols},
        {sizeof p->x_stride, &p->x_stride},
        {sizeof p->q_stride, &p->q_stride},
        {sizeof p->q_t_stride, &p->q_t_stride},
        {sizeof p->seed, &p->seed},
        {sizeof given, &given},
        {sizeof count, &count},
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_quantize_tile,
        .kernel = "quantize_tile",
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
    const bool whole = p->scaling == CLNORM_SCALING_TENSOR;
    const struct cln_fp8_share share = share_of(plan, p);
    const struct cln_fp8_largest largest = {
        .magnitudes = {CLN_WORKSPACE, sizeof(cl_float), 0, share.groups * sizeof(cl_float)},
        .count = share.groups,
        .q_dtype = p->q_dtype,
        .scale_dtype = p->scale != 0 ? CLNORM_DTYPE_NONE : p->scale_dtype,
        .scale = CLN_SCALE,
        .amax = p->save_amax,
    };
    const bool searched = p->scale == 0 || p->save_amax;
    const bool tiles_search = whole && p->scale == 0 && cln_fp8_tiles_search(tile, largest.count);
    if (searched && whole)
        cln_plan_set_workspace(plan, share.groups * sizeof(cl_float));
    clnorm_status status = searched ? add_segments(plan, p, &share, largest.magnitudes) : CLNORM_SUCCESS;
    if (!status && searched && whole && !tiles_search)
        status = cln_fp8_add_largest(plan, &largest);
    if (!status && (whole || p->transpose))
        status = add_tiles(plan, p, tile, largest.magnitudes, tiles_search ? largest.count : 0);
    return status;
}

clnorm_status clnorm_quantize_plan_create(clnorm_context *context, const clnorm_quantize_desc *desc, clnorm_plan **plan) {
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
        status = cln_fp8_config(&context->device, &work, p.cols, &p.config, &made->config);
    }
    if (!status) {
        tile = cln_fp8_tile_of(&context->device, &made->config, p.rows, p.cols, p.transpose, p.q_t_stride);
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

static clnorm_status make_quantize(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_quantize_plan_create(context, desc, plan);
}

clnorm_status clnorm_quantize(clnorm_context *context, cl_command_queue queue, const clnorm_quantize_desc *desc,
                              const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &descriptor, make_quantize, desc, queue, args, num_wait, wait_list, event);
}
