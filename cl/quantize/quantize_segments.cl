/* The largest magnitude of each segment, its scale, and its codes. LANES work-items share a segment, and a work-group takes
 * SEGMENTS of them at a time. A segment is a row, or with SCALING_GROUP GROUP_SIZE neighbouring elements: a row has GROUPS
 * of them, and the last one may be shorter. With SCALING_TENSOR only amax is written, one for each work-group.
 *
 * Macros (src/program/spec.h): X_DTYPE, Q_DTYPE, SCALE_DTYPE (none: no scale is written), AMAX, WRITE_Q, SCALING,
 * GROUP_SIZE, GROUPS, STOCHASTIC, VEC, LANES, SEGMENTS, REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED; perhaps LEADS and
 * TAILS. */

#include "common/arguments.h"
#include "quantize/magnitude.h"
#include "quantize/quantize.h"
#include "quantize/quantize_args.h"

struct call {
    MEMBERS(QUANTIZE_SEGMENTS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#include "quantize/quantize_call.h"

#define STEP (LANES * VEC)
#define AT_ONCE 4                                                   /* vectors */
#define ONE_VECTOR (SCALING == SCALING_GROUP && GROUP_SIZE <= STEP) /* a lane has one vector of a segment */
#define WINDOWS (ONE_VECTOR && LEADS)
#define PUTS_CODES (PRESENT(SCALE_DTYPE) && WRITE_Q)

/* Writes a segment's magnitude and its scale, which it returns. first: this lane writes. */
static inline float put_scale(const struct call *call, const ulong index, const float amax, const bool first) {
#if AMAX && SCALING != SCALING_TENSOR
    if (first)
        call->amax[index] = amax;
#endif
#if PRESENT(SCALE_DTYPE)
    const float rounded = ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Q_DTYPE)));
    if (first)
        STORE1(SCALE_DTYPE)(call->scale + index, rounded);
    return rounded;
#else
    (void)call, (void)index, (void)first;
    return amax;
#endif
}

#if PUTS_CODES && !WINDOWS
static inline void put_codes(const struct call *call, const ulong row, const ulong column, const PACKED(X_DTYPE) x,
                             const float scale, const bool whole) {
    put(call, row, column, quantized(call, row, column, WIDEN(X_DTYPE)(x), scale), whole);
}
#endif

#if WINDOWS
#include "quantize/windows.h"
#define KEPT KEPT_WORDS(AT_ONCE *GROUP_ITEMS)
#else
#define KEPT 1
#endif

#if ONE_VECTOR

/* The place of a work-item's vector in its k-th segment. Its segments are SEGMENTS apart. */
struct place {
    ulong row, column;
    bool active;
};

static inline struct place place_of(const ulong first, const uint k, const ulong end) {
    const uint within = (uint)get_local_id(0) % LANES * VEC;
    const ulong row = first / GROUPS, group = first - row * GROUPS + k * SEGMENTS; /* from the row's first group on */
    const uint rows = GROUPS < AT_ONCE * SEGMENTS ? (uint)group / (uint)GROUPS : group >= GROUPS;
    const struct place place = {row + rows, (group - rows * (ulong)GROUPS) * GROUP_SIZE + within,
                                first + k * SEGMENTS < end && within < GROUP_SIZE};
    return place;
}

static inline bool is_there(const struct call *call, const struct place *place) {
    return place->active && place->column < call->cols;
}

#if !WINDOWS
struct window {
    PACKED(X_DTYPE) vector;
};

static inline struct window load_window(const struct call *call, const ulong row, const ulong column) {
    return (struct window){load_x(call, row, column, LOAD_LAST)};
}

static inline PACKED(X_DTYPE)
    elements_of(const struct call *call, const ulong row, const ulong column, const struct window *window) {
    (void)call, (void)row, (void)column;
    return window->vector;
}
#endif

#if WINDOWS && PUTS_CODES
/* Writes the codes of AT_ONCE segments of each work-item. */
INLINED void put_windows(const struct call *call, const ulong first, const ulong end, const local uint *kept) {
    const uint item = (uint)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint k = 0; k < AT_ONCE; k++) {
        const struct place place = place_of(first, k, end);
        const uint w = k * GROUP_ITEMS + item;
        const bool next = w + 1 < AT_ONCE * GROUP_ITEMS && first - item / LANES + (w + 1) / LANES < end;
        if (is_there(call, &place))
            put_window(call, place.row, place.column, w, w > 0, !next, kept);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

/* AT_ONCE segments of a work-item, all read before one is written. Segments from end on do not exist. */
INLINED void take_segments(const struct call *call, const ulong first, const ulong end, struct lanes *lanes,
                           local uint *kept) {
    struct window windows[AT_ONCE] = {{0}};
#pragma unroll
    for (uint k = 0; k < AT_ONCE; k++) {
        const struct place place = place_of(first, k, end);
        if (is_there(call, &place))
            windows[k] = load_window(call, place.row, place.column);
    }
    begin_loads();
#pragma unroll
    for (uint k = 0; k < AT_ONCE; k++) {
        const struct place place = place_of(first, k, end);
        const PACKED(X_DTYPE) x = elements_of(call, place.row, place.column, &windows[k]);
        const float amax = largest_over_lanes(lanes, largest_of(larger_of(0, WIDEN(X_DTYPE)(x))));
        const bool there = is_there(call, &place);
        const float scale = put_scale(call, first + k * SEGMENTS, amax, there && get_local_id(0) % LANES == 0);
#if !PUTS_CODES
        (void)scale, (void)kept;
#elif WINDOWS
        if (there)
            keep_codes(kept, k * GROUP_ITEMS + (uint)get_local_id(0),
                       quantized(call, place.row, place.column, WIDEN(X_DTYPE)(x), scale));
#else
        (void)kept;
        if (there)
            put_codes(call, place.row, place.column, x, scale, false);
#endif
        join_lanes();
    }
#if WINDOWS && PUTS_CODES
    put_windows(call, first, end, kept);
#endif
}

/* This work-group's segments. */
INLINED void take_share(const struct call *call, local float *scratch, local uint *kept) {
    struct lanes lanes = {.scratch = scratch};
    const ulong share = call->iterations * SEGMENTS, begin = get_group_id(0) * share;
    const ulong end = min(begin + share, call->work);
    for (ulong first = begin; first < end; first += AT_ONCE * SEGMENTS)
        take_segments(call, first + get_local_id(0) / LANES, end, &lanes, kept);
}

#else

static inline ulong row_of(const ulong index) {
    return SCALING == SCALING_GROUP ? index / GROUPS : index;
}

/* A segment's first column, and the column after its last one. */
static inline ulong begin_of(const ulong index) {
    return SCALING == SCALING_GROUP ? index % GROUPS * GROUP_SIZE : 0;
}

static inline ulong end_of(const struct call *call, const ulong index) {
    return SCALING == SCALING_GROUP ? min(begin_of(index) + GROUP_SIZE, call->cols) : end_of_row(call, row_of(index));
}

/* The largest magnitude of a lane's part of a segment. */
static inline float amax_of(const struct call *call, const ulong row, const ulong begin, const ulong end) {
    largest magnitudes = 0;
    ulong column = begin;
    if (LEADS && column < VEC && column < end) { /* all others are whole, up to the last one */
        magnitudes = larger_of(magnitudes, WIDEN(X_DTYPE)(load_x(call, row, column, LOAD_FIRST)));
        column += STEP;
    }
    for (; column + (AT_ONCE - 1) * STEP + VEC <= end; column += AT_ONCE * STEP) {
        PACKED(X_DTYPE) x[AT_ONCE];
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            x[k] = load_whole(call, row, column + k * STEP, LOAD_FIRST);
        begin_loads();
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            magnitudes = larger_of(magnitudes, WIDEN(X_DTYPE)(x[k]));
    }
    for (; column < end; column += STEP)
        magnitudes = larger_of(magnitudes, WIDEN(X_DTYPE)(load_x(call, row, column, LOAD_FIRST)));
    return largest_of(magnitudes);
}

#if PUTS_CODES
/* Writes the codes of a lane's part of a segment. */
static inline void put_lane(const struct call *call, const ulong row, const ulong begin, const ulong end,
                            const float scale) {
    ulong column = begin;
    if (LEADS && column < VEC && column < end) {
        put_codes(call, row, column, load_x(call, row, column, LOAD_LAST), scale, false);
        column += STEP;
    }
#if LANES > 1 && !ON_CPU
#pragma unroll 4
#endif
    for (; column + VEC <= end; column += STEP)
        put_codes(call, row, column, load_whole(call, row, column, LOAD_LAST), scale, true);
    if (TAILS && column < end)
        put_codes(call, row, column, load_x(call, row, column, LOAD_LAST), scale, false);
}
#endif

/* One segment of LANES work-items. */
INLINED float take_segment(const struct call *call, const ulong index, struct lanes *lanes) {
    const bool active = index < call->work;
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong row = row_of(index), begin = begin_of(index), end = active ? end_of(call, index) : begin;
    const float own_amax = largest_over_lanes(lanes, amax_of(call, row, begin + lane * VEC, end));
    const float scale = put_scale(call, index, own_amax, active && lane == 0);
#if PUTS_CODES
    put_lane(call, row, begin + lane * VEC, end, scale);
#else
    (void)scale;
#endif
    return own_amax;
}

/* This work-group's segments. */
INLINED void take_share(const struct call *call, local float *scratch, local uint *kept) {
    struct lanes lanes = {.scratch = scratch};
    float largest = 0;
    (void)kept;
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong first = (get_group_id(0) * call->iterations + turn) * SEGMENTS;
        if (first >= call->work)
            break; /* the whole work-group */
        largest = fmax(largest, take_segment(call, first + get_local_id(0) / LANES, &lanes));
    }
#if SCALING == SCALING_TENSOR
    largest = largest_over_segments(scratch, largest);
    if (call->work > 0 && get_local_id(0) == 0)
        call->amax[get_group_id(0)] = largest;
#endif
}

#endif

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void quantize_segments(PARAMETERS(QUANTIZE_SEGMENTS_ARGS)) {
    local float scratch[2 * SCRATCH];
    local uint kept[KEPT] __attribute__((aligned(16))); /* a vector of codes at most */
    const struct call call = {ARGUMENTS(QUANTIZE_SEGMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch, kept);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
quantize_segments_unaligned(PARAMETERS(QUANTIZE_SEGMENTS_ARGS)) {
    local float scratch[2 * SCRATCH];
    local uint kept[KEPT] __attribute__((aligned(16))); /* a vector of codes at most */
    const struct call call = {ARGUMENTS(QUANTIZE_SEGMENTS_ARGS), .aligned = false};
    take_share(&call, scratch, kept);
}
#endif
