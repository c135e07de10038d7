/* How the backward's work is shared out, and the parts of its workspace. */
#include "operation/norm_backward_layout.h"

#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/status.h"
#include "config/resources.h"
#include "norm/norm_backward_args.h"
#include "operation/rope.h"

typedef cln_backward_problem problem;

/* With an 8-bit x the vectors are those that suit dy. */
static uint64_t x_size_of(const problem *p) {
    return clnorm_dtype_size(p->x.scaling ? p->dy.dtype : p->x.dtype);
}

struct cln_workload cln_backward_workload(const struct cln_operation *operation, const void *desc) {
    const problem *const p = desc;
    const struct cln_rope rope = CLN_ROPE_OF(p);
    return (struct cln_workload){
        .users = CLN_KNOBS_BACKWARD,
        .rows = p->rows,
        .groups = p->cols / p->group_size,
        .group_size = p->group_size,
        .alignment = cln_lowest_bit(p->group_size | cln_operation_strides(operation, desc) | cln_rope_strides(&rope)),
        .lead_vec = p->rope || p->weight_rows > 1 ? 0 : cln_operation_lead_vec(operation, desc),
        .x_size = x_size_of(p),
        .held_size = x_size_of(p),
        .norm = p->norm,
        .real_size = cln_dtype_real_size(p->x.dtype),
        .gated = p->gate != CLNORM_GATE_NONE,
        .more_inputs = (p->gate != CLNORM_GATE_NONE ? 1U : 0) + (p->residual.dtype && !p->s_given ? 1U : 0) +
                       (p->dresidual_out.dtype ? 1U : 0),
        .both_sums = p->dweight.dtype && p->dbias.dtype,
        .locked = p->reduction == CLNORM_REDUCTION_LOCKED && (p->dweight.dtype || p->dbias.dtype),
        .slots = p->slots,
        .sums_rows = p->dweight.dtype || p->dbias.dtype,
        .weight_rows = p->weight_rows,
        .weight_repeat = p->weight_repeat,
        .rope = p->rope,
        .rope_dims = p->rope_dims,
    };
}

/* Appends a part to the workspace. */
static clnorm_status add_part(struct cln_backward_layout *layout, struct cln_binding *part, uint64_t elements,
                              uint64_t element) {
    if (!cln_workspace_place(&layout->size, elements, element, part) || layout->size > INT64_MAX - CLN_WORKSPACE_ALIGNMENT)
        return cln_workspace_refuse(elements, element);
    layout->size = cln_divide_up(layout->size, CLN_WORKSPACE_ALIGNMENT) * CLN_WORKSPACE_ALIGNMENT;
    return CLNORM_SUCCESS;
}

/* Whether an output depends on c1 and c2 of the header's formulas. */
static bool needs_c1(const problem *p) {
    return p->dx.dtype || p->dresidual.dtype || (p->gate_first && p->dz.dtype);
}

/* Maximum rows whose terms of dweight and dbias one lane adds up, except in a last run. A chain of f32 additions stops
 * growing at 2^24 equal terms; a chain of 2^12 loses at most 2^-12 of its sum. */
enum { MOST_ADDED = 4096 };

/* Waves of work-groups, enough that no lane adds up more. rows: that use one row of weights; at_once: work-groups of a
 * wave. */
static uint64_t waves_of(const struct cln_workload *work, const struct cln_config *c, uint64_t rows, uint64_t at_once) {
    if (!work->sums_rows || c->accumulator == CLN_ACCUMULATOR_COLUMNS)
        return 1;
    const uint64_t of_group = MOST_ADDED * cln_rows_at_once(work, c);
    return cln_larger(cln_divide_up(cln_divide_up(rows, of_group), at_once), 1);
}

/* Shares out the rows that use one row of weights. With leads, a work-group takes every row_groups-th row, which all begin
 * alike. Else, where one run is enough for a work-group, its rows are consecutive, and the run is shortened to an even
 * share where that saves no iteration. */
static void share_rows(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c,
                       struct cln_backward_layout *layout) {
    const bool leads = cln_leads(work, c);
    const uint64_t rows = work->rows / cln_larger(work->weight_rows, 1);
    const uint64_t alike = leads ? c->vec / work->alignment : 1; /* every alike-th row begins alike */
    const uint64_t classes = alike * cln_weight_blocks(work, c), taken = cln_rows_at_once(work, c);
    const uint64_t in_wave = cln_config_row_groups(device, c, layout->blocks);
    const uint64_t at_once = alike * cln_groups_of_class(in_wave, classes, cln_divide_up(rows, alike), taken);
    const uint64_t waves = waves_of(work, c, rows, at_once);
    if (leads && rows > 0) {
        const uint64_t needed = alike * cln_divide_up(cln_divide_up(rows, alike), taken);
        layout->run_length = 1;
        layout->row_groups = cln_smaller(cln_smaller(at_once * waves, needed), rows);
        layout->share = layout->row_groups * taken;
        return;
    }
    const uint64_t most = at_once * waves;
    const uint64_t even = cln_divide_up(rows, most);
    const uint64_t length = cln_smaller(c->run_length, waves > 1 ? cln_divide_up(even, taken) : MOST_ADDED);
    const uint64_t run = length * taken;
    if (even > run) {
        layout->run_length = length;
        layout->share = most * run;
        layout->row_groups = most;
    } else {
        layout->run_length = 0;
        layout->share = even > run - taken ? even : run;
        layout->row_groups = cln_divide_up(rows, layout->share);
    }
}

/* Slots of each row of weights. A tile of rows that begin differently has other columns, but the same lock in each slot, so
 * that work-groups which share a slot have rows that begin alike. */
static uint64_t slots_of(const problem *p, const struct cln_workload *work, const struct cln_config *c,
                         const struct cln_backward_layout *layout) {
    if (!layout->locked || p->slots / p->weight_rows >= layout->row_groups)
        return layout->row_groups;
    const uint64_t alike = layout->leads && c->tile < work->group_size ? c->vec / work->alignment : 1;
    return cln_larger(p->slots / p->weight_rows / alike * alike, 1);
}

/* Refuses a launch of too many work-groups. A large shape has many, whatever the config is. */
static clnorm_status refuse_work_groups(const clnorm_device_info *device, const problem *p, const struct cln_config *c) {
    if ((uint64_t)c->groups_per_cu * device->compute_units > CLN_MOST_GROUPS)
        return cln_config_refuse("groups_per_cu", c->groups_per_cu, "fewer, for at most 2^30 work-groups");
    return cln_fail(CLNORM_UNSUPPORTED,
                    "desc.rows is %" PRIu64 ", desc.cols is %" PRIu64
                    ": expected fewer, or larger tiles, for at most 2^30 work-groups",
                    p->rows, p->cols);
}

/* Sets the numbers of work-groups, slots and locks. */
static clnorm_status lay_out_groups(const clnorm_device_info *device, const problem *p, const struct cln_workload *work,
                                    const struct cln_config *c, struct cln_backward_layout *layout) {
    const uint64_t weight_rows = p->weight_rows;
    if (p->rows && weight_rows > 1 && weight_rows > CLN_MOST_GROUPS / layout->blocks)
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.weight_rows is %" PRIu64 ": expected at most %" PRIu64
                        ", a launch has up to 2^30 work-groups",
                        weight_rows, CLN_MOST_GROUPS / layout->blocks);
    share_rows(device, work, c, layout);
    const bool columns = work->sums_rows && p->rows && c->accumulator == CLN_ACCUMULATOR_COLUMNS;
    layout->column_lanes = columns ? cln_column_lanes(work, c, device->compute_units) : 1;
    layout->columns = columns ? cln_divide_up(cln_row_vectors(work, c), layout->column_lanes) : 0;
    layout->slots = !work->sums_rows || layout->columns ? 0 : slots_of(p, work, c, layout);
    layout->work_groups = cln_product(cln_product(layout->blocks, layout->row_groups), cln_weight_blocks(work, c));
    if (layout->work_groups > CLN_MOST_GROUPS || layout->columns > CLN_MOST_GROUPS - layout->work_groups)
        return refuse_work_groups(device, p, c);
    return CLNORM_SUCCESS;
}

/* Elements of all slots; UINT64_MAX for 2^64 and more. */
static uint64_t slot_elements(const problem *p, const struct cln_backward_layout *layout) {
    return cln_product(cln_product(layout->slots, p->weight_rows), SLOT_COLUMNS(p->cols));
}

/* Two sums for each chunk of each segment; likewise. */
static uint64_t sum_elements(const struct cln_config *c, uint64_t segments) {
    return cln_product(2 * (uint64_t)c->chunks, segments);
}

/* Elements of dweight that norm_backward_reduce.cl adds up at once. */
static uint64_t reduce_vec_of(const clnorm_device_info *device, const problem *p, const struct cln_workload *work,
                              const struct cln_config *c) {
    const uint64_t strides = p->weight_rows > 1 ? p->dweight.stride | p->dbias.stride : 0;
    if (work->columns_of_weight)
        return 1;
    return cln_config_element_aligned(device, c) ? 16
                                                 : cln_smaller(strides ? cln_lowest_bit(strides) : 4, 16 / work->real_size);
}

clnorm_status cln_backward_lay_out(const clnorm_device_info *device, const problem *p, const struct cln_workload *work,
                                   const struct cln_config *c, struct cln_backward_layout *layout) {
    const bool has_mean = p->norm == CLNORM_LAYER_NORM;
    const uint64_t groups = work->groups, real = work->real_size, segments = p->rows * groups;
    const bool c1 = needs_c1(p), exchanged = c1 && cln_exchanges(c);
    const struct cln_binding absent = {.role = CLN_WORKSPACE};
    *layout = (struct cln_backward_layout){.leads = cln_leads(work, c),
                                           .split = c1 && (work->sums_given || (c->tile < p->group_size && !exchanged)),
                                           .exchanged = exchanged,
                                           .locked = work->locked,
                                           .mean = absent,
                                           .rstd = absent,
                                           .sums = absent,
                                           .dweight = absent,
                                           .dbias = absent,
                                           .locks = absent,
                                           .messages = absent};
    layout->span = cln_config_span(device, work, c);
    layout->blocks = cln_blocks(work, c, layout->span);
    layout->abreast = cln_config_abreast(work, c);
    layout->columns_of_weight = work->columns_of_weight;
    layout->reduce_vec = reduce_vec_of(device, p, work, c);
    clnorm_status status = lay_out_groups(device, p, work, c, layout);
    if (!status && !p->rstd_given && has_mean)
        status = add_part(layout, &layout->mean, segments, real);
    if (!status && !p->rstd_given)
        status = add_part(layout, &layout->rstd, segments, real);
    if (!status && layout->split)
        status = add_part(layout, &layout->sums, sum_elements(c, segments), real);
    if (!status && p->dweight.dtype)
        status = add_part(layout, &layout->dweight, slot_elements(p, layout), real);
    if (!status && p->dbias.dtype)
        status = add_part(layout, &layout->dbias, slot_elements(p, layout), real);
    if (!status && layout->locked)
        status = add_part(layout, &layout->locks, layout->blocks * layout->slots * p->weight_rows, sizeof(cl_uint));
    if (!status && exchanged)
        status = add_part(layout, &layout->messages, cln_product(segments, cln_tiles(work, c)), sizeof(cl_uint4));
    return status;
}

clnorm_status cln_backward_lay_out_sums(const problem *p, const struct cln_workload *work, const struct cln_config *c,
                                        struct cln_backward_layout *layout) {
    const uint64_t segments = p->rows * work->groups;
    *layout = (struct cln_backward_layout){.leads = cln_leads(work, c), .split = true, .span = 1, .abreast = 1};
    clnorm_status status = add_part(layout, &layout->mean, segments, work->real_size);
    if (!status)
        status = add_part(layout, &layout->rstd, segments, work->real_size);
    return status ? status : add_part(layout, &layout->sums, sum_elements(c, segments), work->real_size);
}
