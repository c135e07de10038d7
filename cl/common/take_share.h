/* The loop over a launch's segments, of which a work-group takes SEGMENTS at a time with LANES work-items each. The
 * including file defines struct call, and a function that every work-item of the work-group calls:
 *
 *     take_segment(call, index, active, lanes)
 *
 * index: of the segment; active: false past the last one, where nothing is read or written. */
#ifndef TAKE_SHARE_H
#define TAKE_SHARE_H

#include "common/lanes.h"

/* This work-group's segments. */
INLINED void take_share(const struct call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = first + i * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const ulong own = index + get_local_id(0) / LANES;
        take_segment(call, own, SEGMENTS == 1 || own < call->work, &lanes);
    }
    last_barrier();
}

#endif
