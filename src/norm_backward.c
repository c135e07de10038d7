#include "arithmetic.h"
#include "config.h"
#include "context.h"
#include "dtype.h"
#include "norm_statistics.h"
#include "plan.h"
#include "plan_store.h"
#include "status.h"
#include "tensor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* From here on a descriptor is a problem: validated, with no default left in it. */
typedef clnorm_norm_backward_desc problem;

/* ------------------------------------------------------------------------------------------- descriptor to problem */

static clnorm_status check_size(const clnorm_norm_backward_desc *desc) {
    if (!desc)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "desc is NULL");
    if (desc->size != sizeof *desc)
        return cln_fail(CLNORM_INVALID_ARGUMENT,
                        "desc.size is %zu: expected %zu, start from CLNORM_NORM_BACKWARD_DESC_INIT", desc->size,
                        sizeof *desc);
    return CLNORM_SUCCESS;
}

static clnorm_status check_enums(const clnorm_norm_backward_desc *desc) {
    if (desc->norm != CLNORM_LAYER_NORM && desc->norm != CLNORM_RMS_NORM)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.norm is %d: expected a clnorm_norm", (int)desc->norm);
    if ((unsigned)desc->gate > CLNORM_GATE_SIGMOID)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.gate is %d: expected a clnorm_gate", (int)desc->gate);
    if ((unsigned)desc->reduction > CLNORM_REDUCTION_LOCKED)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.reduction is %d: expected a clnorm_reduction", (int)desc->reduction);
    if (!cln_dtype_valid(desc->x_dtype))
        return cln_fail(CLNORM_INVALID_ENUM, "desc.x_dtype is %d: expected a clnorm_dtype", (int)desc->x_dtype);
    const struct {
        const char *name;
        clnorm_dtype dtype;
    } dtypes[] = {
        {"z_dtype", desc->z_dtype},
        {"dy_dtype", desc->dy_dtype},
        {"weight_dtype", desc->weight_dtype},
        {"bias_dtype", desc->bias_dtype},
        {"dx_dtype", desc->dx_dtype},
        {"dz_dtype", desc->dz_dtype},
        {"dweight_dtype", desc->dweight_dtype},
        {"dbias_dtype", desc->dbias_dtype},
        {"y_dtype", desc->y_dtype},
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (dtypes[i].dtype != CLNORM_DTYPE_NONE && !cln_dtype_valid(dtypes[i].dtype))
            return cln_fail(CLNORM_INVALID_ENUM, "desc.%s is %d: expected CLNORM_DTYPE_NONE or a clnorm_dtype",
                            dtypes[i].name, (int)dtypes[i].dtype);
    return CLNORM_SUCCESS;
}

static clnorm_status check_statistics(const clnorm_norm_backward_desc *desc) {
    if (desc->norm == CLNORM_RMS_NORM && desc->mean_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.mean_given is true: expected false, RMS norm has no mean");
    if (desc->norm == CLNORM_LAYER_NORM && desc->mean_given != desc->rstd_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.mean_given is %s, desc.rstd_given is %s: expected both or neither",
                        desc->mean_given ? "true" : "false", desc->rstd_given ? "true" : "false");
    if (!(desc->eps >= 0) || isinf(desc->eps))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.eps is %g: expected a finite number, 0 or more", desc->eps);
    return CLNORM_SUCCESS;
}

static clnorm_status check_values(const clnorm_norm_backward_desc *desc) {
    if (!isfinite(desc->weight_offset))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected a finite number", desc->weight_offset);
    if (desc->weight_offset != 0 && !desc->weight_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected 0 without a weight", desc->weight_offset);
    if (desc->gate_first && !desc->gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.gate_first is true: expected false without a gate");
    if (desc->dz_dtype && !desc->gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.dz_dtype is %s: expected none without a gate",
                        clnorm_dtype_name(desc->dz_dtype));
    if (!desc->dx_dtype && !desc->dz_dtype && !desc->dweight_dtype && !desc->dbias_dtype && !desc->y_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc asks for no output: expected one of dx_dtype, dz_dtype, dweight_dtype, "
                                              "dbias_dtype, y_dtype");
    if (desc->accumulate && !desc->dweight_dtype && !desc->dbias_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.accumulate is true: expected a dweight_dtype or dbias_dtype with it");
    if (!desc->slots)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.slots is 0: expected 1 or more");
    return CLNORM_SUCCESS;
}

static clnorm_status check_double(const clnorm_device_info *device, const problem *p) {
    const struct {
        const char *name;
        clnorm_dtype dtype;
    } others[] = {{"dy", p->dy_dtype},           {"z", p->z_dtype},         {"weight", p->weight_dtype},
                  {"bias", p->bias_dtype},       {"dx", p->dx_dtype},       {"dz", p->dz_dtype},
                  {"dweight", p->dweight_dtype}, {"dbias", p->dbias_dtype}, {"y", p->y_dtype}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].dtype && (others[i].dtype == CLNORM_F64) != (p->x_dtype == CLNORM_F64))
            return cln_fail(CLNORM_UNSUPPORTED, "desc.%s_dtype is %s, desc.x_dtype is %s: expected f64 for all or for none",
                            others[i].name, clnorm_dtype_name(others[i].dtype), clnorm_dtype_name(p->x_dtype));
    if (p->x_dtype == CLNORM_F64 && !device->fp64)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.x_dtype is f64: the device %s has no double precision", device->name);
    return CLNORM_SUCCESS;
}

static clnorm_status check_shape(const problem *p) {
    if (!p->cols)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is 0: expected 1 or more");
    if (p->cols % p->group_size)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.group_size is %" PRIu64 ": expected a divisor of cols, %" PRIu64,
                        p->group_size, p->cols);
    const struct {
        const char *name;
        uint64_t stride;
    } strides[] = {{"x_stride", p->x_stride},   {"z_stride", p->z_stride},   {"dy_stride", p->dy_stride},
                   {"dx_stride", p->dx_stride}, {"dz_stride", p->dz_stride}, {"y_stride", p->y_stride}};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++)
        if (strides[i].stride < p->cols)
            return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s is %" PRIu64 ": expected at least cols, %" PRIu64,
                            strides[i].name, strides[i].stride, p->cols);
    return CLNORM_SUCCESS;
}

/* The stride of a tensor that may be absent. */
static uint64_t stride_of(uint64_t stride, clnorm_dtype dtype, uint64_t cols) {
    return cln_or_else(dtype ? stride : 0, cols);
}

static clnorm_status validate(const clnorm_device_info *device, const clnorm_norm_backward_desc *desc, problem *p) {
    clnorm_status status = check_size(desc);
    if (status)
        return status;
    if ((status = check_enums(desc)) || (status = check_statistics(desc)) || (status = check_values(desc)))
        return status;
    *p = *desc;
    p->group_size = cln_or_else(desc->group_size, desc->cols);
    p->reduction = desc->reduction ? desc->reduction : CLNORM_REDUCTION_PARTIAL;
    p->dy_dtype = desc->dy_dtype ? desc->dy_dtype : desc->x_dtype;
    p->z_dtype = !desc->gate ? CLNORM_DTYPE_NONE : desc->z_dtype ? desc->z_dtype : desc->x_dtype;
    p->x_stride = cln_or_else(desc->x_stride, desc->cols);
    p->dy_stride = cln_or_else(desc->dy_stride, desc->cols);
    p->z_stride = stride_of(desc->z_stride, p->z_dtype, desc->cols);
    p->dx_stride = stride_of(desc->dx_stride, desc->dx_dtype, desc->cols);
    p->dz_stride = stride_of(desc->dz_stride, desc->dz_dtype, desc->cols);
    p->y_stride = stride_of(desc->y_stride, desc->y_dtype, desc->cols);
    if ((status = check_shape(p)))
        return status;
    return check_double(device, p);
}

/* --------------------------------------------------------------------------------------- tensors, config, workspace */

static uint64_t real_size(const problem *p) {
    return p->x_dtype == CLNORM_F64 ? sizeof(cl_double) : sizeof(cl_float);
}

/* What each argument has to be like, but for the workspace. */
static clnorm_status describe_tensors(const problem *p, uint32_t vec, struct cln_tensor tensor[CLN_ROLES]) {
    const struct {
        enum cln_role role;
        const char *name;
        uint64_t stride;
        clnorm_dtype dtype;
    } matrices[] = {{CLN_X, "x", p->x_stride, p->x_dtype},     {CLN_Z, "z", p->z_stride, p->z_dtype},
                    {CLN_DY, "dy", p->dy_stride, p->dy_dtype}, {CLN_DX, "dx", p->dx_stride, p->dx_dtype},
                    {CLN_DZ, "dz", p->dz_stride, p->dz_dtype}, {CLN_Y, "y", p->y_stride, p->y_dtype}};
    clnorm_status status = CLNORM_SUCCESS;
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0] && !status; i++)
        status = cln_tensor_matrix(&tensor[matrices[i].role], matrices[i].name, p->rows, p->cols, matrices[i].stride,
                                   matrices[i].dtype, vec);
    uint64_t statistics = 0;
    if (!status && __builtin_mul_overflow(p->rows, p->cols / p->group_size, &statistics))
        status = cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ", groups %" PRIu64 ": expected a product below 2^63",
                          p->rows, p->cols / p->group_size);
    const struct {
        enum cln_role role;
        const char *name;
        uint64_t elements, size;
        uint32_t vec;
    } vectors[] = {{CLN_WEIGHT, "weight", p->rows ? p->cols : 0, clnorm_dtype_size(p->weight_dtype), vec},
                   {CLN_BIAS, "bias", p->rows ? p->cols : 0, clnorm_dtype_size(p->bias_dtype), vec},
                   {CLN_DWEIGHT, "dweight", p->cols, clnorm_dtype_size(p->dweight_dtype), vec},
                   {CLN_DBIAS, "dbias", p->cols, clnorm_dtype_size(p->dbias_dtype), vec},
                   {CLN_MEAN, "mean", statistics, p->mean_given ? real_size(p) : 0, 0},
                   {CLN_RSTD, "rstd", statistics, p->rstd_given ? real_size(p) : 0, 0}};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0] && !status; i++)
        if (vectors[i].size)
            status = cln_tensor_vector(&tensor[vectors[i].role], vectors[i].name, vectors[i].elements, vectors[i].size,
                                       vectors[i].vec);
    return status;
}

static struct cln_workload workload_of(const problem *p) {
    const uint64_t strides = p->x_stride | p->z_stride | p->dy_stride | p->dx_stride | p->dz_stride | p->y_stride;
    return (struct cln_workload){
        .rows = p->rows,
        .groups = p->cols / p->group_size,
        .group_size = p->group_size,
        .alignment = cln_lowest_bit(p->group_size | strides),
        .x_size = clnorm_dtype_size(p->x_dtype),
        .held_size = clnorm_dtype_size(p->x_dtype),
        .norm = p->norm,
        .real_size = real_size(p),
        .gated = p->gate != CLNORM_GATE_NONE,
        .both_sums = p->dweight_dtype && p->dbias_dtype,
        .locked = p->reduction == CLNORM_REDUCTION_LOCKED && (p->dweight_dtype || p->dbias_dtype),
    };
}

/* How the work is shared out, and what the workspace holds: one part after the other, each at a multiple of
 * CLN_WORKSPACE_ALIGNMENT bytes.
 *
 *   mean, rstd     [groups, rows]             where they are not given
 *   sums           [2, chunks, groups, rows]  where segments are split
 *   dweight, dbias [slots, cols]
 *   locks          [blocks, slots] uint       of CLNORM_REDUCTION_LOCKED */
struct layout {
    uint64_t span;    /* groups that a work-group takes in turn */
    uint64_t blocks;  /* work-groups that share a row */
    uint64_t walkers; /* work-groups for each block, that share the rows */
    uint64_t slots;
    uint64_t reduce_vec; /* elements of an access of norm_backward_reduce.cl */
    bool split, locked;
    struct cln_binding mean, rstd, sums, dweight, dbias, locks;
    uint64_t size; /* bytes */
};

/* Appends a part. An element of 0 in its binding: it is not there. */
static clnorm_status add_part(struct layout *layout, struct cln_binding *part, uint64_t elements, uint64_t element) {
    uint64_t bytes;
    if (__builtin_mul_overflow(elements, element, &bytes) || bytes > INT64_MAX - CLN_WORKSPACE_ALIGNMENT ||
        __builtin_add_overflow(layout->size,
                               (bytes + CLN_WORKSPACE_ALIGNMENT - 1) / CLN_WORKSPACE_ALIGNMENT * CLN_WORKSPACE_ALIGNMENT,
                               &bytes) ||
        bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW,
                        "the workspace has a part of %" PRIu64 " elements of %" PRIu64
                        " bytes: expected less than 2^63 bytes in all",
                        elements, element);
    *part = (struct cln_binding){CLN_WORKSPACE, element, layout->size};
    layout->size = bytes;
    return CLNORM_SUCCESS;
}

static clnorm_status lay_out(const clnorm_device_info *device, const problem *p, const clnorm_config *c,
                             struct layout *layout) {
    const struct cln_workload work = workload_of(p);
    const bool gathers = p->dweight_dtype || p->dbias_dtype, mean = p->norm == CLNORM_LAYER_NORM;
    const uint64_t groups = work.groups, real = work.real_size, segments = p->rows * groups;
    *layout = (struct layout){.split = c->tile < p->group_size, .locked = work.locked};
    layout->span = cln_config_span(device, &work, c);
    layout->blocks = groups / layout->span * cln_divide_up(p->group_size, c->tile);
    layout->reduce_vec =
        cln_config_element_aligned(device, c) ? 16 : cln_smaller(cln_lowest_bit(p->cols), 16 / work.real_size);
    layout->walkers = cln_divide_up(p->rows, (uint64_t)c->rounds * c->segments);
    layout->slots = !gathers ? 0 : layout->locked ? cln_smaller(p->slots, layout->walkers) : layout->walkers;
    clnorm_status status = CLNORM_SUCCESS;
    if (!p->rstd_given && mean)
        status = add_part(layout, &layout->mean, segments, real);
    if (!status && !p->rstd_given)
        status = add_part(layout, &layout->rstd, segments, real);
    if (!status && layout->split)
        status = add_part(layout, &layout->sums, 2 * (uint64_t)c->chunks * segments, real);
    if (!status && p->dweight_dtype)
        status = add_part(layout, &layout->dweight, layout->slots * p->cols, real);
    if (!status && p->dbias_dtype)
        status = add_part(layout, &layout->dbias, layout->slots * p->cols, real);
    if (!status && layout->locked)
        status = add_part(layout, &layout->locks, layout->blocks * layout->slots, sizeof(cl_uint));
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- stages */

static struct cln_spec spec_of(const problem *p, const clnorm_device_info *device, const clnorm_config *c,
                               const struct layout *layout) {
    return (struct cln_spec){
        .family = CLN_NORM_BACKWARD,
        .norm = p->norm,
        .group_size = p->group_size,
        .groups = p->cols / p->group_size,
        .x_dtype = p->x_dtype,
        .y_dtype = p->y_dtype,
        .z_dtype = p->z_dtype,
        .weight_dtype = p->weight_dtype,
        .bias_dtype = p->bias_dtype,
        .dy_dtype = p->dy_dtype,
        .dx_dtype = p->dx_dtype,
        .dz_dtype = p->dz_dtype,
        .gate = p->gate,
        .gate_first = p->gate_first,
        .weight_offset = p->weight_offset != 0,
        .dweight = p->dweight_dtype != CLNORM_DTYPE_NONE,
        .dbias = p->dbias_dtype != CLNORM_DTYPE_NONE,
        .locked = layout->locked,
        .vec = c->vec,
        .lanes = c->lanes,
        .segments = c->segments,
        .keep = c->keep,
        .unroll = c->unroll,
        .reduce = c->reduce,
        .stores = c->stores,
        .weights = c->weights,
        .isa = c->isa,
        .tile = c->tile,
        .gather = c->gather,
        .fetch = c->fetch,
        .span = layout->span,
        .chunks = c->chunks,
        .element_aligned = cln_config_element_aligned(device, c),
        .opencl_c = c->reduce == CLNORM_REDUCE_SUBGROUP || (layout->locked && c->isa == CLNORM_ISA_PORTABLE)
                        ? device->opencl_c_version
                        : 120,
    };
}

static struct cln_binding given_or(bool given, enum cln_role role, struct cln_binding part) {
    const struct cln_binding argument = {.role = role};
    return given ? argument : part;
}

/* A number as the kernels' real. */
struct real {
    cl_float f;
    cl_double d;
};

static struct real real_of(double value) {
    return (struct real){(cl_float)value, value};
}

static struct cln_constant real_constant(const problem *p, const struct real *real) {
    const bool is_double = p->x_dtype == CLNORM_F64;
    const struct cln_constant constant = {real_size(p), is_double ? (const void *)&real->d : &real->f};
    return constant;
}

enum { MOST_GROUPS = 1 << 30 }; /* work-groups of a launch */

/* norm_backward_sums.cl over the chunks of all segments. */
static clnorm_status add_sums(clnorm_plan *plan, const problem *p, const struct layout *layout) {
    clnorm_config c = plan->config;
    c.segments = 1;
    struct cln_spec spec = spec_of(p, &plan->context->device, &c, layout);
    const struct cln_binding binding[] = {{.role = CLN_X},
                                          {.role = CLN_Z},
                                          {.role = CLN_DY},
                                          {.role = CLN_WEIGHT},
                                          given_or(p->mean_given, CLN_MEAN, layout->mean),
                                          given_or(p->rstd_given, CLN_RSTD, layout->rstd),
                                          layout->sums};
    const cl_ulong work = p->rows * (p->cols / p->group_size) * c.chunks;
    const cl_ulong rounds = cln_divide_up(work, MOST_GROUPS);
    const struct real weight_offset = real_of(p->weight_offset);
    const struct cln_constant constant[] = {
        {sizeof p->rows, &p->rows},
        {sizeof rounds, &rounds},
        {sizeof p->x_stride, &p->x_stride},
        {sizeof p->z_stride, &p->z_stride},
        {sizeof p->dy_stride, &p->dy_stride},
        real_constant(p, &weight_offset),
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward_sums,
        .kernel = "norm_backward_sums",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = work,
        .groups = (size_t)cln_divide_up(work, rounds),
        .items = c.lanes,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* norm_backward.cl's kernel that opens all locks. */
static clnorm_status add_unlock(clnorm_plan *plan, const problem *p, const struct layout *layout) {
    const struct cln_spec spec = spec_of(p, &plan->context->device, &plan->config, layout);
    const cl_ulong work = layout->blocks * layout->slots;
    const size_t items = (size_t)plan->config.lanes * plan->config.segments;
    const struct cln_constant constant[] = {{0, NULL}};
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward,
        .kernel = "norm_backward_unlock",
        .spec = &spec,
        .binding = &layout->locks,
        .tensors = 1,
        .work = work,
        .groups = (size_t)cln_smaller(cln_divide_up(work, items), 1024),
        .items = items,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* norm_backward.cl over all rows. */
static clnorm_status add_walk(clnorm_plan *plan, const problem *p, const struct layout *layout) {
    const clnorm_config *c = &plan->config;
    const struct cln_spec spec = spec_of(p, &plan->context->device, c, layout);
    const struct cln_binding binding[] = {{.role = CLN_X},
                                          {.role = CLN_Z},
                                          {.role = CLN_DY},
                                          {.role = CLN_WEIGHT},
                                          {.role = CLN_BIAS},
                                          given_or(p->mean_given, CLN_MEAN, layout->mean),
                                          given_or(p->rstd_given, CLN_RSTD, layout->rstd),
                                          layout->sums,
                                          {.role = CLN_DX},
                                          {.role = CLN_DZ},
                                          {.role = CLN_Y},
                                          layout->dweight,
                                          layout->dbias,
                                          layout->locks};
    const cl_ulong rounds = c->rounds, slots = cln_larger(layout->slots, 1);
    const struct real weight_offset = real_of(p->weight_offset);
    const struct cln_constant constant[] = {
        {sizeof rounds, &rounds},
        {sizeof slots, &slots},
        {sizeof p->x_stride, &p->x_stride},
        {sizeof p->z_stride, &p->z_stride},
        {sizeof p->dy_stride, &p->dy_stride},
        {sizeof p->dx_stride, &p->dx_stride},
        {sizeof p->dz_stride, &p->dz_stride},
        {sizeof p->y_stride, &p->y_stride},
        real_constant(p, &weight_offset),
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward,
        .kernel = "norm_backward",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->rows,
        .groups = (size_t)(layout->blocks * layout->walkers),
        .items = (size_t)c->lanes * c->segments,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* norm_backward_reduce.cl over the columns. */
static clnorm_status add_reduce(clnorm_plan *plan, const problem *p, const struct layout *layout) {
    const clnorm_device_info *device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    const uint64_t most_items = cln_power_of_two_at_most(device->max_work_group_size);
    const uint64_t lanes = cpu ? 1 : cln_smaller(8, most_items);
    const struct cln_spec spec = {
        .family = CLN_NORM_BACKWARD_REDUCE,
        .group_size = p->cols,
        .x_dtype = p->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32,
        .dweight_dtype = p->dweight_dtype,
        .dbias_dtype = p->dbias_dtype,
        .accumulate = p->accumulate,
        .vec = layout->reduce_vec,
        .lanes = lanes,
        .segments = cpu ? 1 : cln_smaller(64, most_items / lanes),
        .unroll = 4,
        .stores = plan->config.stores,
        .isa = plan->config.isa,
        .element_aligned = cpu,
        .opencl_c = 120,
    };
    const struct cln_binding binding[] = {layout->dweight, layout->dbias, {.role = CLN_DWEIGHT}, {.role = CLN_DBIAS}};
    const uint64_t tiles = cln_divide_up(p->cols, spec.vec * lanes);
    const cl_ulong slots = layout->slots;
    const struct cln_constant constant[] = {{sizeof slots, &slots}, {0, NULL}};
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward_reduce,
        .kernel = "norm_backward_reduce",
        .any = !cpu,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->cols,
        .groups = (size_t)(tiles * (p->dweight_dtype && p->dbias_dtype ? 2 : 1)),
        .items = (size_t)(lanes * spec.segments),
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status add_stages(clnorm_plan *plan, const problem *p, const struct layout *layout) {
    const bool gathers = p->dweight_dtype || p->dbias_dtype;
    const bool walks = p->rows > 0;
    clnorm_status status = CLNORM_SUCCESS;
    if (walks && !p->rstd_given)
        status = cln_norm_add_statistics(plan, p, layout->mean, layout->rstd);
    if (!status && walks && layout->split)
        status = add_sums(plan, p, layout);
    if (!status && walks && layout->locked)
        status = add_unlock(plan, p, layout);
    if (!status && walks)
        status = add_walk(plan, p, layout);
    if (!status && gathers && (walks || !p->accumulate))
        status = add_reduce(plan, p, layout);
    return status;
}

clnorm_status clnorm_norm_backward_plan_create(clnorm_context *context, const clnorm_norm_backward_desc *desc,
                                               clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    problem p;
    clnorm_status status = validate(&context->device, desc, &p);
    if (status)
        return status;
    clnorm_plan *made = NULL;
    if ((status = cln_plan_create(context, &made)))
        return status;
    struct cln_tensor unsized[CLN_ROLES] = {{0}};
    struct layout layout = {0};
    if (!(status = describe_tensors(&p, 1, unsized))) { /* before the config: its arithmetic relies on sizes that fit */
        const struct cln_workload work = workload_of(&p);
        status = cln_config_choose_backward(&context->device, &work, &p.config, &made->config);
    }
    if (!status)
        status = lay_out(&context->device, &p, &made->config, &layout);
    if (!status)
        status = describe_tensors(&p, made->config.vec, made->tensor);
    made->tensor[CLN_DWEIGHT].vector = layout.reduce_vec * made->tensor[CLN_DWEIGHT].element;
    made->tensor[CLN_DBIAS].vector = layout.reduce_vec * made->tensor[CLN_DBIAS].element;
    made->workspace_size = layout.size;
    if (layout.size)
        made->tensor[CLN_WORKSPACE] = (struct cln_tensor){CLN_WORKSPACE_ALIGNMENT, layout.size, CLN_WORKSPACE_ALIGNMENT, 0};
    if (!status)
        status = add_stages(made, &p, &layout);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- one call */

/* The only gap between a descriptor's fields. */
enum {
    GAP = offsetof(clnorm_norm_backward_desc, accumulate) + sizeof(bool),
    GAP_END = offsetof(clnorm_norm_backward_desc, eps)
};
_Static_assert(sizeof(clnorm_norm_backward_desc) == sizeof(size_t) + 9 * sizeof(uint64_t) + 13 * sizeof(clnorm_norm) +
                                                        sizeof(uint32_t) + 4 * sizeof(bool) + (GAP_END - GAP) +
                                                        2 * sizeof(double) + sizeof(clnorm_config),
               "a descriptor has one gap");

static clnorm_status make_backward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_norm_backward_plan_create(context, desc, plan);
}

clnorm_status clnorm_norm_backward(clnorm_context *context, cl_command_queue queue, const clnorm_norm_backward_desc *desc,
                                   const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    if (!context)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "context is NULL");
    const clnorm_status status = check_size(desc);
    if (status)
        return status;
    clnorm_norm_backward_desc key = *desc; /* the store compares bytes */
    memset((char *)&key + GAP, 0, GAP_END - GAP);
    return cln_plan_store_enqueue(context, make_backward, &key, sizeof key, queue, args, num_wait, wait_list, event);
}
