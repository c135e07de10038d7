/* Tickets: the order in which the work-groups of a launch take its work. A work-group's first ticket is its id. It draws
 * the others from a counter, so that fast work-groups take more, and all of them stay close together.
 *
 * Nothing clears the counter: the first work-group posts where it begins. A work-group that does not learn it in so many
 * looks has no more work for now: it leaves that to the others, of which at least the first one knows. */
#ifndef TICKETS_H
#define TICKETS_H

#include "common/exchange_sizes.h"
#include "common/message.h"
#include "common/vector.h"

/* Where tickets are drawn. */
struct desk {
    volatile global message_t *at; /* [HEADER_MESSAGES]: where the counter begins, and the counter */
    ulong launch;                  /* its number */
    local uint *begin;             /* [2]: where the counter begins, and 1 if that is known */
};

#define NO_TICKET 0xffffffffu
#define FIRST_MESSAGE HEADER_MESSAGES

static inline volatile global uint *counter_of(const struct desk *desk) {
    return (volatile global uint *)(desk->at + 1);
}

static inline void know_begin(const struct desk *desk, const uint begin) {
    desk->begin[0] = begin;
    desk->begin[1] = 1;
}

/* begin: local memory for the first work-item, [2]. */
INLINED struct desk open_desk(volatile global message_t *at, const ulong launch, local uint *begin) {
    const struct desk desk = {at, launch, begin};
    if (get_local_id(0) == 0) {
        begin[1] = 0;
        if (get_group_id(0) == 0) {
            know_begin(&desk, *counter_of(&desk));
            *desk.at = message_of((uint2)(begin[0], 0), launch);
        }
    }
    return desk;
}

/* Draws a ticket, in the first work-item. */
INLINED uint draw_ticket(const struct desk *desk, const uint most_looks) {
    for (uint looks = 0; looks < most_looks && desk->begin[1] == 0; looks++) {
        const message_t message = *desk->at;
        if (has_arrived(message, desk->launch))
            know_begin(desk, words_of(message).x);
    }
    if (desk->begin[1] == 0)
        return NO_TICKET;
    return (uint)get_num_groups(0) + (atomic_inc(counter_of(desk)) - desk->begin[0]);
}

static inline uint draw_first(const struct desk *desk) {
    (void)desk;
    return (uint)get_group_id(0);
}

#endif
