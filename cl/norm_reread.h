/* A segment, or one of the CHUNKS that it is taken in, is read twice, for its statistics and to be normalised, UNROLL
 * vectors of a lane at a time; and once more between the two for a row's own scale. Caches are asked to keep it from the
 * first time to the last, and no longer: registers stay free for more work-groups, and what the L2 cache has of the output
 * need not be written out while the kernel runs. */
#ifndef NORM_REREAD_H
#define NORM_REREAD_H

#include "norm_statistics.h"

#if WEIGHTS == WEIGHTS_KEPT
#define WEIGHTS_HINT LOAD_FIRST
#else
#define WEIGHTS_HINT LOAD_PLAIN
#endif

/* What dropout keeps of a lane's vectors: drawn when they are read first, where a work-item has room for that. */
#define REMEMBERS (DROPOUT && CHUNKS == 1 && LANES > 1 && HELD * VEC <= 64)

struct memory {
    ulong kept; /* VEC bits for each of the lane's vectors */
};

static inline held_t read_first(const struct call *call, const struct segment *segment, const index_t v,
                                struct memory *memory) {
    const uint kept = kept_in(call, segment, v);
    if (REMEMBERS)
        memory->kept |= (ulong)kept << v / LANES * VEC % 64;
    return load_s(segment, v, kept, call->aligned, LOAD_FIRST);
}

static inline held_t read_again(const struct call *call, const struct segment *segment, const index_t v,
                                const struct memory *memory, const enum load_hint hint) {
    const uint kept = REMEMBERS ? (uint)(memory->kept >> v / LANES * VEC % 64) : kept_in(call, segment, v);
    return load_s(segment, v, kept, call->aligned, hint);
}

/* Vectors of every chunk but the last ones, which may have fewer or none; the first vector of one; its whole vectors. */
#define CHUNK_VECTORS ((VECTORS + CHUNKS - 1) / CHUNKS)

static inline index_t begin_of(const index_t chunk) {
    return CHUNKS == 1 ? 0 : chunk * CHUNK_VECTORS;
}

static inline index_t whole_vectors_of(const index_t chunk) {
    const index_t begin = begin_of(chunk);
    if (CHUNKS == 1 || begin + CHUNK_VECTORS <= WHOLE_VECTORS)
        return CHUNKS == 1 ? WHOLE_VECTORS : CHUNK_VECTORS;
    return begin < WHOLE_VECTORS ? WHOLE_VECTORS - begin : 0;
}

/* Whether the partly filled vector is in it: behind its whole ones. */
static inline bool has_tail(const index_t chunk) {
#if CHUNKS == 1
    (void)chunk;
    return TAIL != 0;
#else
    const index_t begin = begin_of(chunk);
    return TAIL != 0 && begin <= WHOLE_VECTORS && WHOLE_VECTORS < begin + CHUNK_VECTORS;
#endif
}

/* A lane's whole vectors. */
static inline index_t own_vectors(const struct segment *segment) {
    const index_t whole = whole_vectors_of(segment->chunk);
    return segment->active ? whole / LANES + (segment->lane < whole % LANES) : 0;
}

static inline bool owns_tail(const struct segment *segment) {
    return has_tail(segment->chunk) && segment->active && segment->lane == whole_vectors_of(segment->chunk) % LANES;
}

/* The i-th vector of a lane. */
static inline index_t vector_of(const struct segment *segment, const index_t i) {
    return begin_of(segment->chunk) + segment->lane + i * LANES;
}

#define CHUNK_HELD ((CHUNK_VECTORS + LANES - 1) / LANES)
#define MOST_IN_RUN (CHUNK_HELD < RUN ? CHUNK_HELD : RUN)

/* A run of count vectors. The number of turns is a constant, so that all loads can be under way at once. */
static inline void take_vectors(const struct call *call, const struct segment *segment, const index_t first,
                                const uint count, struct memory *memory, struct run *run) {
#if LANES > 1
#pragma unroll
#endif
    for (uint i = 0; i < MOST_IN_RUN; i += UNROLL) {
        held_t block[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            if (i + j < count)
                block[j] = read_first(call, segment, vector_of(segment, first + i + j), memory);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            if (i + j < count)
                take(run, i + j, widen_s(block[j]), true);
    }
}

/* moments: 0 at first. */
static inline void take_moments(const struct call *call, const struct segment *segment, struct memory *memory,
                                struct moments *moments) {
    struct run run;
    start_run(&run);
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + RUN < own; i += RUN) {
        take_vectors(call, segment, i, RUN, memory, &run);
        end_run(&run, moments, RUN * VEC);
    }
    const uint rest = (uint)(own - i);
    take_vectors(call, segment, i, rest, memory, &run);
    if (owns_tail(segment))
        take(&run, rest, widen_s(read_first(call, segment, WHOLE_VECTORS, memory)), false);
    const uint elements = rest * VEC + (owns_tail(segment) ? TAIL : 0);
    if (elements > 0)
        end_run(&run, moments, elements);
}

/* Where the next segment of a CPU's work-item begins, from this one on. */
#define NEXT(stride) (GROUPS == 1 ? (stride) : GROUP_SIZE)

/* On PoCL, to ask for the next segment while this one is written made the whole kernel 1.14 to 1.27 times as fast. Chunks
 * have their work-groups side by side. */
static inline void ask_for_next(const struct call *call, const struct segment *segment, const index_t v) {
    if (CHUNKS > 1)
        return;
    ask_to_read(segment->x + NEXT(call->x_stride) + v * VEC);
    ask_to_write(segment->y + NEXT(call->y_stride) + v * VEC);
}

/* What a lane does with its vectors when it reads them again: puts them, or takes magnitudes of y. */
struct use {
    struct statistics statistics;
    const struct memory *memory;
    float scale;       /* of an 8-bit y */
    floatv magnitudes; /* the largest so far */
};

static inline void use_vector(const struct call *call, const struct segment *segment, const index_t v, const held_t held,
                              const bool measure, struct use *use) {
    struct affine affine;
    load_affine(segment, v, call->aligned, WEIGHTS_HINT, &affine);
#if MEASURED
    if (measure) {
        use->magnitudes = with_magnitudes(use->magnitudes, y_of(call, widen_s(held), &affine, use->statistics), v);
        return;
    }
#endif
    put_vector(call, segment, v, widen_s(held), &affine, use->statistics, use->scale);
}

static inline void use_vectors(const struct call *call, const struct segment *segment, const bool measure,
                               struct use *use) {
    const enum load_hint hint = measure ? LOAD_FIRST : LOAD_LAST;
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + UNROLL <= own; i += UNROLL) {
        held_t s[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            s[j] = read_again(call, segment, vector_of(segment, i + j), use->memory, hint);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const index_t v = vector_of(segment, i + j);
            use_vector(call, segment, v, s[j], measure, use);
            if (!measure)
                ask_for_next(call, segment, v);
        }
    }
    for (; i < own + owns_tail(segment); i++) {
        const index_t v = vector_of(segment, i);
        use_vector(call, segment, v, read_again(call, segment, v, use->memory, hint), measure, use);
    }
}

#if MEASURED && SCALING == SCALING_GROUP

#define BATCH (BLOCK < UNROLL ? UNROLL / BLOCK * BLOCK : BLOCK) /* vectors of a lane that y is held of at once */

/* The number of turns is the same in every lane, as lanes wait for each other in each. */
INLINED void put_groups(const struct call *call, const struct segment *segment, const struct statistics statistics,
                        const struct memory *memory, struct lanes *lanes) {
    for (index_t i = 0; i < HELD; i += BATCH) {
        held_t s[BATCH];
        realv y[BATCH];
#pragma unroll
        for (uint j = 0; j < BATCH; j++)
            if (has_vector(segment, i + j))
                s[j] = read_again(call, segment, segment->lane + (i + j) * LANES, memory, LOAD_LAST);
#pragma unroll
        for (uint j = 0; j < BATCH; j++) {
            y[j] = 0;
            if (!has_vector(segment, i + j))
                continue;
            const index_t v = segment->lane + (i + j) * LANES;
            struct affine affine;
            load_affine(segment, v, call->aligned, WEIGHTS_HINT, &affine);
            put_beside(call, segment, v, widen_s(s[j]));
            y[j] = y_of(call, widen_s(s[j]), &affine, statistics);
            ask_for_next(call, segment, v);
        }
        put_measured(call, segment, lanes, i, y, BATCH);
    }
}

#endif

/* All that is written of a segment or a chunk, but for its statistics. */
INLINED void put_segment(const struct call *call, const struct segment *segment, const struct statistics statistics,
                         const struct memory *memory, struct lanes *lanes) {
#if MEASURED && SCALING == SCALING_GROUP
    put_groups(call, segment, statistics, memory, lanes);
#else
    struct use use = {statistics, memory, call->y_given, 0};
#if MEASURED
    use_vectors(call, segment, true, &use);
    use.scale = take_scale(call, segment, lanes, use.magnitudes, 0);
#endif
    use_vectors(call, segment, false, &use);
    (void)lanes;
#endif
}

INLINED void normalise(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    struct memory memory = {0};
    struct moments moments = {0, 0, 0, 0};
    const real origin = origin_of(call, segment);
    take_moments(call, segment, &memory, &moments);
    const struct statistics statistics = statistics_over_lanes(call, &moments, origin, lanes);
    if (PRESENT(Y_DTYPE))
        put_segment(call, segment, statistics, &memory, lanes);
    save_statistics(call, segment, statistics);
}

#endif
