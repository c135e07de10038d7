/* The gradients of group norm by chunks, with either layout: first the sums of each channel, and later dx, after
 * group_norm_slopes has added them up over groups or while group_norm_dx_of_sums does so itself. */

#include "norm/group_norm_backward.h"
#include "norm/group_norm_shares.h"
#include "norm/group_norm_sums.h"

/* ------------------------------------------------------------------------------------------------------------ sums */

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_sums(PARAMETERS(GROUP_NORM_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[PHASES > 1 ? 2 * GROUP_ITEMS : 1];
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch, space);
}

/* -------------------------------------------------------------------------------------------------------------- dx */

/* The arguments of the launch. work: units. */
struct dx_call {
    MEMBERS(GROUP_NORM_DX_OF_SUMS_ARGS)
    const global real *slopes;
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_chunk_dx.h"

#if IS_FIRST

static inline void write_unit(const struct dx_call *call, const struct unit *unit) {
    struct batch batch;
    load_chunk(call, unit, &batch);
    const ulong group = group_of(unit);
    const realv slopes[2] = {call->slopes[2 * group], call->slopes[2 * group + 1]};
    write_chunk(call, unit, &batch, slopes);
}

#else

#if LANES == 1

/* The gradient of s of a vector. at: element of the sample. */
static inline realv ds_at(const struct dx_call *call, const struct unit *unit, const ulong at, const ulong count,
                          const struct channels *channels, const realv slopes[2]) {
    struct packed_pair packed;
    LOAD_PAIR(&packed, call, unit->sample, at, count);
    const struct point point = point_of(channels, &packed);
    return ALL_OF_S(call, unit->sample, at, dx_of(channels, slopes, point.centre, point.dn), count);
}

/* Writes dx of a row. A last vector that overlaps others is computed before they are written, as dx may lie over x or
 * dy. */
static inline void write_row(const struct dx_call *call, const struct unit *unit, const ulong index,
                             const struct channels *channels, realv slopes[][2]) {
    const ulong row = index * ROW;
    realv last = 0;
    if (OVERLAPS)
        last = ds_at(call, unit, row + ELEMENT(VECTORS_APART), VEC, channels + VECTORS_APART, slopes[VECTORS_APART]);
    for (uint j = 0; j < HELD_VECTORS && IS_APART(j); j++) {
        const realv ds = ds_at(call, unit, row + ELEMENT(j), COUNT(j), &channels[j], slopes[j]);
        PUT_ALL(call, unit->sample, row + ELEMENT(j), ds, COUNT(j));
    }
    if (OVERLAPS)
        PUT_ALL(call, unit->sample, row + ELEMENT(VECTORS_APART), last, VEC);
}

#endif

static inline void write_unit(const struct dx_call *call, const struct unit *unit) {
    const global real *numbers = call->slopes + 2 * unit->sample * GROUPS;
    struct channels channels[HELD_VECTORS];
    realv slopes[HELD_VECTORS][2];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        channels[j] = CHANNELS_BESIDE(call, unit, j);
        slopes[j][0] = of_groups(numbers, ELEMENT(j), COUNT(j), 2);
        slopes[j][1] = of_groups(numbers + 1, ELEMENT(j), COUNT(j), 2);
    }
#if LANES == 1
    const ulong end = chunk_begin(unit->chunk + 1);
    for (ulong row = chunk_begin(unit->chunk); row < end; row++)
        write_row(call, unit, row, channels, slopes);
#else
    const struct course course = course_of_phase(unit);
    struct batch batch;
    load_batch(call, &course, 0, &batch);
    write_course(call, &course, &batch, &channels[0], slopes[0]);
#endif
}

#endif

static inline void write_share(const struct dx_call *call) {
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_backwards(first + i * UNITS, call->work);
        if (unit.active)
            write_unit(call, &unit);
    }
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_dx(PARAMETERS(GROUP_NORM_DX_ARGS)) {
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_ARGS), .aligned = !ELEMENT_ALIGNED};
    write_share(&call);
}

#if IS_FIRST

/* Computes a channel's sums over samples, or dx of a unit, whose first vectors are on their way meanwhile. Units are taken
 * from the last to the first. */
INLINED void take_piece(const struct dx_call *call, const ulong index, struct lanes *lanes) {
    const bool of_channel = index < call->channels && index < call->work, of_unit = !of_channel && index < call->work;
    const struct unit unit = unit_of(of_unit ? call->work - 1 - index : 0, of_unit);
    struct batch batch;
    if (of_unit)
        load_chunk(call, &unit, &batch);
    struct shares shares = {{0, 0}, {0, 0}};
    if (of_channel)
        take_channel(&shares, call->parts, call->rows, index, unit.lane);
    if (of_unit)
        take_group(&shares, call->parts, call->weight, group_of(&unit), unit.lane);
    real sums[2] = {shares.of_dn.sum, shares.of_product.sum};
    sum_lanes(lanes, sums, 2);
    if (of_channel && unit.lane == 0) {
        PUT_DBIAS(call->dbias, index, sums);
        PUT_DWEIGHT(call->dweight, index, sums);
    }
    join_lanes();
    if (of_unit)
        write_with_sums(call, &unit, &batch, sums);
}

INLINED void take_pieces(const struct dx_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations && first + i * SEGMENTS < call->work; i++)
        take_piece(call, first + i * SEGMENTS + own_unit(), &lanes);
    last_barrier();
}

/* work: channels, 0 where another kernel computes their sums; then units. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_of_sums(PARAMETERS(GROUP_NORM_DX_OF_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_OF_SUMS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, scratch);
}

#if !ELEMENT_ALIGNED
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_of_sums_unaligned(PARAMETERS(GROUP_NORM_DX_OF_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_OF_SUMS_ARGS), .aligned = false};
    take_pieces(&call, scratch);
}
#endif

#endif

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_sums_unaligned(PARAMETERS(GROUP_NORM_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[PHASES > 1 ? 2 * GROUP_ITEMS : 1];
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = false};
    take_share(&call, scratch, space);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_unaligned(PARAMETERS(GROUP_NORM_DX_ARGS)) {
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_ARGS), .aligned = false};
    write_share(&call);
}
#endif
