/* The words of the workspace by which the work-groups of a launch draw their work, where they exchange sums. */
#ifndef POSTERS_H
#define POSTERS_H

/* The first words, all 0 before the first launch: the numbers of tickets drawn in this launch and in one that only posts,
 * and 1 if there was one. Where an output overlaps an input, such a launch comes first, as the inputs of others can be read
 * only until they are overwritten (src/plan/plan_enqueue.c). */
enum { DRAWN, DRAWN_BY_POSTERS, ALL_POSTED };

static inline bool only_posts(void) {
    return get_global_offset(0) > 0;
}

#endif
