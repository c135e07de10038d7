#include "config.h"

#include <inttypes.h>

#include "arithmetic.h"
#include "status.h"

/* How a kind of device likes to go through elements. The first row that matches is taken. */
static const struct habit {
    clnorm_device_kind kind;       /* 0: any */
    clnorm_platform_family family; /* CLNORM_PLATFORM_OTHER: any */
    uint32_t vector_bytes;         /* of one memory access */
    uint32_t lanes;                /* work-items of a work-group */
    uint32_t unroll;               /* vectors that are under way at once in each */
    uint64_t round_bytes;          /* of x that a work-group goes through at least; 0: one round */
} habits[] = {
    /* H200, 16384 x 4096: GELU 1.00 to 1.03 (256 lanes, 4 vectors: to 1.05). */
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, 16, 128, 2, 0},
    {0, CLNORM_PLATFORM_MESA, 16, 64, 4, 0},
    /* CPUs: a full vector register per access, and enough for a work-group to be worth its start. */
    {CLNORM_DEVICE_CPU, CLNORM_PLATFORM_OTHER, 64, 1, 4, 32 << 10},
    {0, CLNORM_PLATFORM_OTHER, 16, 128, 2, 0},
};

static const struct habit *habit_of(const clnorm_device_info *device) {
    const struct habit *habit = habits;
    while ((habit->kind && habit->kind != device->kind) || (habit->family && habit->family != device->family))
        habit++; /* the last row matches any device */
    return habit;
}

/* Knobs of operations that have segments, sums or weights. */
static clnorm_status check_others(const clnorm_config *c) {
    const struct cln_config_foreign foreign[] = {
        {"segments", c->segments}, {"keep", c->keep},         {"reduce", c->reduce},
        {"weights", c->weights},   {"tile", c->tile},         {"gather", c->gather},
        {"fetch", c->fetch},       {"chunks", c->chunks},     {"sums", c->sums},
        {"walkers", c->walkers},   {"prefetch", c->prefetch}, {"registers", c->registers},
        {"shelved", c->shelved},   {"asked", c->asked},       {NULL, 0},
    };
    return cln_config_refuse_foreign(foreign);
}

static clnorm_status check_whole(const clnorm_device_info *device, const struct cln_workload *work,
                                 const clnorm_config *c) {
    if (c->lanes > device->max_work_group_size)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.config.lanes is %" PRIu32 ": the device allows %" PRIu64 " work-items",
                        c->lanes, device->max_work_group_size);
    if (!cln_config_element_aligned(device, c) && work->alignment % c->vec)
        return cln_config_refuse("vec", c->vec, "a divisor of every row stride on this device");
    if (c->isa == CLNORM_ISA_PTX && !cln_config_runs_ptx(device))
        return cln_config_refuse("isa", c->isa, "CLNORM_ISA_PTX on NVIDIA, compute capability 8.0 and up, only");
    return CLNORM_SUCCESS;
}

static uint32_t choose_vec(const struct habit *habit, const struct cln_workload *work, bool element_aligned) {
    const uint64_t size = element_aligned ? work->real_size : work->x_size; /* of what fills a vector register */
    const uint64_t wish = cln_larger(cln_smaller(habit->vector_bytes / size, 16), 1);
    return (uint32_t)(element_aligned ? wish : cln_smaller(wish, work->alignment));
}

/* As many as a row has vectors for. */
static uint32_t choose_lanes(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                             const clnorm_config *c) {
    const uint64_t vectors = cln_power_of_two_at_least(cln_divide_up(work->group_size, c->vec));
    const uint64_t most = cln_power_of_two_at_most(cln_larger(device->max_work_group_size, 1));
    return (uint32_t)cln_smaller(cln_smaller(habit->lanes, most), vectors);
}

/* The habit's, or fewer where that makes work-groups for all compute units. */
static uint32_t choose_unroll(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                              const clnorm_config *c) {
    const uint64_t blocks = work->rows * cln_divide_up(work->group_size, (uint64_t)c->vec * c->lanes);
    uint32_t unroll = habit->unroll;
    while (unroll > 1 && blocks / unroll < 4 * (uint64_t)device->compute_units)
        unroll /= 2;
    return unroll;
}

/* Enough work for a group to be worth its start, but at least four groups for each compute unit. */
static uint32_t choose_rounds(const struct habit *habit, const clnorm_device_info *device, const struct cln_workload *work,
                              const clnorm_config *c) {
    const uint64_t block = (uint64_t)c->vec * c->lanes * c->unroll;
    const uint64_t elements = cln_smaller(block, work->group_size);
    const uint64_t wish = cln_divide_up(habit->round_bytes, elements * work->x_size);
    const uint64_t blocks = work->rows * cln_divide_up(work->group_size, block);
    return (uint32_t)cln_larger(cln_smaller(wish, blocks / (4 * (uint64_t)cln_larger(device->compute_units, 1))), 1);
}

clnorm_status cln_config_choose_elements(const clnorm_device_info *device, const struct cln_workload *work,
                                         const clnorm_config *forced, clnorm_config *config) {
    clnorm_status status = cln_config_check_ranges(forced);
    if (!status)
        status = check_others(forced);
    if (status)
        return status;
    const struct habit *habit = habit_of(device);
    clnorm_config c = *forced;
    if (!c.stores)
        c.stores = CLNORM_STORES_CACHED;
    if (!c.vec)
        c.vec = choose_vec(habit, work, cln_config_element_aligned(device, &c));
    if (!c.lanes)
        c.lanes = choose_lanes(habit, device, work, &c);
    if (!c.unroll)
        c.unroll = choose_unroll(habit, device, work, &c);
    if (!c.rounds)
        c.rounds = choose_rounds(habit, device, work, &c);
    if (!c.isa)
        c.isa = cln_config_runs_ptx(device) ? CLNORM_ISA_PTX : CLNORM_ISA_PORTABLE;
    status = check_whole(device, work, &c);
    if (!status)
        *config = c;
    return status;
}
