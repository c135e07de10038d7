/* Group norm of channels first, a group of a sample at a time: LANES work-items read it for its statistics, and again
 * for y, from a cache if it fits there. See clnorm_group_norm_desc for the formulas, and cl/norm/group_norm.h. */

#include "norm/group_norm.h"
#include "norm/group_norm_y.h"

/* The arguments of a launch. work: groups of samples. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_moments.h"
#include "norm/group_norm_segment_y.h"

/* A segment that fits in its lanes' registers is read once. */
#if ISA == ISA_PTX
#define REGISTER_ELEMENTS (LANES > 512 ? 40 : LANES > 256 ? 80 : 200)
#else
#define REGISTER_ELEMENTS 32
#endif
/* Elements of a lane that fit in registers. */
#define MOST_HELD (REGISTER_ELEMENTS / (PRESENT(RESIDUAL_DTYPE) ? 2 : 1) / (IS_DOUBLE(X_DTYPE) ? 2 : 1))
#define IS_HELD (LANES > 1 && VECTORS_OF_LANE * VEC <= MOST_HELD)

/* In the pass that measures, writes the largest |y| of the segment. Every work-item of the work-group calls it. */
INLINED void put_largest(const struct call *call, const struct place *place, const struct output *output,
                         struct lanes *lanes) {
#if MEASURES
    put_magnitude(call->magnitudes + place->index, output, place->active && place->lane == 0, lanes);
#else
    (void)call, (void)place, (void)output, (void)lanes;
#endif
}

#if IS_HELD

#include "norm/group_norm_segment_held.h"

INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct place own_place = place_of(index, active), *const place = &own_place;
    const struct chunk whole = chunk_of(place, 0);
    struct held held;
    load_held(call, &whole, &held);
    const real mean = mean_of_held(call, &whole, &held, lanes);
    const real rstd = rstd_of(squares_of_held(call, &whole, &held, mean, lanes), call->eps);
    write_statistics(call, place, mean, rstd);
    struct output output = OUTPUT_OF(call, place->active ? place->sample : 0);
    write_held(call, &whole, &held, mean, rstd, &output);
    put_largest(call, place, &output, lanes);
}

#else

/* The elements after the last whole vector. The lane after that vector's takes them. */
static inline void take_tail(const struct call *call, const struct place *place, const real origin, struct spread *own) {
    if (TAIL > 0 && place->lane == WHOLE_VECTORS % LANES)
        add_rest(call, place->sample, place->first + GROUP_SIZE - TAIL, TAIL, origin, own);
}

static inline struct spread own_spread(const struct call *call, const struct place *place, const real origin) {
    struct moments moments = {0, 0, 0, 0};
    const index_t vectors = WHOLE_VECTORS / LANES + (place->lane < WHOLE_VECTORS % LANES);
    add_vectors(call, place->sample, place->first + (ulong)place->lane * VEC, LANES * VEC, vectors, &moments);
    struct spread own = spread_of(&moments, origin);
    take_tail(call, place, origin, &own);
    return own;
}

#define COPIED COPIED_AT_ONCE(sizeof(struct packed_s))

static inline void write_segment(const struct call *call, const struct place *place, const real mean, const real rstd,
                                 struct output *output) {
#if LANES == 1
    for (ulong channel = 0; channel < CHANNELS_OF_GROUP; channel++) {
        const struct affine affine = affine_of(call, place, (index_t)(channel * ROW_VECTORS), mean, rstd);
        const ulong first = place->first + channel * SPATIAL, end = first + place_in_row(VECTORS_APART);
        const realv last = OVERLAPS ? LOAD_S(call, place->sample, end, VEC) : 0; /* before a y over x is written */
        for (ulong vector = 0; vector < VECTORS_APART; vector++) {
            const ulong at = first + vector * VEC, count = elements_in_row(vector);
            write_vector(call, place, &affine, at, count, LOAD_S(call, place->sample, at, count), output);
        }
        if (OVERLAPS)
            write_vector(call, place, &affine, end, VEC, last, output);
    }
#else
    for (index_t first = place->lane; first < SEGMENT_VECTORS; first += COPIED * LANES) {
        struct packed_s packed[COPIED];
#pragma unroll
        for (uint k = 0; k < COPIED; k++)
            if (first + k * LANES < SEGMENT_VECTORS)
                LOAD_PACKED_S(&packed[k], call, place->sample, place->first + (first + (ulong)k * LANES) * VEC, VEC);
        begin_loads();
#pragma unroll
        for (uint k = 0; k < COPIED; k++)
            if (first + k * LANES < SEGMENT_VECTORS)
                write_whole_vector(call, place, first + k * LANES, mean, rstd, &packed[k], output);
    }
#endif
}

INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct place own_place = place_of(index, active), *const place = &own_place;
    real origin = 0;
    struct spread own = {0, 0, 0};
    if (place->active) {
        /* CPUs load a whole vector faster than one element of it */
        origin = first_element(LOAD_S(call, place->sample, place->first, GROUP_SIZE < VEC ? 1 : VEC));
        own = own_spread(call, place, origin);
    }
    const struct spread all = spread_over_lanes(own, (real)GROUP_SIZE, lanes);
    const real mean = origin + all.mean, rstd = rstd_of(all.squares, call->eps);
    write_statistics(call, place, mean, rstd);
    struct output output = OUTPUT_OF(call, place->active ? place->sample : 0);
    if (place->active)
        write_segment(call, place, mean, rstd, &output);
    put_largest(call, place, &output, lanes);
}

#endif

#include "common/take_share.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm(PARAMETERS(GROUP_NORM_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_unaligned(PARAMETERS(GROUP_NORM_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
