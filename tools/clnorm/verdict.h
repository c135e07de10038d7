/* The comparison of an output with its expected values. */
#ifndef VERDICT_H
#define VERDICT_H

#include "element.h"

struct verdict {
    uint64_t checked, wrong; /* elements */
    /* The element with the largest error over its own tolerance. */
    uint64_t index;
    double error, tolerance, ratio;
    double actual, expected;
};

/* Compares one element. slack: the error that the value may have before it is rounded to the output's element type. A NaN
 * is right only where a NaN is expected, and an infinity is expected exactly. An infinite slack means that infinities were
 * summed: then any value that is not finite is right where one is expected. */
void verdict_add(struct verdict *verdict, const struct element *element, uint64_t index, double actual, double expected,
                 double slack);

#endif
