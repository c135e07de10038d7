/* A chart of a sweep. Each operation has a panel of the time over the copy's time, against the width. */
#ifndef SWEEP_CHART_H
#define SWEEP_CHART_H

#include "chart.h"

/* Writes SVG. The points of an operation and a dtype must follow each other, in the order of their widths. */
void sweep_chart_write(const struct chart *chart, const char *title, FILE *stream);

#endif
