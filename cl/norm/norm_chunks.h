/* Moments of one of the CHUNKS of a segment. */
#ifndef NORM_CHUNKS_H
#define NORM_CHUNKS_H

#include "norm/norm_reread.h"

static inline real elements_of(const index_t chunk) {
    return (real)(whole_vectors_of(chunk) * VEC + (has_tail(chunk) ? TAIL : 0));
}

/* The number relative to which the lanes' means are added up, like origin_of. */
static inline real origin_of_chunk(const struct call *call, const struct segment *segment) {
#if FROM_ORIGIN
    const index_t begin = begin_of(segment->chunk);
    if (segment->active && begin < VECTORS) {
        struct parts parts;
        load_parts(segment, begin, call->aligned, LOAD_PLAIN, &parts);
        return pivot_of(widen_s(segment, s_of(segment, &parts, 0)), own_part(begin, segment->lead));
    }
#endif
    (void)call, (void)segment;
    return 0;
}

/* The moments of a chunk, over all lanes. */
INLINED struct spread spread_of_chunk(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    const real origin = origin_of_chunk(call, segment);
    struct memory memory = {0};
    struct moments own = {0, 0, 0, 0};
    take_moments(call, segment, &memory, &own);
    return merge_lanes(&own, origin, fmax(elements_of(segment->chunk), (real)1), lanes);
}

#endif
