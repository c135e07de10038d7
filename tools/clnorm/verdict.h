/* How far an output is from what it should be. */
#ifndef VERDICT_H
#define VERDICT_H

#include "element.h"

struct verdict {
    uint64_t checked, wrong; /* elements */
    /* The element that is furthest off, measured by its own tolerance. */
    uint64_t index;
    double error, tolerance, ratio;
    double actual, expected;
};

/* Takes one element in. slack: how far the value may be off before it was rounded to the output's element type. Where a NaN
 * is expected only a NaN will do, where an infinity is expected only that one, and elsewhere no NaN does. Where the slack
 * is infinite, sums of infinities were in play, and anything that is not finite will do for anything that is not. */
void verdict_add(struct verdict *verdict, const struct element *element, uint64_t index, double actual, double expected,
                 double slack);

#endif
