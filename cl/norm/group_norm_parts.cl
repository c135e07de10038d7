/* Group norm by chunks, with either layout: a kernel for their moments, and one for y, after group_norm_merge has made
 * statistics of the moments or, with MERGES, while each work-group does so itself. */

#include "norm/group_norm.h"
#include "norm/group_norm_y.h"

/* The arguments of the launches for moments and for y. work: units. */
struct call {
    MEMBERS(GROUP_NORM_MOMENTS_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#if MERGES
#define APPLY_ARGS GROUP_NORM_APPLY_MOMENTS_ARGS
#else
#define APPLY_ARGS GROUP_NORM_APPLY_ARGS
#endif

struct apply_call {
    MEMBERS(APPLY_ARGS)
    bool aligned;
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_chunk_moments.h"
#include "norm/group_norm_chunk_y.h"

/* --------------------------------------------------------------------------------------------------------- moments */

INLINED void take_moments_share(const struct call *call, local real *scratch, local realv *space) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        take_moments(call, &unit, &lanes, space);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[SPACE];
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_moments_share(&call, scratch, space);
}

/* ----------------------------------------------------------------------------------------------------------- apply */

#if MEASURES

/* magnitudes: [work, PHASES] */
INLINED void measure_share(const struct apply_call *call, struct place *place) {
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        struct output output = OUTPUT_OF(call, unit.sample);
        write_unit(call, &unit, place, &output);
        put_magnitude(call->magnitudes + (first + i * UNITS + own_unit()) * PHASES + unit.phase, &output,
                      unit.active && unit.lane == 0, &place->lanes);
    }
    last_barrier();
}

#define APPLY measure_share

#else

INLINED void write_share(const struct apply_call *call, struct place *place) {
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_backwards(first + i * UNITS, call->work);
        struct output output = OUTPUT_OF(call, unit.sample);
        write_unit(call, &unit, place, &output);
    }
    last_barrier();
}

#define APPLY write_share

#endif

/* Declares a kernel's place. */
#if BLOCK && MERGES
#define APPLY_PLACE                                   \
    local real scratch[2 * SCRATCH];                  \
    local real space[2 * GROUP_ITEMS];                \
    local struct statistics statistics[BLOCK_GROUPS]; \
    struct place place = {{.scratch = scratch}, statistics, space}
#else
#define APPLY_PLACE                  \
    local real scratch[2 * SCRATCH]; \
    struct place place = {{.scratch = scratch}}
#endif

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply(PARAMETERS(APPLY_ARGS)) {
    APPLY_PLACE;
    const struct apply_call call = {ARGUMENTS(APPLY_ARGS), .aligned = !ELEMENT_ALIGNED};
    APPLY(&call, &place);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments_unaligned(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[SPACE];
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = false};
    take_moments_share(&call, scratch, space);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply_unaligned(PARAMETERS(APPLY_ARGS)) {
    APPLY_PLACE;
    const struct apply_call call = {ARGUMENTS(APPLY_ARGS), .aligned = false};
    APPLY(&call, &place);
}
#endif
