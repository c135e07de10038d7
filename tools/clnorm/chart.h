/* A picture of measurements: a panel for each operation, with GB/s over shapes, a line for each dtype and the speed of its
 * copies beside it. */
#ifndef CHART_H
#define CHART_H

#include <stdio.h>

#include "bench_job.h"

struct chart_point {
    const char *operation; /* borrowed, as long as the chart */
    clnorm_dtype dtype;
    bool unfused; /* in separate calls */
    struct bench_shape shape;
    double gb_s, limit_gb_s; /* of the operation's least traffic; of the copy of as many bytes */
};

struct chart {
    struct chart_point *points;
    size_t count, capacity;
};

bool chart_add(struct chart *chart, const struct chart_point *point, struct fault *fault);
void chart_free(struct chart *chart);

/* Writes SVG, which is readable on a light and on a dark ground. Operations, dtypes and shapes stand in the order in which
 * they first appear; every panel has the same scale. */
void chart_write(const struct chart *chart, const char *title, FILE *stream);

#endif
