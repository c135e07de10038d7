/* Measured times, in microseconds. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stddef.h>

#include "fault.h"

struct samples {
    double *us;
    size_t count, capacity;
};

bool samples_add(struct samples *samples, double us, struct fault *fault);
void samples_free(struct samples *samples);

/* Both need at least one sample, and sort the samples. */
double samples_median(struct samples *samples);
double samples_least(struct samples *samples);

/* A monotonic clock. */
double clock_us(void);

#endif
