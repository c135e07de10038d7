#include "sweep_chart.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "svg.h"

/* Lengths in SVG units. */
enum {
    PANELS = 2, /* beside each other */
    PANEL_WIDTH = 500,
    PANEL_HEIGHT = 250,
    MARGIN = 14,
    HEAD = 74, /* of the title and the legend */
    LEFT = 44, /* in a panel: of the axis of times */
    RIGHT = 486,
    TOP = 26,
    BOTTOM = 206, /* of the axis of widths */
    TICKS = 5     /* above the copy's time */
};

/* The scale of every panel. Widths are logarithmic; times are linear, with TICKS ticks above the copy's and 2 below. */
struct sweep_scale {
    double least, most; /* log2 of the widths */
    double tick;        /* of the time over the copy's; TICKS of them lie above 1 */
};

static double ratio_of(const struct chart_point *point) {
    return point->limit_gb_s / point->gb_s;
}

static struct sweep_scale scale_of(const struct chart *chart) {
    static const double ticks[] = {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50};
    enum { LAST = sizeof ticks / sizeof *ticks - 1 };
    struct sweep_scale scale = {INFINITY, -INFINITY, 0};
    double top = 1;
    for (size_t i = 0; i < chart->count; i++) {
        const double width = log2((double)chart->points[i].shape.cols);
        scale.least = fmin(scale.least, width);
        scale.most = fmax(scale.most, width);
        top = fmax(top, ratio_of(&chart->points[i]));
    }
    size_t tick = 0;
    while (tick < LAST && 1 + TICKS * ticks[tick] < top)
        tick++;
    scale.tick = ticks[tick];
    if (scale.most <= scale.least)
        scale.most = scale.least + 1;
    return scale;
}

static double place_of_ratio(const struct sweep_scale *scale, double ratio) {
    const double bottom = fmax(0, 1 - 2 * scale->tick), top = 1 + TICKS * scale->tick;
    return BOTTOM - (BOTTOM - TOP) * (ratio - bottom) / (top - bottom);
}

static double place_of_width(const struct sweep_scale *scale, double width) {
    return LEFT + 8 + (RIGHT - LEFT - 16) * (log2(width) - scale->least) / (scale->most - scale->least);
}

/* Draws a line for each tick, including the copy's, and labels every other power of two. */
static void draw_sweep_axes(const struct sweep_scale *scale, FILE *stream) {
    for (int i = -2; i <= TICKS; i++) {
        const double ratio = 1 + i * scale->tick, y = place_of_ratio(scale, ratio);
        if (ratio < 0)
            continue;
        fprintf(stream, "<line class=\"%s\"%s x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", i ? "grid" : "copy",
                i ? "" : " stroke=\"#6e7781\"", LEFT, y, RIGHT, y);
        fprintf(stream, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6, y + 4, ratio);
    }
    for (double width = exp2(ceil(scale->least)); log2(width) <= scale->most; width *= 4)
        fprintf(stream, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", place_of_width(scale, width),
                BOTTOM + 16, width);
}

static bool same_line(const struct chart_point *a, const struct chart_point *b) {
    return !strcmp(a->operation, b->operation) && a->dtype == b->dtype;
}

/* Draws the line whose first point is `first`, and a dot for each of its points. */
static void draw_line(const struct chart *chart, const struct sweep_scale *scale, size_t first, FILE *stream) {
    const struct chart_point *const points = chart->points;
    const char *const colour = svg_colour(points[first].dtype);
    fprintf(stream, "<polyline class=\"series\" stroke=\"%s\" points=\"", colour);
    for (size_t i = first; i < chart->count && same_line(&points[i], &points[first]); i++)
        fprintf(stream, "%.1f,%.1f ", place_of_width(scale, (double)points[i].shape.cols),
                place_of_ratio(scale, ratio_of(&points[i])));
    fputs("\"/>\n", stream);
    for (size_t i = first; i < chart->count && same_line(&points[i], &points[first]); i++)
        fprintf(stream,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"><title>%s %s %" PRIu64 "x%" PRIu64
                ": %.3g times the copy's time</title></circle>\n",
                place_of_width(scale, (double)points[i].shape.cols), place_of_ratio(scale, ratio_of(&points[i])), colour,
                points[i].operation, clnorm_dtype_name(points[i].dtype), points[i].shape.rows, points[i].shape.cols,
                ratio_of(&points[i]));
}

static bool begins(const struct chart *chart, size_t i, bool line) {
    const struct chart_point *const points = chart->points;
    return !i ||
           (line ? !same_line(&points[i], &points[i - 1]) : strcmp(points[i].operation, points[i - 1].operation) != 0);
}

static int count_panels(const struct chart *chart) {
    int count = 0;
    for (size_t i = 0; i < chart->count; i++)
        count += begins(chart, i, false);
    return count;
}

static void draw_sweep_legend(const struct chart *chart, FILE *stream) {
    int x = MARGIN + LEFT;
    for (size_t i = 0; i < chart->count && (!i || !begins(chart, i, false)); i++)
        if (begins(chart, i, true))
            x = svg_entry(x, "series", svg_colour(chart->points[i].dtype), clnorm_dtype_name(chart->points[i].dtype),
                          stream);
    x = svg_entry(x, "copy", "#6e7781", "copy of as many bytes", stream);
    fprintf(stream, "<text x=\"%d\" y=\"52\">time over the copy's, against the columns</text>\n", x);
}

void sweep_chart_write(const struct chart *chart, const char *title, FILE *stream) {
    const struct sweep_scale scale = scale_of(chart);
    const int rows = (count_panels(chart) + PANELS - 1) / PANELS;
    svg_begin(2 * MARGIN + PANELS * PANEL_WIDTH, HEAD + rows * PANEL_HEIGHT, MARGIN + LEFT, title, stream);
    draw_sweep_legend(chart, stream);
    int panel = -1;
    for (size_t i = 0; i < chart->count; i++) {
        if (begins(chart, i, false)) {
            panel++;
            fprintf(stream, "%s<g transform=\"translate(%d %d)\">\n<text class=\"name\" x=\"%d\" y=\"14\">%s</text>\n",
                    panel ? "</g>\n" : "", MARGIN + panel % PANELS * PANEL_WIDTH, HEAD + panel / PANELS * PANEL_HEIGHT,
                    LEFT, chart->points[i].operation);
            draw_sweep_axes(&scale, stream);
        }
        if (begins(chart, i, true))
            draw_line(chart, &scale, i, stream);
    }
    fputs(chart->count ? "</g>\n" : "", stream);
    svg_end(stream);
}
