/* Moments of one of the CHUNKS of a segment. */
#ifndef NORM_CHUNKS_H
#define NORM_CHUNKS_H

#include "norm/norm_reread.h"

/* The moments of a chunk, over all lanes. */
INLINED struct spread spread_of_chunk(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    const real origin = origin_of(call, segment);
    struct memory memory = {0};
    struct moments own = {0, 0, 0, 0, 0, 0};
    take_moments(call, segment, &memory, &own);
    return merge_lanes(&own, origin, fmax((real)elements_of_chunk(segment->chunk, segment->lead), (real)1), lanes);
}

#endif
