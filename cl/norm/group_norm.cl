/* Group norm of channels first, a group of a sample at a time: LANES work-items read it for its statistics, and then, from
 * a cache if it fits there, for y. See clnorm_group_norm_desc for the formulas, and cl/norm/group_norm.h. */

#include "norm/group_moments.h"
#include "norm/group_norm.h"

/* The arguments of a launch. work: groups of samples. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

/* A segment's place. */
struct place {
    ulong index, sample;
    ulong channel; /* its first one */
    ulong first;   /* element of the sample */
    uint lane;
    bool active; /* false past the last segment */
};

/* The moments of this lane's whole vectors, the i-th of which is lane + i · LANES. */
static inline void take_vectors(const struct call *call, const struct place *place, struct moments *moments) {
    const index_t count = WHOLE_VECTORS / LANES + (place->lane < WHOLE_VECTORS % LANES);
#define VECTOR_AT(i) LOAD_S(call, place->sample, place->first + (place->lane + (ulong)(i)*LANES) * VEC, VEC)
    if (count > 0)
        moments_start(moments, VECTOR_AT(0));
    for (index_t i = 0; i < count;) {
        const index_t length = run_length(moments, count - i), whole = length / CHAINS * CHAINS;
        struct run run;
        run_start(&run, moments);
        for (index_t j = 0; j < whole; j += CHAINS)
#pragma unroll
            for (uint k = 0; k < CHAINS; k++)
                run_take(&run, k, VECTOR_AT(i + j + k));
        for (index_t j = whole; j < length; j++)
            run_take(&run, 0, VECTOR_AT(i + j));
        run_end(&run, moments, length);
        i += length;
    }
#undef VECTOR_AT
}

/* Elements after the last whole vector, which the lane after the last vector's has. */
static inline void take_tail(const struct call *call, const struct place *place, const real origin, struct spread *own) {
    if (TAIL == 0 || place->lane != WHOLE_VECTORS % LANES)
        return;
    for (ulong i = GROUP_SIZE - TAIL; i < GROUP_SIZE; i++) {
        const struct spread one = {first_element(LOAD_S(call, place->sample, place->first + i, 1)) - origin, 0, 1};
        spread_merge(own, one);
    }
}

static inline struct spread own_spread(const struct call *call, const struct place *place, const real origin) {
    struct moments moments = {0, 0, 0, 0};
    take_vectors(call, place, &moments);
    struct spread own = spread_of(&moments, origin);
    take_tail(call, place, origin, &own);
    return own;
}

/* What is done to s of a channel. */
struct affine {
    real mean, scale, bias;
};

static inline struct affine affine_of(const struct call *call, const ulong channel, const real mean, const real rstd) {
    const struct affine affine = {mean, rstd * WEIGHT_OF(call, channel), BIAS_OF(call, channel)};
    return affine;
}

static inline void take_vector(const struct call *call, const struct place *place, const struct affine *affine,
                               const ulong channel, const ulong vector) {
    const ulong at = place->first + channel * SPATIAL + vector * VEC, count = elements_of(vector);
    const realv s = LOAD_S(call, place->sample, at, count);
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_PART(RESIDUAL_OUT_DTYPE)
    (call->residual_out + place->sample * call->residual_out_stride + at, s, count, call->aligned);
#endif
    STORE_PART(Y_DTYPE)
    (call->y + place->sample * call->y_stride + at, activated((s - affine->mean) * affine->scale + affine->bias), count,
     call->aligned);
}

static inline void write_segment(const struct call *call, const struct place *place, const real mean, const real rstd) {
#if LANES == 1
    for (ulong channel = 0; channel < CHANNELS_OF_GROUP; channel++) {
        const struct affine affine = affine_of(call, place->channel + channel, mean, rstd);
        for (ulong vector = 0; vector < ROW_VECTORS; vector++)
            take_vector(call, place, &affine, channel, vector);
    }
#else
    for (index_t v = place->lane; v < CHANNELS_OF_GROUP * (index_t)ROW_VECTORS; v += LANES) {
        const index_t channel = v / (index_t)ROW_VECTORS;
        const struct affine affine = affine_of(call, place->channel + channel, mean, rstd);
        take_vector(call, place, &affine, channel, v - channel * (index_t)ROW_VECTORS);
    }
#endif
}

INLINED void take_segment(const struct call *call, const struct place *place, struct lanes *lanes) {
    real origin = 0;
    struct spread own = {0, 0, 0};
    if (place->active) {
        origin = first_element(LOAD_S(call, place->sample, place->first, 1));
        own = own_spread(call, place, origin);
    }
    const struct spread all = spread_over_lanes(own, (real)GROUP_SIZE, lanes);
    if (!place->active)
        return;
    const real mean = origin + all.mean, rstd = rstd_of(all.squares, call->eps);
#if SAVE_MEAN
    if (place->lane == 0)
        call->mean[place->index] = mean;
#endif
#if SAVE_RSTD
    if (place->lane == 0)
        call->rstd[place->index] = rstd;
#endif
    write_segment(call, place, mean, rstd);
}

static inline struct place place_of(const ulong index, const bool active) {
    const ulong sample = index / GROUPS, group = index - sample * GROUPS;
    const struct place place = {index, sample, group * CHANNELS_OF_GROUP, group * GROUP_SIZE, (uint)get_local_id(0) % LANES,
                                active};
    return place;
}

/* This work-group's segments. */
INLINED void take_share(const struct call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = first + i * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const ulong own = index + get_local_id(0) / LANES;
        const struct place place = place_of(own, SEGMENTS == 1 || own < call->work);
        take_segment(call, &place, &lanes);
    }
    last_barrier();
}

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
