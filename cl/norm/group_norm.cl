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

/* A segment that fits in its lanes' registers is read once. */
#define SEGMENT_VECTORS (1ul * GROUP_SIZE / VEC)
#define HELD_OF_LANE (SEGMENT_VECTORS / LANES + (SEGMENT_VECTORS % LANES != 0))
#if ISA == ISA_PTX
#define REGISTER_ELEMENTS (LANES > 512 ? 40 : LANES > 256 ? 80 : 200)
#else
#define REGISTER_ELEMENTS 32
#endif
/* Elements of a lane that fit in registers. */
#define MOST_HELD (REGISTER_ELEMENTS / (PRESENT(RESIDUAL_DTYPE) ? 2 : 1) / (IS_DOUBLE(X_DTYPE) ? 2 : 1))
#define IS_HELD (LANES > 1 && HELD_OF_LANE * VEC <= MOST_HELD)

/* The place of a segment. */
struct place {
    ulong index, sample;
    ulong channel; /* its first one */
    ulong first;   /* element of the sample */
    uint lane;
    bool active; /* false past the last segment */
};

/* The mean, scale and bias that turn s into n: of a channel, or with several lanes of a vector, which may span
 * channels. */
#define IS_MIXED (LANES > 1 && SPATIAL % VEC != 0)
#if IS_MIXED
typedef realv affine_t;
#else
typedef real affine_t;
#endif

struct affine {
    real mean;
    affine_t scale, bias;
};

#if IS_MIXED
/* Those of a vector. A vector no longer than a channel spans two channels at most. */
static inline struct affine affine_of(const struct call *call, const struct place *place, const index_t vector,
                                      const real mean, const real rstd) {
    const index_t first = vector * VEC;
    real scale[VEC], bias[VEC];
#if SPATIAL >= VEC
    const index_t own = first / (index_t)SPATIAL, next = min(own + 1, (index_t)CHANNELS_OF_GROUP - 1);
    const real scales[2] = {rstd * WEIGHT_OF(call, place->channel + own), rstd * WEIGHT_OF(call, place->channel + next)};
    const real biases[2] = {BIAS_OF(call, place->channel + own), BIAS_OF(call, place->channel + next)};
#pragma unroll
    for (uint i = 0; i < VEC; i++) {
        const bool is_next = first + i >= (own + 1) * (index_t)SPATIAL;
        scale[i] = is_next ? scales[1] : scales[0];
        bias[i] = is_next ? biases[1] : biases[0];
    }
#else
#pragma unroll
    for (uint i = 0; i < VEC; i++) {
        const ulong channel = place->channel + (first + i) / (index_t)SPATIAL;
        scale[i] = rstd * WEIGHT_OF(call, channel);
        bias[i] = BIAS_OF(call, channel);
    }
#endif
    const struct affine affine = {mean, VLOAD(scale), VLOAD(bias)};
    return affine;
}
#else
static inline struct affine affine_of(const struct call *call, const struct place *place, const index_t vector,
                                      const real mean, const real rstd) {
    const ulong channel = place->channel + vector / (index_t)ROW_VECTORS;
    const struct affine affine = {mean, rstd * WEIGHT_OF(call, channel), BIAS_OF(call, channel)};
    return affine;
}
#endif

/* at: element of the sample. */
static inline void write_vector(const struct call *call, const struct place *place, const struct affine *affine,
                                const ulong at, const ulong count, const realv s, struct output *output) {
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_PART(RESIDUAL_OUT_DTYPE)
    (call->residual_out + place->sample * call->residual_out_stride + at, s, count, call->aligned);
#endif
    PUT_Y(call, place->sample, at, activated((s - affine->mean) * affine->scale + affine->bias), count, output);
}

static inline void write_statistics(const struct call *call, const struct place *place, const real mean, const real rstd) {
    if (!place->active || place->lane != 0)
        return;
#if SAVE_MEAN
    call->mean[place->index] = mean;
#endif
#if SAVE_RSTD
    call->rstd[place->index] = rstd;
#endif
    (void)call, (void)mean, (void)rstd;
}

/* In the pass that measures, writes the largest |y| of the segment. Every work-item of the work-group calls it. */
INLINED void put_largest(const struct call *call, const struct place *place, const struct output *output,
                         struct lanes *lanes) {
#if MEASURES
    put_magnitude(call->magnitudes + place->index, output, place->active && place->lane == 0, lanes);
#else
    (void)call, (void)place, (void)output, (void)lanes;
#endif
}

#if LANES > 1

/* With several lanes, the check of configs has ensured that a segment consists of whole vectors. */
static inline void write_whole_vector(const struct call *call, const struct place *place, const index_t vector,
                                      const real mean, const real rstd, const struct packed_s *packed,
                                      struct output *output) {
    const struct affine affine = affine_of(call, place, vector, mean, rstd);
    write_vector(call, place, &affine, place->first + (ulong)vector * VEC, VEC, S_OF(call, place->sample, packed), output);
}

#endif

#if IS_HELD

/* Called between one use of a vector and the next. */
static inline void forget_wide(struct packed_s *packed) {
    if (sizeof(packed->x) < sizeof(realv))
        forget((uint *)&packed->x, sizeof(packed->x) / sizeof(uint));
}

INLINED void take_segment(const struct call *call, const struct place *place, struct lanes *lanes) {
    struct packed_s held[HELD_OF_LANE] = {0};
#define IS_THERE(k) (place->active && ((k) + 1 < HELD_OF_LANE || place->lane + (k)*LANES < SEGMENT_VECTORS))
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (IS_THERE(k))
            LOAD_PACKED_S(&held[k], call, place->sample, place->first + (place->lane + (ulong)k * LANES) * VEC, VEC);
    begin_loads();
    const real origin = place->active ? first_element(LOAD_S(call, place->sample, place->first, 1)) : 0;
    realv sum = 0; /* of deviations from the origin, as a sum of large numbers might overflow */
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++) {
        if (IS_THERE(k))
            sum += S_OF(call, place->sample, &held[k]) - origin;
        forget_wide(&held[k]);
    }
    const real mean = origin + sum_over_lanes(lanes, sum_elements(sum)) / (real)GROUP_SIZE;
    realv squares = 0;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (IS_THERE(k)) {
            const realv deviation = S_OF(call, place->sample, &held[k]) - mean;
            squares += deviation * deviation;
            forget_wide(&held[k]);
        }
    const real rstd = rstd_of(sum_over_lanes(lanes, sum_elements(squares)), call->eps);
    write_statistics(call, place, mean, rstd);
    struct output output = OUTPUT_OF(call, place->active ? place->sample : 0);
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (IS_THERE(k))
            write_whole_vector(call, place, place->lane + k * LANES, mean, rstd, &held[k], &output);
    put_largest(call, place, &output, lanes);
#undef IS_THERE
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

INLINED void take_segment(const struct call *call, const struct place *place, struct lanes *lanes) {
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

static inline struct place place_of(const ulong index, const bool active) {
    const ulong sample = index / GROUPS, group = index - sample * GROUPS;
    const struct place place = {index, sample, group * CHANNELS_OF_GROUP, group * GROUP_SIZE, (uint)get_local_id(0) % LANES,
                                active};
    return place;
}

#include "norm/group_norm_segments.h"

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
