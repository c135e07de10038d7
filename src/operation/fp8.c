#include "operation/fp8.h"

#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/dtype.h"
#include "base/status.h"
#include "config/resources.h"
#include "plan/stage.h"
#include "quantize/quantize_args.h"
#include "quantize/transpose_args.h"

struct cln_fp8_rows cln_fp8_rows_of(const struct cln_desc_head *head, const clnorm_tensor *x, const clnorm_tensor *q,
                                    bool whole) {
    enum { CUT_COLS = 4096 };
    struct cln_fp8_rows rows = {head->rows, head->cols, x->stride, q->stride, head->rows * head->cols, false};
    rows.cut = whole && rows.elements && x->stride == head->cols && q->stride == head->cols;
    if (rows.cut) {
        rows.cols = rows.x_stride = rows.q_stride = cln_smaller(rows.elements, CUT_COLS);
        rows.rows = cln_divide_up(rows.elements, rows.cols);
    }
    return rows;
}

struct cln_workload cln_fp8_rows_workload(const struct cln_fp8_rows *rows, clnorm_dtype x_dtype, uint64_t divisor,
                                          bool leads) {
    enum { ANY = 16 };
    const uint64_t strides = rows->rows > 1 ? rows->x_stride | rows->q_stride : 0;
    return (struct cln_workload){
        .users = CLN_KNOBS_QUANTIZE,
        .rows = rows->rows,
        .groups = 1,
        .group_size = rows->cols,
        .whole = divisor ? cln_lowest_bit(divisor) : 0,
        .alignment = cln_lowest_bit(strides | divisor | ANY),
        .lead_vec = leads ? cln_lowest_bit((rows->x_stride ^ rows->q_stride) | divisor | ANY) : 0,
        .x_size = clnorm_dtype_size(x_dtype),
        .held_size = clnorm_dtype_size(x_dtype),
        .norm = CLNORM_RMS_NORM,
        .real_size = sizeof(cl_float),
    };
}

struct cln_workload cln_fp8_workload(const struct cln_operation *operation, const void *desc, clnorm_dtype x_dtype,
                                     uint64_t scale_group) {
    const struct cln_desc_head *const head = desc;
    const uint64_t divisor = head->cols | scale_group;
    const struct cln_fp8_rows rows = {.rows = head->rows, .cols = head->cols};
    struct cln_workload work = cln_fp8_rows_workload(&rows, x_dtype, divisor, false);
    work.alignment = cln_lowest_bit(divisor | cln_operation_strides(operation, desc));
    return work;
}

uint64_t cln_fp8_reach(const clnorm_plan *plan, const struct cln_fp8_rows *rows) {
    return rows->cols + (cln_leads(&plan->work, &plan->config) ? plan->config.vec - 1 : 0);
}

void cln_fp8_spec_rows(const clnorm_plan *plan, const struct cln_fp8_rows *rows, struct cln_spec *spec) {
    spec->leads = cln_leads(&plan->work, &plan->config);
    spec->tails = spec->leads || rows->cols % plan->config.vec != 0 || rows->elements != rows->rows * rows->cols;
}

/* Lanes of a segment on an NVIDIA GPU. A lane loads four vectors at once, or eight of a long segment; 0: there are too few
 * vectors for that. Of an 8-bit x a lane takes two rows and up to sixteen vectors of each, so that there are fewer sums
 * over lanes to wait for. With few pairs of rows more lanes share each pair, to keep the whole device busy. */
static uint32_t lanes_of(const clnorm_device_info *device, const struct cln_workload *work, uint32_t vec) {
    const uint64_t most = cln_power_of_two_at_most(device->max_work_group_size);
    const uint64_t vectors = cln_divide_up(work->group_size, vec);
    const uint64_t pairs = cln_larger(work->rows * work->groups / 2, 1), busy = 1024 * (uint64_t)device->compute_units;
    const uint64_t of_pairs = cln_larger(cln_smaller(cln_larger(vectors / 16, 8), 32), busy / pairs);
    const uint64_t wish = cln_smaller(vectors / 4, work->x_size == 1 ? of_pairs : cln_larger(vectors / 8, 16));
    return wish < 4 ? 0 : (uint32_t)cln_smaller(cln_power_of_two_at_most(wish), most);
}

clnorm_status cln_fp8_config(const clnorm_device_info *device, const struct cln_workload *work,
                             const struct cln_config *forced, struct cln_config *config) {
    enum { GROUP_ITEMS = 128 }; /* of an 8-bit x */
    const uint64_t whole = work->whole;
    struct cln_config wish = *forced;
    if (forced->vec && whole % forced->vec) /* whole 0: it may be any */
        return cln_config_refuse("vec", forced->vec,
                                 "a divisor of the columns that share a scale, and of cols where rows are whole vectors");
    if (!wish.vec && cln_config_element_aligned(device, &wish))
        wish.vec = (uint32_t)cln_smaller(cln_or_else(whole, cln_power_of_two_at_least(work->group_size)), 16);
    clnorm_status status = cln_config_choose_reread(device, work, &wish, config);
    if (status || device->family != CLNORM_PLATFORM_NVIDIA || forced->lanes || forced->segments)
        return status;
    wish.lanes = lanes_of(device, work, config->vec);
    if (work->x_size == 1 && wish.lanes)
        wish.segments = (uint32_t)cln_larger(GROUP_ITEMS / wish.lanes, 1);
    return wish.lanes ? cln_config_choose_reread(device, work, &wish, config) : CLNORM_SUCCESS;
}

uint32_t cln_fp8_isa(const clnorm_device_info *device, const struct cln_config *config) {
    enum { FIRST_WITH_FP8 = 89 };
    return config->isa == CLN_ISA_PTX && device->compute_capability >= FIRST_WITH_FP8 ? CLN_ISA_PTX : CLN_ISA_PORTABLE;
}

struct cln_spec cln_fp8_spec(const clnorm_device_info *device, const struct cln_config *config) {
    struct cln_spec spec = {
        .family = CLN_QUANTIZE,
        .group_size = 1,
        .groups = 1,
        .fp8_isa = cln_fp8_isa(device, config),
    };
    cln_launch_spec(device, config, &spec);
    return spec;
}

struct cln_launch cln_fp8_launch_of_largest(const clnorm_device_info *device, const struct cln_config *config,
                                            uint64_t segments) {
    /* A single work-item has long shares already, by config.iterations. */
    const bool alone = config->lanes * config->segments == 1;
    const uint64_t most_groups = alone ? CLN_MOST_GROUPS : 8 * (uint64_t)cln_larger(device->compute_units, 1);
    return cln_launch_within(config, segments, most_groups);
}

/* Tiles with a transposed copy. The first suitable row is used. */
static const struct tiling {
    uint32_t compute_capability; /* minimum; 0: any device */
    uint32_t side;               /* rows, and columns */
    uint32_t items;              /* work-items of its work-group */
    uint32_t groups;             /* minimum work-groups per compute unit */
} tilings[] = {
    /* Lines of 256 bytes. A tile takes 64 KiB of local memory; three work-groups fit on a compute unit. */
    {90, 256, 512, 3},
    {0, 128, 256, 0}, /* lines of 128 bytes */
};

static bool suits(const struct tiling *tiling, const clnorm_device_info *device, uint64_t rows, uint64_t cols) {
    const uint64_t tiles = cln_divide_up(rows, tiling->side) * cln_divide_up(cols, tiling->side);
    const uint64_t scratch = 4096; /* bytes, more than the lanes' search for the largest magnitude takes */
    return device->compute_capability >= tiling->compute_capability && device->max_work_group_size >= tiling->items &&
           device->local_memory >= (uint64_t)tiling->side * tiling->side + scratch &&
           tiles >= tiling->groups * (uint64_t)device->compute_units;
}

/* The tile of a single work-item. With a transposed copy it has a cache line of each column, and long parts of rows, which
 * are faster to read, in half of the local memory. */
static struct cln_fp8_tile tile_serial(const clnorm_device_info *device, uint64_t cols, bool transposed) {
    const uint64_t line = 64, widest = 1024;
    const uint64_t room = cln_power_of_two_at_most(device->local_memory / line / 2);
    const uint64_t whole = cln_power_of_two_at_least(cln_larger(cols, line));
    return (struct cln_fp8_tile){
        .rows = transposed ? line : 4,
        .cols = cln_smaller(whole, transposed ? cln_smaller(widest, room) : 4096),
        .lanes = 1,
        .row_vec = 1,
    };
}

/* The tile of a work-group. Without a transposed copy a work-item has a vector of each of four rows. */
static struct cln_fp8_tile tile_cooperative(const clnorm_device_info *device, const struct cln_config *config,
                                            uint64_t rows, uint64_t cols, bool transposed, uint64_t transposed_stride) {
    const struct tiling *tiling = tilings;
    while (tiling->compute_capability && !suits(tiling, device, rows, cols))
        tiling++;
    const uint64_t most_cols = transposed ? tiling->side : 128 * (uint64_t)config->vec;
    const uint64_t items = transposed ? tiling->items : 128;
    const uint64_t row_vec = cln_smaller(cln_lowest_bit(rows | transposed_stride), 16);
    return (struct cln_fp8_tile){
        .rows = transposed ? tiling->side : 4,
        .cols = cln_larger(cln_smaller(cln_power_of_two_at_least(cols), most_cols), config->vec),
        .lanes = cln_smaller(items, cln_power_of_two_at_most(device->max_work_group_size)),
        .row_vec = cln_larger(transposed ? row_vec : 1, 1),
    };
}

struct cln_fp8_tile cln_fp8_tile_of(const clnorm_device_info *device, const struct cln_config *config, uint64_t rows,
                                    uint64_t cols, bool transposed, uint64_t transposed_stride) {
    const bool cpu = cln_config_element_aligned(device, config);
    const bool alone = (cpu && config->lanes == 1) || device->max_work_group_size == 1;
    struct cln_fp8_tile tile = alone ? tile_serial(device, cols, transposed)
                                     : tile_cooperative(device, config, rows, cols, transposed, transposed_stride);
    tile.count = cln_divide_up(rows, tile.rows) * cln_divide_up(cols, tile.cols);
    return tile;
}

/* Lanes of kernels whose work-groups search for the largest magnitude as one segment. */
static void set_lanes(struct cln_spec *spec, uint64_t lanes) {
    spec->lanes = lanes;
    spec->segments = 1;
    if (lanes < 32 || spec->reduce == CLN_REDUCE_SUBGROUP) {
        spec->reduce = CLN_REDUCE_TREE;
        spec->opencl_c = 120;
    }
}

void cln_fp8_spec_tile(struct cln_spec *spec, const struct cln_fp8_tile *tile) {
    spec->tile_rows = tile->rows;
    spec->tile_cols = tile->cols;
    spec->row_vec = tile->row_vec;
    set_lanes(spec, tile->lanes);
}

bool cln_fp8_tiles_search(const struct cln_fp8_tile *tile, uint64_t magnitudes) {
    return tile->lanes > 1 && magnitudes <= tile->rows * tile->cols / 8;
}

static const struct cln_kernel largest_kernel = CLN_KERNEL(quantize_largest, quantize_largest, QUANTIZE_LARGEST_ARGS);

clnorm_status cln_fp8_add_largest(clnorm_plan *plan, const struct cln_fp8_largest *largest) {
    const clnorm_device_info *device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    struct cln_spec spec = cln_fp8_spec(device, &plan->config);
    spec.x_dtype = CLNORM_F32;
    spec.q_dtype = largest->q_dtype;
    spec.scale_dtype = largest->scale_dtype;
    spec.amax = largest->amax;
    spec.vec = 1;
    set_lanes(&spec, cpu ? 1 : cln_smaller(cln_power_of_two_at_most(device->max_work_group_size), 1024));
    const struct cln_argument arguments[] = {
        cln_bind("magnitudes", largest->magnitudes),
        cln_bind("scale", (struct cln_binding){.role = largest->scale}),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &largest_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = largest->count,
        .groups = 1,
        .items = (size_t)spec.lanes,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static const struct cln_kernel transpose_kernel = CLN_KERNEL_PAIR(transpose, transpose, TRANSPOSE_ARGS);

clnorm_status cln_fp8_add_transpose(clnorm_plan *plan, const clnorm_tensor *codes, struct cln_binding y,
                                    const clnorm_tensor *y_t, uint64_t rows, uint64_t cols) {
    const clnorm_device_info *const device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    struct cln_config config = plan->config;
    config.vec = (uint32_t)cln_smaller(cln_lowest_bit(cpu ? cols : cols | codes->stride), 16);
    const struct cln_fp8_tile tile = cln_fp8_tile_of(device, &config, rows, cols, true, y_t->stride);
    struct cln_spec spec = cln_fp8_spec(device, &config);
    spec.x_dtype = codes->dtype;
    spec.transposed = true;
    cln_fp8_spec_tile(&spec, &tile);
    plan->tensor[CLN_Y_T].vector = tile.row_vec;
    plan->tensor[y.role].vector = cln_larger(plan->tensor[y.role].vector, config.vec);
    const struct cln_argument arguments[] = {
        cln_bind_part("codes", y, codes->stride),
        cln_bind("q_t", (struct cln_binding){.role = CLN_Y_T}),
        cln_integer("rows", rows),
        cln_integer("cols", cols),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &transpose_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = tile.count,
        .groups = (size_t)tile.count,
        .items = (size_t)tile.lanes,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status check_scale_group(const char *name, const clnorm_tensor *tensor) {
    const uint32_t size = tensor->scale_group;
    return cln_power_of_two(size) && size >= 16 && size <= 128
               ? CLNORM_SUCCESS
               : cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.scale_group is %" PRIu32 ": expected 16, 32, 64 or 128", name,
                          size);
}

clnorm_status cln_fp8_check_segments(const char *name, const clnorm_tensor *tensor, uint64_t group_size, uint64_t cols) {
    if (tensor->scaling != CLNORM_SCALING_GROUP)
        return CLNORM_SUCCESS;
    if (group_size != cols && group_size % tensor->scale_group)
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.%s.scale_group is %" PRIu32 ": expected a divisor of group_size, %" PRIu64
                        ", which is less than cols",
                        name, tensor->scale_group, group_size);
    return check_scale_group(name, tensor);
}
