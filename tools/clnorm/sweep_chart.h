/* A picture of a sweep: a panel for each operation, with the time over the copy's against the width. */
#ifndef SWEEP_CHART_H
#define SWEEP_CHART_H

#include "chart.h"

/* Writes SVG. Points stand in the order in which they were measured: of an operation and a dtype, the widths. */
void sweep_chart_write(const struct chart *chart, const char *title, FILE *stream);

#endif
