#include "config.h"

#include <inttypes.h>

#include "arithmetic.h"
#include "status.h"

/* How a kind of device likes to work. The first row that matches is taken. */
static const struct habit {
    clnorm_device_kind kind;       /* 0: any */
    clnorm_platform_family family; /* CLNORM_PLATFORM_OTHER: any */
    uint32_t vector_bytes;         /* of one memory access */
    uint32_t lanes_min, lanes_max; /* work-items that share a segment; 1 and 1: each segment is one work-item's */
    uint32_t held2, held4;         /* vectors per lane beyond which more lanes are taken, for x of 2 bytes and wider */
    uint32_t items;                /* work-items per work-group, by more segments where a segment needs fewer */
    uint32_t register_bytes;       /* of a segment that a lane can hold in registers */
    uint32_t unroll;
    clnorm_reduce reduce;
    uint64_t round_bytes; /* of x that a work-group goes through at least; 0: one round */
    uint32_t chunk;       /* elements of a segment that are worth a work-group */
    uint32_t wide;        /* elements of a segment that is worth sharing out */
    uint32_t sharers;     /* work-groups for each compute unit that few such segments are shared out to */
} habits[] = {
    /* Warps of 32 exchange registers. Measured on an H200: 64 bytes of 2-byte elements or 32 of wider ones in each lane
     * leave occupancy enough to hide the latency of memory; more lanes pay for it with barriers, fewer with registers. */
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, 16, 16, 1024, 4, 2, 128, 64, 4, CLNORM_REDUCE_SHUFFLE, 0, 4096, 65536, 4},
    /* llvmpipe runs the work-items of a group as the elements of its vectors, whatever kind it calls itself. One segment in
     * a group: rusticl 22.3 reads kernel arguments wrongly where only some work-items take a branch, and warns of it. */
    {0, CLNORM_PLATFORM_MESA, 16, 1, 64, 4, 4, 1, 256, 4, CLNORM_REDUCE_TREE, 0, 32768, 131072, 2},
    /* A barrier costs a CPU more than the whole row: a work-item per segment, a full vector register per access, and some
     * 32 KiB per work-group, to make up for the start of one. Measured with one row on 2 cores: 65536 columns lost by being
     * shared out, 262144 were 1.4 to 1.75 times as fast. */
    {CLNORM_DEVICE_CPU, CLNORM_PLATFORM_OTHER, 64, 1, 1, 1, 1, 1, 0, 4, CLNORM_REDUCE_TREE, 32 << 10, 32768, 131072, 2},
    /* Any other GPU or accelerator: 256 work-items are allowed everywhere, and 32 registers a lane are modest. */
    {0, CLNORM_PLATFORM_OTHER, 16, 1, 256, 4, 2, 64, 128, 4, CLNORM_REDUCE_TREE, 0, 8192, 65536, 2},
};

static const struct habit *habit_of(const clnorm_device_info *device) {
    const struct habit *habit = habits;
    while ((habit->kind && habit->kind != device->kind) || (habit->family && habit->family != device->family))
        habit++; /* the last row matches any device */
    return habit;
}

bool cln_config_runs_ptx(const clnorm_device_info *device) {
    return device->family == CLNORM_PLATFORM_NVIDIA && device->compute_capability >= 80;
}

clnorm_status cln_config_refuse(const char *knob, uint32_t value, const char *expected) {
    return cln_fail(CLNORM_INVALID_VALUE, "desc.config.%s is %" PRIu32 ": expected %s", knob, value, expected);
}

clnorm_status cln_config_refuse_foreign(const struct cln_config_foreign *knobs) {
    for (; knobs->name; knobs++)
        if (knobs->value)
            return cln_config_refuse(knobs->name, knobs->value, "0, this operation has no such knob");
    return CLNORM_SUCCESS;
}

/* What can be said of a knob by itself. */
clnorm_status cln_config_check_ranges(const clnorm_config *c) {
    if (c->vec && (!cln_power_of_two(c->vec) || c->vec > 16))
        return cln_config_refuse("vec", c->vec, "1, 2, 4, 8 or 16");
    if (c->lanes && (!cln_power_of_two(c->lanes) || c->lanes > 1024))
        return cln_config_refuse("lanes", c->lanes, "a power of two up to 1024");
    if (c->segments && (!cln_power_of_two(c->segments) || c->segments > 1024))
        return cln_config_refuse("segments", c->segments, "a power of two up to 1024");
    if (c->unroll > 16)
        return cln_config_refuse("unroll", c->unroll, "1 to 16");
    if (c->keep > CLNORM_KEEP_LOCAL)
        return cln_config_refuse("keep", c->keep, "a clnorm_keep");
    if (c->reduce > CLNORM_REDUCE_SUBGROUP)
        return cln_config_refuse("reduce", c->reduce, "a clnorm_reduce");
    if (c->stores > CLNORM_STORES_STREAMING)
        return cln_config_refuse("stores", c->stores, "a clnorm_stores");
    if (c->weights > CLNORM_WEIGHTS_KEPT)
        return cln_config_refuse("weights", c->weights, "a clnorm_weights");
    if (c->isa > CLNORM_ISA_PTX)
        return cln_config_refuse("isa", c->isa, "a clnorm_isa");
    if (c->gather > CLNORM_GATHER_COLUMNS)
        return cln_config_refuse("gather", c->gather, "a clnorm_gather");
    if (c->fetch > CLNORM_FETCH_FAR)
        return cln_config_refuse("fetch", c->fetch, "a clnorm_fetch");
    if (c->sums > CLNORM_SUMS_EXCHANGED)
        return cln_config_refuse("sums", c->sums, "a clnorm_sums");
    if (c->prefetch > CLNORM_PREFETCH_NEXT)
        return cln_config_refuse("prefetch", c->prefetch, "a clnorm_prefetch");
    if (c->registers && (c->registers < 16 || c->registers > 255))
        return cln_config_refuse("registers", c->registers, "16 to 255");
    return CLNORM_SUCCESS;
}

/* Registers that a lane can be asked to hold: unrolling past them explodes build times. */
enum { MOST_REGISTER_BYTES = 1024 };

/* Vectors of a segment that one lane has, and their bytes while they are held. */
static uint64_t vectors_per_lane(const clnorm_config *c, const struct cln_workload *work) {
    return cln_divide_up(cln_divide_up(work->group_size, c->vec), c->lanes);
}

static uint64_t bytes_per_lane(const clnorm_config *c, const struct cln_workload *work) {
    return vectors_per_lane(c, work) * c->vec * work->held_size;
}

/* Local memory that the sums over lanes take. */
static uint64_t scratch_bytes(const clnorm_config *c, const struct cln_workload *work) {
    const uint64_t in_step = c->reduce == CLNORM_REDUCE_SHUFFLE ? cln_smaller(c->lanes, 32) : 1;
    return 4 * (uint64_t)c->lanes * c->segments / in_step * work->real_size;
}

uint64_t cln_config_shelved(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c) {
    const uint64_t alignment = 64; /* of each array */
    const uint64_t scratch = scratch_bytes(c, work) + 2 * alignment;
    if (c->keep != CLNORM_KEEP_LOCAL || !work->shelf_size || c->segments > 1 || scratch > device->local_memory)
        return 0;
    const uint64_t room = (device->local_memory - scratch) / ((uint64_t)c->lanes * c->vec * work->shelf_size);
    return cln_smaller(cln_smaller(room, cln_or_else(c->shelved, room)), vectors_per_lane(c, work));
}

/* Whether a work-group has one row, and the next one on its compute unit is known. A y of 8 bits is written in other ways,
 * of which nothing was measured. */
static bool can_prefetch(const struct cln_workload *work, const clnorm_config *c) {
    return work->shelf_size && work->groups == 1 && !work->y_scaled && c->chunks <= 1 && c->segments <= 1;
}

static clnorm_status check_prefetch(const struct cln_workload *work, const clnorm_config *c) {
    if (c->prefetch == CLNORM_PREFETCH_NEXT && !can_prefetch(work, c))
        return cln_config_refuse("prefetch", c->prefetch,
                                 "CLNORM_PREFETCH_NONE but for the norms' forward of whole rows, with 1 segment, without "
                                 "chunks and without a y of 8 bits");
    if (c->asked && c->prefetch != CLNORM_PREFETCH_NEXT)
        return cln_config_refuse("asked", c->asked, "0 without CLNORM_PREFETCH_NEXT");
    return CLNORM_SUCCESS;
}

static clnorm_status check_registers(const clnorm_device_info *device, const struct cln_workload *work,
                                     const clnorm_config *c) {
    enum { MOST = 65536 }; /* of a compute unit */
    if (c->registers && (device->family != CLNORM_PLATFORM_NVIDIA || !work->shelf_size || c->chunks > 1))
        return cln_config_refuse("registers", c->registers, "0 but for the norms' forward on NVIDIA, without chunks");
    if ((uint64_t)c->registers * c->lanes * c->segments > MOST)
        return cln_config_refuse("registers", c->registers, "at most 65536 for all the work-items of a work-group");
    return CLNORM_SUCCESS;
}

/* What has to hold of a whole config on this device and shape; only a forced knob can break it. */
static clnorm_status check_whole(const clnorm_device_info *device, const struct cln_workload *work,
                                 const clnorm_config *c) {
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    if (items > device->max_work_group_size)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ": the device allows %" PRIu64
                        " work-items",
                        c->lanes, c->segments, device->max_work_group_size);
    if (scratch_bytes(c, work) > device->local_memory)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ": the device has %" PRIu64
                        " bytes of local memory",
                        c->lanes, c->segments, device->local_memory);
    if (!cln_config_element_aligned(device, c) && work->alignment % c->vec)
        return cln_config_refuse("vec", c->vec, "a divisor of group_size and every row stride on this device");
    if (c->keep == CLNORM_KEEP_REGISTERS && bytes_per_lane(c, work) > MOST_REGISTER_BYTES)
        return cln_config_refuse("keep", c->keep,
                                 "CLNORM_KEEP_REREAD: a lane's share of the segment is more than 1024 bytes");
    if (c->keep == CLNORM_KEEP_LOCAL && !cln_config_shelved(device, work, c))
        return cln_config_refuse(
            "keep", c->keep,
            "CLNORM_KEEP_LOCAL for the norms' forward, with 1 segment and local memory for a vector of "
            "each lane only");
    if (c->keep != CLNORM_KEEP_LOCAL && c->shelved)
        return cln_config_refuse("shelved", c->shelved, "0 without CLNORM_KEEP_LOCAL");
    if (c->reduce == CLNORM_REDUCE_SHUFFLE && (device->family != CLNORM_PLATFORM_NVIDIA || items < 32))
        return cln_config_refuse("reduce", c->reduce, "CLNORM_REDUCE_SHUFFLE on NVIDIA with at least 32 work-items only");
    if (c->reduce == CLNORM_REDUCE_SUBGROUP && (!device->subgroups || c->segments > 1))
        return cln_config_refuse("reduce", c->reduce,
                                 "CLNORM_REDUCE_SUBGROUP on a device with sub-groups and with 1 segment only");
    if (c->isa == CLNORM_ISA_PTX && !cln_config_runs_ptx(device))
        return cln_config_refuse("isa", c->isa, "CLNORM_ISA_PTX on NVIDIA, compute capability 8.0 and up, only");
    if (c->chunks > 1 && work->y_scaled)
        return cln_config_refuse("chunks", c->chunks, "1 with a y of 8 bits");
    if (c->chunks > 1 && (c->keep != CLNORM_KEEP_REREAD || c->segments > 1))
        return cln_config_refuse("chunks", c->chunks, "1 with more than 1 segment, or without CLNORM_KEEP_REREAD");
    if (c->chunks > cln_divide_up(work->group_size, c->vec))
        return cln_config_refuse("chunks", c->chunks, "one for each vector of a segment at most");
    const clnorm_status status = check_prefetch(work, c);
    return status ? status : check_registers(device, work, c);
}

static uint32_t choose_vec(const struct habit *habit, const struct cln_workload *work, bool element_aligned) {
    const uint64_t size = element_aligned ? work->real_size : work->x_size; /* of what fills a vector register */
    const uint64_t wish = cln_larger(cln_smaller(habit->vector_bytes / size, 16), 1);
    return (uint32_t)cln_smaller(wish, element_aligned ? cln_power_of_two_at_most(work->group_size) : work->alignment);
}

/* The most lanes that the device and a forced number of segments allow. */
static uint64_t most_lanes(const clnorm_device_info *device, const clnorm_config *c) {
    return cln_power_of_two_at_most(cln_larger(device->max_work_group_size / cln_larger(c->segments, 1), 1));
}

static uint32_t choose_lanes(const struct habit *habit, const struct cln_workload *work, const clnorm_device_info *device,
                             const clnorm_config *c) {
    const uint64_t vectors = cln_divide_up(work->group_size, c->vec);
    const bool wide = work->work >= CLN_WORK_SOFTMAX; /* exponentials are held */
    const uint64_t held = work->x_size == 2 && !wide ? habit->held2 : habit->held4;
    const uint64_t least = cln_smaller(habit->lanes_min, cln_power_of_two_at_least(vectors));
    const uint64_t wish = cln_larger(cln_power_of_two_at_least(cln_divide_up(vectors, held)), least);
    return (uint32_t)cln_smaller(cln_smaller(wish, habit->lanes_max), most_lanes(device, c));
}

/* Calls of few segments wait for memory and not for room: held in registers, x is read once, with weights and z beside it
 * (1 x 4096: 0.92 of the time). The sums are the same ones, so a row's bits do not depend on how many rows there are. */
static void hold_few(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                     clnorm_config *c) {
    if (work->work >= CLN_WORK_SOFTMAX) /* its sums are others */
        return;
    if (work->rows * work->groups > device->compute_units || bytes_per_lane(c, work) > habit->register_bytes)
        return;
    c->keep = CLNORM_KEEP_REGISTERS;
    c->weights = CLNORM_WEIGHTS_EARLY;
}

/* Rows that keep much in local memory, or in the L2 cache beforehand, were measured where there is much of both; elsewhere
 * all is read again, and when it is due. */
static void shelve_much(const clnorm_device_info *device, const struct cln_workload *work, clnorm_config *c) {
    const bool much = device->local_memory >= (uint64_t)160 << 10;
    if (c->keep == CLNORM_KEEP_LOCAL && (!much || !work->shelf_size))
        c->keep = CLNORM_KEEP_REREAD;
    if (c->keep == CLNORM_KEEP_REREAD)
        c->shelved = 0;
    if (!much || c->isa != CLNORM_ISA_PTX || !can_prefetch(work, c))
        c->prefetch = c->asked = 0;
}

/* Fills in what a tuned row says, where nothing else is forced that it was not measured with. */
static void apply_tuned(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                        clnorm_config *c) {
    const bool forced = c->lanes || c->segments || c->keep || c->unroll || c->weights || c->registers || c->shelved ||
                        c->prefetch == CLNORM_PREFETCH_NEXT || c->asked;
    const uint64_t full_vec = 16 / work->x_size;
    if (device->family != CLNORM_PLATFORM_NVIDIA || forced || c->vec != full_vec || device->max_work_group_size < 1024)
        return;
    if (!cln_config_tuned(work, c))
        return;
    shelve_much(device, work, c);
    hold_few(habit, device, work, c);
}

static uint32_t choose_segments(const struct habit *habit, const clnorm_device_info *device, const clnorm_config *c) {
    if (c->reduce == CLNORM_REDUCE_SUBGROUP || c->prefetch == CLNORM_PREFETCH_NEXT)
        return 1;
    const uint64_t lanes = cln_larger(c->lanes, 1);
    const uint64_t most = cln_power_of_two_at_most(cln_larger(device->max_work_group_size / lanes, 1));
    return (uint32_t)cln_smaller(cln_larger(habit->items / lanes, 1), most);
}

/* Enough work for a group to be worth its start, but at least four groups for each compute unit. */
static uint32_t choose_rounds(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                              const clnorm_config *c) {
    const uint64_t wish = cln_divide_up(habit->round_bytes, work->group_size * work->x_size * c->segments);
    const uint64_t groups = cln_divide_up(work->rows * work->groups, c->segments);
    return (uint32_t)cln_larger(cln_smaller(wish, groups / (4 * (uint64_t)cln_larger(device->compute_units, 1))), 1);
}

/* The gradient of softmax reads two tensors. Four vectors of 2-byte elements of each were too much for a CPU's registers:
 * two took 0.75 to 0.93 of the time (PoCL, 5 shapes). */
static uint32_t choose_unroll(const struct habit *habit, const struct cln_workload *work) {
    enum { MOST = 2 };
    const bool too_much = habit->lanes_max == 1 && work->work == CLN_WORK_SOFTMAX_BACKWARD && work->x_size == 2;
    return too_much ? MOST : habit->unroll;
}

/* Few wide segments leave most of the device idle. In chunks, some work-groups for each compute unit as far as a chunk is
 * worth one, they take a kernel for the sums of each chunk and another one that reads it again, which caches hold by then,
 * and writes. */
static uint32_t choose_chunks(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                              const clnorm_config *forced) {
    const bool otherwise = forced->lanes || forced->segments || forced->rounds || forced->keep || forced->unroll ||
                           forced->weights || forced->registers || forced->shelved ||
                           forced->prefetch == CLNORM_PREFETCH_NEXT;
    const uint64_t segments = work->rows * work->groups;
    if (otherwise || work->y_scaled || !segments || work->group_size < habit->wide || 2 * segments > device->compute_units)
        return 1;
    return (uint32_t)cln_smaller((uint64_t)habit->sharers * device->compute_units / segments,
                                 work->group_size / habit->chunk);
}

/* What suits chunks, of what is not forced: registers for several work-groups on a compute unit, and a few vectors for each
 * lane. Measured on an H200 with 16 x 262144: 32 chunks by 256 lanes took 0.88 to 1.00 of the time of 16 by 512. */
static void suit_chunks(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                        clnorm_config *c) {
    enum { VECTORS = 4, MOST_LANES = 256 };
    const uint64_t vectors = cln_divide_up(cln_divide_up(work->group_size, c->vec), c->chunks);
    const uint64_t lanes = cln_larger(cln_power_of_two_at_least(cln_divide_up(vectors, VECTORS)), habit->lanes_min);
    const uint64_t most = cln_smaller(cln_smaller(habit->lanes_max, MOST_LANES), most_lanes(device, c));
    if (!c->lanes)
        c->lanes = (uint32_t)cln_smaller(lanes, most);
    if (!c->segments)
        c->segments = 1;
    if (!c->keep)
        c->keep = CLNORM_KEEP_REREAD;
}

static void share_out(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                      clnorm_config *c) {
    if (!c->chunks)
        c->chunks = choose_chunks(habit, device, work, c);
    if (c->chunks > 1)
        suit_chunks(habit, device, work, c);
}

static clnorm_status check_forward(const struct cln_workload *work, const clnorm_config *forced) {
    const struct cln_config_foreign foreign[] = {
        {"tile", forced->tile},
        {"gather", forced->gather},
        {"fetch", forced->fetch},
        {"chunks", work->splits ? 0 : forced->chunks},
        {"sums", forced->sums},
        {"walkers", forced->walkers},
        {NULL, 0},
    };
    return cln_config_refuse_foreign(foreign);
}

clnorm_status cln_config_choose(const clnorm_device_info *device, const struct cln_workload *work,
                                const clnorm_config *forced, clnorm_config *config) {
    clnorm_status status = cln_config_check_ranges(forced);
    if (!status)
        status = check_forward(work, forced);
    if (status)
        return status;
    const struct habit *habit = habit_of(device);
    clnorm_config c = *forced;
    if (!c.stores) /* streaming took 1.15 to 1.2 times as long where it was measured (PoCL, 64 MiB): a knob for tuning */
        c.stores = CLNORM_STORES_CACHED;
    if (!c.isa)
        c.isa = cln_config_runs_ptx(device) ? CLNORM_ISA_PTX : CLNORM_ISA_PORTABLE;
    if (!c.vec)
        c.vec = choose_vec(habit, work, cln_config_element_aligned(device, &c));
    if (work->splits)
        share_out(habit, device, work, &c);
    apply_tuned(habit, device, work, &c);
    if (!c.lanes)
        c.lanes = choose_lanes(habit, work, device, &c);
    if (!c.segments)
        c.segments = choose_segments(habit, device, &c);
    if (!c.rounds)
        c.rounds = choose_rounds(habit, device, work, &c);
    if (!c.keep)
        c.keep = bytes_per_lane(&c, work) <= habit->register_bytes ? CLNORM_KEEP_REGISTERS : CLNORM_KEEP_REREAD;
    if (!c.unroll)
        c.unroll = choose_unroll(habit, work);
    if (!c.reduce)
        c.reduce = habit->reduce == CLNORM_REDUCE_SHUFFLE && c.lanes * c.segments < 32 ? CLNORM_REDUCE_TREE : habit->reduce;
    c.prefetch = (uint32_t)cln_or_else(c.prefetch, CLNORM_PREFETCH_NONE);
    if (!c.weights)
        c.weights = c.keep == CLNORM_KEEP_REGISTERS ? CLNORM_WEIGHTS_EARLY : CLNORM_WEIGHTS_LATE;
    const clnorm_status whole = check_whole(device, work, &c);
    if (!whole)
        *config = c;
    return whole;
}

bool cln_config_element_aligned(const clnorm_device_info *device, const clnorm_config *config) {
    return habit_of(device)->lanes_max == 1 && config->stores != CLNORM_STORES_STREAMING;
}
