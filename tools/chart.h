/* A picture of measurements: GB/s over shapes, a line for each operation and dtype, before the speeds of the copies. */
#ifndef CHART_H
#define CHART_H

#include <stdio.h>

#include "bench.h"

struct chart_point {
    const char *operation; /* borrowed, as long as the chart */
    clnorm_dtype dtype;
    struct bench_shape shape;
    double gb_s, limit_gb_s; /* of the operation, of the copy that is its limit */
};

struct chart {
    struct chart_point *points;
    size_t count, capacity;
};

bool chart_add(struct chart *chart, const struct chart_point *point, struct fault *fault);
void chart_free(struct chart *chart);

/* Writes SVG, which is readable on a light and on a dark ground. Operations, dtypes and shapes stand in the order in which
 * they first appear. */
void chart_write(const struct chart *chart, const char *title, FILE *stream);

#endif
