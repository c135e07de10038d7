/* The loop over the segments of channels first. The including file defines struct call, struct place, place_of() and
 * take_segment(). */
#ifndef GROUP_NORM_SEGMENTS_H
#define GROUP_NORM_SEGMENTS_H

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

#endif
