/* A chart of measurements. Each operation has a panel of GB/s over shapes, with a line for each dtype and marks for its
 * copies. */
#ifndef CHART_H
#define CHART_H

#include <stdio.h>

#include "bench_job.h"

struct chart_point {
    const char *operation; /* borrowed for the chart's lifetime */
    clnorm_dtype dtype;
    bool unfused; /* in separate calls */
    struct bench_shape shape;
    double gb_s, limit_gb_s; /* of the operation's least traffic; of a copy of the same bytes */
};

struct chart {
    struct chart_point *points;
    size_t count, capacity;
};

bool chart_add(struct chart *chart, const struct chart_point *point, struct fault *fault);
void chart_free(struct chart *chart);

/* Writes SVG for light and dark backgrounds. Operations, dtypes and shapes stand in the order of their first points; every
 * panel has the same scale. */
void chart_write(const struct chart *chart, const char *title, FILE *stream);

#endif
