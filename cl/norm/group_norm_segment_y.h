/* y of a segment of channels first. The including file defines a struct call with the members of GROUP_NORM_ARGS. */
#ifndef GROUP_NORM_SEGMENT_Y_H
#define GROUP_NORM_SEGMENT_Y_H

#include "norm/group_norm.h"
#include "norm/group_norm_y.h"

/* Whole vectors: of a segment, of one of CHUNKS equally large chunks of it, and those of a chunk that a lane has. */
#define SEGMENT_VECTORS (1ul * GROUP_SIZE / VEC)
#define CHUNK_VECTORS (SEGMENT_VECTORS / CHUNKS)
#define VECTORS_OF_LANE (CHUNK_VECTORS / LANES + (CHUNK_VECTORS % LANES != 0))

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

static inline struct place place_of(const ulong index, const bool active) {
    const ulong sample = index / GROUPS, group = index - sample * GROUPS;
    const struct place place = {index, sample, group * CHANNELS_OF_GROUP, group * GROUP_SIZE, (uint)get_local_id(0) % LANES,
                                active};
    return place;
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

#endif
