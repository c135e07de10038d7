/* A segment, or one of its CHUNKS, is read twice: for its statistics, and to be normalised. A measured scale of the row
 * takes another read between the two. Load hints ask caches to keep the segment from the first read to the last, and no
 * longer: so few registers are used that more work-groups run at once, and the L2 cache can hold the output while the
 * kernel runs. */
#ifndef NORM_REREAD_H
#define NORM_REREAD_H

#include "norm/norm_reread_moments.h"

#if WEIGHTS == WEIGHTS_KEPT
#define WEIGHTS_HINT LOAD_FIRST
#else
#define WEIGHTS_HINT LOAD_PLAIN
#endif

/* The inputs of a vector of s for the second time. */
struct again {
#if READS_S
    PACKED(RESIDUAL_OUT_DTYPE) s;
#else
    struct parts parts;
#endif
};

static inline void read_again(const struct call *call, const struct segment *segment, const index_t v,
                              const enum load_hint hint, struct again *again) {
    if (is_in_local(v))
        return;
#if READS_S
    again->s = LOAD_VECTOR(RESIDUAL_OUT_DTYPE)(segment->residual_out, v, segment->lead, call->aligned, LOAD_PLAIN);
    (void)hint;
#else
    load_parts(segment, v, call->aligned, hint, &again->parts);
#endif
}

INLINED realv s_again(const struct call *call, const struct segment *segment, const index_t v, const struct again *again,
                      const struct memory *memory) {
#if LOCAL_VECTORS
    if (is_in_local(v))
        return widen_s(segment, memory->in_local->s[v]);
#endif
#if READS_S
    (void)call, (void)segment, (void)v, (void)memory;
    return WIDEN(RESIDUAL_OUT_DTYPE)(again->s);
#else
    return widen_s(segment, s_of(segment, &again->parts, remembered(call, segment, v, memory)));
#endif
}

/* Elements from this segment to the next one of a CPU's work-item. */
#define NEXT(stride) (GROUPS == 1 ? (stride) : GROUP_SIZE)

/* Prefetches the next segment while this one is written. Chunks of a segment have different work-groups. */
static inline void prefetch_next(const struct call *call, const struct segment *segment, const index_t v) {
    if (CHUNKS > 1)
        return;
    prefetch_to_read(segment->x + NEXT(call->x_stride) + v * VEC);
    prefetch_to_write(segment->y + NEXT(call->y_stride) + v * VEC);
#if PRESENT(RESIDUAL_DTYPE)
    prefetch_to_read(segment->residual + NEXT(call->residual_stride) + v * VEC);
#endif
#if PRESENT(RESIDUAL_OUT_DTYPE)
    prefetch_to_write(segment->residual_out + NEXT(call->residual_out_stride) + v * VEC);
#endif
}

/* The use of a lane's vectors when it reads them again: to write y, or to measure its magnitudes. */
struct use {
    struct statistics statistics;
    const struct memory *memory;
    float scale; /* of an 8-bit y */
#if MEASURED || MEASURES
    largest magnitudes;
#endif
};

INLINED void use_vector(const struct call *call, const struct segment *segment, const index_t v, const realv s,
                        const struct affine *affine, const bool measure, struct use *use) {
#if MEASURED || MEASURES
    if (measure) {
        use->magnitudes = with_magnitudes(segment, use->magnitudes, y_of(call, s, affine, use->statistics), v);
        return;
    }
#endif
    if (!READS_S)
        put_beside(call, segment, v, s);
    put_vector(call, segment, v, s, affine, use->statistics, use->scale);
}

#if PAIRS_OF_VECTORS

/* A vector of y before it is rotated. Writes the outputs besides y. */
static inline realv take_unrotated(const struct call *call, const struct segment *segment, const index_t v,
                                   const struct again *again, const struct use *use) {
    const realv s = s_again(call, segment, v, again, use->memory);
    struct affine affine;
    load_affine(segment, v, call->aligned, WEIGHTS_HINT, &affine);
    if (!READS_S)
        put_beside(call, segment, v, s);
    return y_of(call, s, &affine, use->statistics);
}

/* Each lane has both vectors of its pairs, and reads them before it writes one, as y may be x. */
INLINED void use_vectors(const struct call *call, const struct segment *segment, const bool measure, struct use *use) {
    const index_t pairs = segment->active ? OWN_PAIRS : 0;
    const index_t own = own_vectors(segment) + owns_tail(segment);
    (void)measure;
    for (index_t i = 0; i < pairs; i++) {
        const index_t v = vector_of(segment, first_of_own_pair(i)), w = vector_of(segment, second_of_own_pair(i));
        struct again first, second;
        read_again(call, segment, v, LOAD_LAST, &first);
        read_again(call, segment, w, LOAD_LAST, &second);
        const realv y = take_unrotated(call, segment, v, &first, use);
        put_pair(call, segment, segment->lane + i * LANES, y, take_unrotated(call, segment, w, &second, use), use->scale);
        prefetch_next(call, segment, v);
        prefetch_next(call, segment, w);
    }
    for (index_t i = 2 * OWN_PAIRS; i < own; i++) {
        const index_t v = vector_of(segment, i);
        struct again again;
        read_again(call, segment, v, LOAD_LAST, &again);
        put_y(call, segment, v, take_unrotated(call, segment, v, &again, use), use->scale);
    }
}

#else

/* Loads weights, biases and z of a lane's vectors from the i-th on: at most `most` of them, and AFFINES_AT_ONCE. */
INLINED void load_affines(const struct call *call, const struct segment *segment, const index_t i, const uint most,
                          struct affine *affine) {
#pragma unroll
    for (uint j = 0; j < AFFINES_AT_ONCE; j++)
        if (j < most)
            load_affine(segment, vector_of(segment, i + j), call->aligned, WEIGHTS_HINT, &affine[j]);
}

/* Uses a lane's vectors from the i-th to end; the first `whole` of all are used UNROLL at a time. */
INLINED void use_range(const struct call *call, const struct segment *segment, index_t i, const index_t whole,
                       const index_t end, const bool measure, struct use *use) {
    const enum load_hint hint = measure ? LOAD_FIRST : LOAD_LAST;
    struct affine affine[AFFINES_AT_ONCE];
    for (; i + UNROLL <= whole; i += UNROLL) {
        struct again block[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            read_again(call, segment, vector_of(segment, i + j), hint, &block[j]);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const index_t v = vector_of(segment, i + j);
            if (j % AFFINES_AT_ONCE == 0)
                load_affines(call, segment, i + j, UNROLL - j, affine);
            use_vector(call, segment, v, s_again(call, segment, v, &block[j], use->memory), &affine[j % AFFINES_AT_ONCE],
                       measure, use);
            if (!measure)
                prefetch_next(call, segment, v);
        }
    }
    for (; i < end; i++) {
        const index_t v = vector_of(segment, i);
        struct again again;
        read_again(call, segment, v, hint, &again);
        load_affines(call, segment, i, 1, affine);
        use_vector(call, segment, v, s_again(call, segment, v, &again, use->memory), affine, measure, use);
    }
}

INLINED void use_vectors(const struct call *call, const struct segment *segment, const bool measure, struct use *use) {
    const index_t own = own_vectors(segment);
#if SPLITS_EDGES
    if (own == 0)
        return;
    const struct segment inner = inner_of(segment);
    use_range(call, segment, 0, 0, 1, measure, use);
    use_range(call, &inner, 1, own - 1, own - 1, measure, use);
    if (own > 1)
        use_range(call, segment, own - 1, 0, own, measure, use);
#else
    use_range(call, segment, 0, own, own + owns_tail(segment), measure, use);
#endif
}

#endif

#if MEASURED && SCALING == SCALING_GROUP

#define BATCH (BLOCK < UNROLL ? UNROLL / BLOCK * BLOCK : BLOCK) /* vectors of y that a lane holds at once */

/* Every lane makes the same number of iterations, since lanes wait for each other in each. */
INLINED void put_groups(const struct call *call, const struct segment *segment, const struct statistics statistics,
                        const struct memory *memory, struct lanes *lanes) {
    for (index_t i = 0; i < HELD; i += BATCH) {
        struct again block[BATCH];
        realv y[BATCH];
#pragma unroll
        for (uint j = 0; j < BATCH; j++)
            if (has_vector(segment, i + j))
                read_again(call, segment, segment->lane + (i + j) * LANES, LOAD_LAST, &block[j]);
#pragma unroll
        for (uint j = 0; j < BATCH; j++) {
            y[j] = 0;
            if (!has_vector(segment, i + j))
                continue;
            const index_t v = segment->lane + (i + j) * LANES;
            struct affine affine;
            load_affine(segment, v, call->aligned, WEIGHTS_HINT, &affine);
            const realv s = s_again(call, segment, v, &block[j], memory);
            if (!READS_S)
                put_beside(call, segment, v, s);
            y[j] = y_of(call, s, &affine, statistics);
            prefetch_next(call, segment, v);
        }
        put_measured(call, segment, lanes, i, y, BATCH);
    }
}

#endif

/* Writes the outputs of a segment or a chunk, without its statistics. Returns the largest |y| of this lane's part, with
 * MEASURES. */
INLINED float put_segment(const struct call *call, const struct segment *segment, const struct statistics statistics,
                          const struct memory *memory, struct lanes *lanes) {
#if MEASURED && SCALING == SCALING_GROUP
    put_groups(call, segment, statistics, memory, lanes);
#else
    struct use use;
    use.statistics = statistics;
    use.memory = memory;
#if MEASURED || MEASURES
    use.magnitudes = 0;
    use_vectors(call, segment, true, &use);
#endif
#if MEASURES
    return take_largest(call, segment, lanes, use.magnitudes);
#elif MEASURED
    use.scale = take_scale(call, segment, lanes, use.magnitudes, 0);
#else
    use.scale = tensor_scale(call);
#endif
    use_vectors(call, segment, false, &use);
    (void)lanes;
#endif
    return 0;
}

/* Returns the largest |y| of this lane's part, with MEASURES. */
INLINED float normalise(const struct call *call, const struct segment *segment, struct lanes *lanes,
                        local struct group_memory *in_local) {
    struct memory memory;
    memory.in_local = in_local;
#if REMEMBERS_BITS
    memory.kept = 0;
#endif
    struct moments moments = {0, 0, 0, 0, 0, 0};
    const real origin = origin_of(call, segment);
    take_moments(call, segment, &memory, &moments);
    const struct statistics statistics = statistics_over_lanes(call, &moments, origin, lanes);
    const float amax = PRESENT(Y_DTYPE) ? put_segment(call, segment, statistics, &memory, lanes) : 0;
    join_lanes();
    save_statistics(call, segment, statistics);
    return amax;
}

#endif
