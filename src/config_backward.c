#include "config.h"

#include <inttypes.h>

#include "arithmetic.h"
#include "status.h"

/* How a kind of device likes to go backward. The first row that matches is taken. */
static const struct habit {
    clnorm_device_kind kind;       /* 0: any */
    clnorm_platform_family family; /* CLNORM_PLATFORM_OTHER: any */
    uint32_t vector_bytes;         /* of one memory access */
    uint32_t lanes_min, lanes_max; /* work-items that share a segment; 1 and 1: sums are gathered in memory */
    uint32_t elements;             /* of a segment that a lane has, while there are lanes for more */
    uint32_t held;                 /* elements of a lane up to which x, dy and z are held in registers */
    uint32_t gathered;             /* elements of a lane up to which sums are gathered in registers; past it, tiles */
    uint32_t tile_lanes;           /* work-items of a work-group that has a tile */
    uint32_t items;                /* work-items per work-group, by more segments where a segment needs fewer */
    uint32_t walkers;              /* work-groups per compute unit, at most */
    uint32_t rounds;               /* of neighbouring rows; 0: all rows that a work-group has are neighbours */
    clnorm_reduce reduce;
    clnorm_weights weights;
} habits[] = {
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, 16, 32, 1024, 8, 16, 16, 256, 512, 1, 1, CLNORM_REDUCE_SHUFFLE,
     CLNORM_WEIGHTS_EARLY},
    /* llvmpipe: as for the forward. */
    {0, CLNORM_PLATFORM_MESA, 16, 1, 64, 16, 64, 64, 64, 1, 2, 0, CLNORM_REDUCE_TREE, CLNORM_WEIGHTS_LATE},
    /* CPUs: a work-item per row; a few work-groups for each core, so that none is left alone with the last rows. */
    {CLNORM_DEVICE_CPU, CLNORM_PLATFORM_OTHER, 64, 1, 1, 16, 16, 64, 1, 1, 4, 0, CLNORM_REDUCE_TREE, CLNORM_WEIGHTS_LATE},
    /* Any other GPU or accelerator. */
    {0, CLNORM_PLATFORM_OTHER, 16, 1, 256, 8, 16, 32, 128, 128, 4, 0, CLNORM_REDUCE_TREE, CLNORM_WEIGHTS_LATE},
};

/* A lane is not asked to unroll more elements than this. */
enum { MOST_ELEMENTS = 64 };

static const struct habit *habit_of(const clnorm_device_info *device) {
    const struct habit *habit = habits;
    while ((habit->kind && habit->kind != device->kind) || (habit->family && habit->family != device->family))
        habit++; /* the last row matches any device */
    return habit;
}

/* Elements of its tile that a lane has. */
static uint64_t elements_per_lane(const clnorm_config *c) {
    return cln_divide_up(cln_divide_up(c->tile, c->vec), c->lanes) * c->vec;
}

/* Nothing but registers is needed for the sums over rows, where they are needed at all. */
static bool gathers_in_registers(const clnorm_config *c) {
    return c->gather == CLNORM_GATHER_REGISTERS || c->gather == CLNORM_GATHER_COLUMNS;
}

/* Each lane has the same columns of every row, known when the kernel is built. */
static bool unrolled(const clnorm_config *c) {
    return c->keep == CLNORM_KEEP_REGISTERS || gathers_in_registers(c) || c->gather == CLNORM_GATHER_SPLIT;
}

/* Local memory: the scratch of sums over lanes, and what holds or folds the sums over rows. */
static uint64_t local_bytes(const struct cln_workload *work, const clnorm_config *c, uint64_t span) {
    enum { LETTERS = 4 * 2 * 16 }; /* of cl/team.h */
    const uint64_t letters = c->sums == CLNORM_SUMS_EXCHANGED ? LETTERS * sizeof(cl_float) : work->real_size;
    const uint64_t scratch = 4 * (uint64_t)c->lanes * c->segments * work->real_size + letters + sizeof(cl_uint);
    const uint64_t line =
        (unrolled(c) ? elements_per_lane(c) * c->lanes : cln_divide_up(c->tile, c->vec) * c->vec) * work->real_size;
    if (c->gather == CLNORM_GATHER_LOCAL)
        return scratch + 2 * span * c->segments * line;
    if (c->gather == CLNORM_GATHER_SPLIT)
        return scratch + c->segments * line;
    if (c->gather == CLNORM_GATHER_COLUMNS)
        return scratch + 2 * (uint64_t)c->lanes * c->segments * c->vec * work->real_size;
    return scratch + (c->gather == CLNORM_GATHER_REGISTERS && c->segments > 1 ? c->segments * line : 0);
}

uint64_t cln_config_span(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c) {
    const bool whole = c->tile == work->group_size;
    if (!whole || unrolled(c))
        return 1;
    if (c->gather == CLNORM_GATHER_MEMORY)
        return work->groups;
    const uint64_t most = device->local_memory / (4 * work->real_size); /* columns; half of the local memory for the sums */
    return work->groups <= most / work->group_size ? work->groups : 1;
}

static clnorm_status check_gather(const clnorm_device_info *device, const struct cln_workload *work,
                                  const clnorm_config *c) {
    if (unrolled(c) && elements_per_lane(c) > MOST_ELEMENTS) {
        const bool keep = c->gather == CLNORM_GATHER_LOCAL;
        return cln_config_refuse(keep ? "keep" : "gather", keep ? c->keep : c->gather,
                                 "a lane to have at most 64 columns of a tile in registers");
    }
    if (!unrolled(c) && c->segments > 1)
        return cln_config_refuse("segments", c->segments, "1 where neither a row nor sums are in registers");
    if (c->keep == CLNORM_KEEP_LOCAL)
        return cln_config_refuse("keep", c->keep, "CLNORM_KEEP_REGISTERS or CLNORM_KEEP_REREAD");
    if (c->gather == CLNORM_GATHER_MEMORY && c->keep != CLNORM_KEEP_REREAD)
        return cln_config_refuse("keep", c->keep, "CLNORM_KEEP_REREAD where sums are gathered in memory");
    if (c->fetch != CLNORM_FETCH_IN_TURN && c->keep != CLNORM_KEEP_REGISTERS)
        return cln_config_refuse("fetch", c->fetch, "CLNORM_FETCH_IN_TURN where a row is not kept in registers");
    if (c->fetch != CLNORM_FETCH_IN_TURN && c->gather == CLNORM_GATHER_COLUMNS)
        return cln_config_refuse("fetch", c->fetch, "CLNORM_FETCH_IN_TURN where sums are gathered by columns");
    if (c->prefetch != CLNORM_PREFETCH_NONE && !unrolled(c))
        return cln_config_refuse("prefetch", c->prefetch,
                                 "CLNORM_PREFETCH_NONE where neither a row nor sums are in registers");
    if ((c->gather == CLNORM_GATHER_MEMORY || c->gather == CLNORM_GATHER_COLUMNS) && work->locked)
        return cln_config_refuse("gather", c->gather, "registers or local memory, slots are shared when they are locked");
    const uint64_t local = local_bytes(work, c, cln_config_span(device, work, c));
    if (local > device->local_memory)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ", tile %" PRIu32 ": needs %" PRIu64
                        " bytes of local memory, the device has %" PRIu64,
                        c->lanes, c->segments, c->tile, local, device->local_memory);
    if (work->locked && c->isa != CLNORM_ISA_PTX && !device->device_fences)
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.reduction is CLNORM_REDUCTION_LOCKED: the device %s has no memory fences at device scope",
                        device->name);
    return CLNORM_SUCCESS;
}

static clnorm_status check_sums(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c) {
    if (c->sums != CLNORM_SUMS_EXCHANGED)
        return CLNORM_SUCCESS;
    if (!unrolled(c) || c->segments > 1 || work->real_size > sizeof(cl_float))
        return cln_config_refuse(
            "sums", c->sums,
            "CLNORM_SUMS_BEFORE for f64, with several segments, or with neither a row nor sums in registers");
    if (c->gather == CLNORM_GATHER_COLUMNS)
        return cln_config_refuse("sums", c->sums, "CLNORM_SUMS_BEFORE where sums over rows are gathered by columns");
    if (c->lanes > 1 && device->family != CLNORM_PLATFORM_NVIDIA) /* lanes of PoCL 3.1 then wait for each other's letters */
        return cln_config_refuse("sums", c->sums, "CLNORM_SUMS_BEFORE but with one lane, or on NVIDIA");
    if (!cln_config_can_exchange(device, cln_divide_up(work->group_size, c->tile)))
        return cln_config_refuse(
            "sums", c->sums, "CLNORM_SUMS_BEFORE but with one tile, or on NVIDIA with at most 16 and 8 compute units each");
    return CLNORM_SUCCESS;
}

static clnorm_status check_backward(const clnorm_config *forced) {
    const struct cln_config_foreign foreign[] = {
        {"registers", forced->registers}, {"shelved", forced->shelved}, {"asked", forced->asked}, {NULL, 0}};
    return cln_config_refuse_foreign(foreign);
}

static clnorm_status check_whole(const clnorm_device_info *device, const struct cln_workload *work,
                                 const clnorm_config *c) {
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    if (items > device->max_work_group_size)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ": the device allows %" PRIu64
                        " work-items",
                        c->lanes, c->segments, device->max_work_group_size);
    if (!cln_config_element_aligned(device, c) && work->alignment % c->vec)
        return cln_config_refuse("vec", c->vec, "a divisor of group_size and every row stride on this device");
    if (c->lanes > 1 && work->group_size % c->vec) /* PoCL 3.1 mixes up the lanes' private arrays, which tails need */
        return cln_config_refuse("vec", c->vec, "a divisor of group_size where lanes share a segment");
    if (c->tile > work->group_size || (c->tile < work->group_size && c->tile % c->vec))
        return cln_config_refuse("tile", c->tile, "group_size, or a smaller multiple of vec");
    if (c->chunks >
        (c->tile == work->group_size || c->sums == CLNORM_SUMS_EXCHANGED ? 1 : cln_divide_up(work->group_size, c->vec)))
        return cln_config_refuse("chunks", c->chunks, "1 where a work-group has whole segments, else one a vector at most");
    if (c->reduce == CLNORM_REDUCE_SHUFFLE && (device->family != CLNORM_PLATFORM_NVIDIA || items < 32))
        return cln_config_refuse("reduce", c->reduce, "CLNORM_REDUCE_SHUFFLE on NVIDIA with at least 32 work-items only");
    if (c->reduce == CLNORM_REDUCE_SUBGROUP && (!device->subgroups || c->segments > 1))
        return cln_config_refuse("reduce", c->reduce,
                                 "CLNORM_REDUCE_SUBGROUP on a device with sub-groups and with 1 segment only");
    if (c->isa == CLNORM_ISA_PTX && !cln_config_runs_ptx(device))
        return cln_config_refuse("isa", c->isa, "CLNORM_ISA_PTX on NVIDIA, compute capability 8.0 and up, only");
    const clnorm_status status = check_sums(device, work, c);
    return status ? status : check_gather(device, work, c);
}

/* ------------------------------------------------------------------------------------------------------- the choice */

static uint32_t choose_vec(const struct habit *habit, const struct cln_workload *work, bool element_aligned,
                           uint32_t lanes) {
    const uint64_t size = element_aligned ? work->real_size : work->x_size; /* of what fills a vector register */
    const uint64_t wish = cln_larger(cln_smaller(habit->vector_bytes / size, 16), 1);
    const uint64_t any = cln_power_of_two_at_most(work->group_size), whole = cln_lowest_bit(work->group_size);
    return (uint32_t)cln_smaller(wish, !element_aligned ? work->alignment : lanes > 1 ? whole : any);
}

static clnorm_gather choose_gather(const struct habit *habit, const struct cln_workload *work) {
    const uint64_t most_blocks = (uint64_t)1 << 20; /* work-groups that a row is spread over, one for each group */
    if (habit->lanes_max > 1 && work->groups <= most_blocks)
        return CLNORM_GATHER_REGISTERS;
    return work->locked ? CLNORM_GATHER_LOCAL : CLNORM_GATHER_MEMORY;
}

/* A segment's columns for a work-group, or a part of them: what its registers and its local memory hold. */
static uint32_t choose_tile(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                            const clnorm_config *c) {
    const uint64_t lanes = cln_or_else(c->lanes, cln_smaller(habit->lanes_max, device->max_work_group_size));
    uint64_t most = UINT32_MAX, part = 1 << 20; /* columns: of a whole segment, of a tile of a longer one */
    if (c->gather == CLNORM_GATHER_LOCAL || c->gather == CLNORM_GATHER_SPLIT)
        most = part = cln_power_of_two_at_most(cln_larger(device->local_memory / (4 * work->real_size), 16));
    if (unrolled(c)) {
        const uint64_t tile_lanes = cln_or_else(c->lanes, cln_smaller(habit->tile_lanes, lanes));
        most = cln_smaller(most, lanes * cln_larger(habit->gathered, c->vec));
        part = cln_smaller(part, tile_lanes * cln_larger(habit->elements, c->vec));
    }
    return (uint32_t)cln_smaller(work->group_size, work->group_size <= most ? most : cln_larger(part, c->vec));
}

/* Work-items of a work-group, at most: those that local memory has room for, where each has vectors of its own there. */
static uint64_t most_items(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c) {
    const uint64_t of_group = work->real_size + sizeof(cl_uint), of_item = (4 + 2 * (uint64_t)c->vec) * work->real_size;
    return c->gather == CLNORM_GATHER_COLUMNS
               ? cln_smaller(device->max_work_group_size, (device->local_memory - of_group) / of_item)
               : device->max_work_group_size;
}

static uint32_t choose_lanes(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                             const clnorm_config *c) {
    const uint64_t vectors = cln_divide_up(c->tile, c->vec);
    const uint64_t held = cln_larger(habit->elements / c->vec, 1);
    const uint64_t least = cln_smaller(habit->lanes_min, cln_power_of_two_at_least(vectors));
    const uint64_t wish = cln_larger(cln_power_of_two_at_least(cln_divide_up(vectors, held)), least);
    const uint64_t items = most_items(device, work, c);
    const uint64_t most = cln_power_of_two_at_most(cln_larger(items / cln_larger(c->segments, 1), 1));
    return (uint32_t)cln_smaller(cln_smaller(wish, habit->lanes_max), most);
}

/* Rows side by side fill up a work-group; their sums are folded in local memory at last. */
static uint32_t choose_segments(const struct habit *habit, const clnorm_device_info *device,
                                const struct cln_workload *work, const clnorm_config *c) {
    if (!unrolled(c) || c->reduce == CLNORM_REDUCE_SUBGROUP || c->sums == CLNORM_SUMS_EXCHANGED)
        return 1;
    const uint64_t most = cln_power_of_two_at_most(cln_larger(most_items(device, work, c) / c->lanes, 1));
    const uint64_t rows = cln_power_of_two_at_least(cln_larger(cln_divide_up(work->rows, device->compute_units), 1));
    uint64_t segments = cln_smaller(cln_smaller(cln_larger(habit->items / c->lanes, 1), most), rows);
    while (segments > 1 && segments * elements_per_lane(c) * c->lanes * work->real_size > device->local_memory / 2)
        segments /= 2;
    return (uint32_t)segments;
}

/* Work-groups for each compute unit. */
static uint32_t choose_walkers(const struct habit *habit, const struct cln_workload *work, const clnorm_config *c) {
    if (c->sums == CLNORM_SUMS_EXCHANGED)
        return (uint32_t)cln_larger(habit->items / c->lanes, 1);
    const uint32_t small = 4; /* tiles take small work-groups, which wait for no other lane */
    return c->tile < work->group_size ? small * habit->walkers : habit->walkers;
}

uint64_t cln_config_walkers(const clnorm_device_info *device, const clnorm_config *c, uint64_t blocks) {
    return cln_larger((uint64_t)c->walkers * device->compute_units / blocks, 1);
}

/* As many as there are already, where there are any, but no more than a work-group's rows take: with few rows, one that
 * went on to the next ones would leave another with none. */
static uint32_t choose_rounds(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c) {
    const uint64_t blocks = work->groups / cln_config_span(device, work, c) * cln_divide_up(work->group_size, c->tile);
    const uint64_t share = cln_divide_up(work->rows, cln_config_walkers(device, c, blocks));
    return (uint32_t)cln_smaller(cln_larger(cln_divide_up(share, c->segments), 1), cln_or_else(c->rounds, UINT32_MAX));
}

/* Enough to keep the device busy with few rows, but each worth a work-group's start. */
static uint32_t choose_chunks(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c) {
    if (c->tile == work->group_size || c->sums == CLNORM_SUMS_EXCHANGED)
        return 1;
    const uint64_t wish = cln_divide_up(4 * (uint64_t)device->compute_units, work->rows * work->groups);
    const uint64_t most = cln_larger(work->group_size / cln_larger(4 * (uint64_t)c->lanes * c->vec, 1), 1);
    return (uint32_t)cln_smaller(cln_smaller(wish, most), 64);
}

/* How a work-group shares out the columns. */
static void choose_columns(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                           clnorm_config *c) {
    if (!c->vec)
        c->vec = choose_vec(habit, work, cln_config_element_aligned(device, c), c->lanes);
    if (!c->gather)
        c->gather = choose_gather(habit, work);
    if (!c->tile)
        c->tile = choose_tile(habit, device, work, c);
    if (!c->lanes)
        c->lanes = choose_lanes(habit, device, work, c);
    if (!c->keep)
        c->keep =
            gathers_in_registers(c) && elements_per_lane(c) <= habit->held ? CLNORM_KEEP_REGISTERS : CLNORM_KEEP_REREAD;
    if (!c->chunks)
        c->chunks = choose_chunks(device, work, c);
}

clnorm_status cln_config_choose_backward(const clnorm_device_info *device, const struct cln_workload *work,
                                         const clnorm_config *forced, clnorm_config *config) {
    clnorm_status status = cln_config_check_ranges(forced);
    if (!status)
        status = check_backward(forced);
    if (status)
        return status;
    const struct habit *habit = habit_of(device);
    clnorm_config c = *forced;
    if (!c.stores)
        c.stores = CLNORM_STORES_CACHED;
    if (!c.isa)
        c.isa = cln_config_runs_ptx(device) ? CLNORM_ISA_PTX : CLNORM_ISA_PORTABLE;
    const bool tuned = cln_config_backward_tuned(device, work, &c);
    choose_columns(habit, device, work, &c);
    if (!c.fetch)
        c.fetch = CLNORM_FETCH_IN_TURN;
    if (!c.prefetch)
        c.prefetch = CLNORM_PREFETCH_NONE;
    if (!c.sums)
        c.sums = CLNORM_SUMS_BEFORE;
    if (!c.segments)
        c.segments = choose_segments(habit, device, work, &c);
    if (!c.walkers)
        c.walkers = choose_walkers(habit, work, &c);
    if (!c.rounds && !tuned)
        c.rounds = habit->rounds;
    if (!forced->rounds)
        c.rounds = choose_rounds(device, work, &c);
    if (!c.unroll)
        c.unroll = 4;
    if (!c.reduce)
        c.reduce = habit->reduce == CLNORM_REDUCE_SHUFFLE && c.lanes * c.segments < 32 ? CLNORM_REDUCE_TREE : habit->reduce;
    if (!c.weights)
        c.weights = gathers_in_registers(&c) ? habit->weights : CLNORM_WEIGHTS_LATE;
    const clnorm_status whole = check_whole(device, work, &c);
    if (!whole)
        *config = c;
    return whole;
}
