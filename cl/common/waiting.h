/* How work-groups of a launch wait for each other's numbers. */
#ifndef WAITING_H
#define WAITING_H

/* Looks for a message before a work-group computes its numbers itself: no wait is without bound. */
#define MOST_LOOKS 4096

/* Whether this launch only posts. Where an output overlaps an input, such a launch comes first, as the inputs of others can
 * be read only until they are overwritten (src/plan/plan_enqueue.c). */
static inline bool only_posts(void) {
    return get_global_offset(0) > 0;
}

#endif
