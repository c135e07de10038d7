/* The first read of a segment, or of one of its CHUNKS, that is read twice: for its statistics, UNROLL vectors of a lane at
 * a time. LOCAL_VECTORS vectors of each lane are kept in local memory, and read once. */
#ifndef NORM_REREAD_MOMENTS_H
#define NORM_REREAD_MOMENTS_H

#include "common/chunk.h"
#include "norm/norm_remembered.h"

/* Computes a vector of s for the first time. */
INLINED held_t make_s(const struct call *call, const struct segment *segment, const index_t v, const struct parts *parts,
                      const intv kept, struct memory *memory) {
    const held_t s = s_of(segment, parts, kept);
    if (READS_S)
        put_beside(call, segment, v, widen_s(segment, s));
    else
        remember(memory, v, kept);
#if LOCAL_VECTORS
    if (is_in_local(v))
        memory->in_local->s[v] = s;
#endif
    return s;
}

#define FIRST_HINT (READS_S ? LOAD_LAST : LOCAL_VECTORS ? LOAD_PLAIN : LOAD_FIRST)

/* The number of a lane's whole vectors; with LEADS of all its vectors. */
static inline index_t own_vectors(const struct segment *segment) {
    return segment->active ? share_of_lane(segment->lane, vectors_of_chunk(segment->chunk, segment->lead)) : 0;
}

static inline bool owns_tail(const struct segment *segment) {
    return has_tail(segment->chunk) && segment->active &&
           segment->lane == vectors_of_chunk(segment->chunk, segment->lead) % LANES;
}

/* The i-th vector of a lane. */
static inline index_t vector_of(const struct segment *segment, const index_t i) {
    return vector_of_lane(segment->chunk, segment->lane, i);
}

/* On CPUs the loops over the vectors between the first and the last know that these are whole. */
#define SPLITS_EDGES (LEADS && LANES == 1 && ON_CPU)

#if SPLITS_EDGES

static inline struct segment inner_of(const struct segment *segment) {
    struct segment inner = *segment;
    inner.lead |= NOT_FIRST | NOT_LAST;
    return inner;
}

/* The number of elements in the work-item's vectors from one to end. */
static inline uint elements_of_run(const struct segment *segment, const index_t from, const index_t end) {
    return (uint)elements_from(vector_of(segment, from), end - from, segment->lead);
}

#endif

#define CHUNK_HELD ((CHUNK_VECTORS + LANES - 1) / LANES)
#define MOST_IN_RUN (CHUNK_HELD < RUN ? CHUNK_HELD : RUN)

/* Takes count vectors of a run. before: 0, or CHAINS if the run has taken some, so that it keeps its pivot. The number of
 * iterations is a constant, so that all loads can be in flight at once. */
INLINED void take_vectors(const struct call *call, const struct segment *segment, const index_t first, const uint count,
                          const uint before, struct memory *memory, struct run *run) {
#if LANES > 1
#pragma unroll
#endif
    for (uint i = 0; i < MOST_IN_RUN; i += UNROLL) {
        const struct part whole = {0, VEC};
        struct parts block[UNROLL];
        intv kept[UNROLL] = {0};
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            if (i + j < count)
                load_parts(segment, vector_of(segment, first + i + j), call->aligned, FIRST_HINT, &block[j]);
        if (DROPOUT)
            kept_in_block(call, segment, vector_of(segment, first + i), UNROLL, kept);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            if (i + j < count) {
                const index_t v = vector_of(segment, first + i + j);
                take(run, before + i + j, widen_s(segment, make_s(call, segment, v, &block[j], kept[j], memory)),
                     LEADS ? own_part(v, segment->lead) : whole);
            }
    }
}

#if SPLITS_EDGES

/* moments: 0 at first. The first vector belongs to the first run, and the last one to the last. */
INLINED void take_moments(const struct call *call, const struct segment *segment, struct memory *memory,
                          struct moments *moments) {
    const index_t own = own_vectors(segment);
    if (own == 0)
        return;
    const struct segment inner = inner_of(segment);
    const index_t last = own - 1;
    index_t i = min(last, (index_t)RUN), ended = 0; /* ended: vectors of the runs before this one */
    struct run run;
    start_run(&run);
    take_vectors(call, segment, 0, 1, 0, memory, &run);
    if (i > 1)
        take_vectors(call, &inner, 1, (uint)(i - 1), CHAINS, memory, &run);
    for (; i < last; i += min(last - i, (index_t)RUN)) {
        end_run(&run, moments, elements_of_run(segment, ended, i));
        ended = i;
        take_vectors(call, &inner, i, (uint)min(last - i, (index_t)RUN), 0, memory, &run);
    }
    if (last > 0)
        take_vectors(call, segment, last, 1, CHAINS, memory, &run);
    end_run(&run, moments, elements_of_run(segment, ended, last + 1));
}

#else

/* moments: 0 at first. */
INLINED void take_moments(const struct call *call, const struct segment *segment, struct memory *memory,
                          struct moments *moments) {
    if (!segment->active) /* without this return, LLVM 18, and so PoCL 6.0, aborts */
        return;
    struct run run;
    start_run(&run);
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + RUN < own; i += RUN) {
        take_vectors(call, segment, i, RUN, 0, memory, &run);
        end_run(&run, moments, RUN * VEC - (vector_of(segment, i) == 0 ? segment->lead : 0));
    }
    const uint rest = (uint)(own - i);
    take_vectors(call, segment, i, rest, 0, memory, &run);
    if (owns_tail(segment)) {
        struct parts parts;
        load_parts(segment, WHOLE_VECTORS, call->aligned, FIRST_HINT, &parts);
        const intv kept = kept_in(call, segment, WHOLE_VECTORS);
        const struct part tail = {0, TAIL};
        take(&run, rest, widen_s(segment, make_s(call, segment, WHOLE_VECTORS, &parts, kept, memory)), tail);
    }
    const index_t elements = elements_from(vector_of(segment, i), rest + owns_tail(segment), segment->lead);
    if (elements > 0)
        end_run(&run, moments, (uint)elements);
}

#endif

#endif
