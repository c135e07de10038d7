#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"

/* Lengths in SVG units. */
enum {
    PANELS = 3, /* beside each other */
    PANEL_WIDTH = 330,
    PANEL_HEIGHT = 260,
    MARGIN = 14,
    HEAD = 74, /* of the title and the legend */
    LEFT = 52, /* in a panel: of the axis of GB/s */
    RIGHT = 320,
    TOP = 26,
    BOTTOM = 196, /* of the axis of shapes */
    TICKS = 5
};

bool chart_add(struct chart *chart, const struct chart_point *point, struct fault *fault) {
    if (chart->count == chart->capacity) {
        const size_t capacity = chart->capacity ? 2 * chart->capacity : 64;
        struct chart_point *const grown = realloc(chart->points, capacity * sizeof *grown);
        if (!grown)
            return fault_set(fault, EXIT_FAILED, "out of memory for a picture of %zu points", capacity);
        chart->points = grown;
        chart->capacity = capacity;
    }
    chart->points[chart->count++] = *point;
    return true;
}

void chart_free(struct chart *chart) {
    free(chart->points);
    *chart = (struct chart){0};
}

/* ------------------------------------------------------------------------------------------------------------- series */

static bool same_operation(const struct chart_point *a, const struct chart_point *b) {
    return !strcmp(a->operation, b->operation);
}

static bool same_dtype(const struct chart_point *a, const struct chart_point *b) {
    return a->dtype == b->dtype;
}

static bool same_series(const struct chart_point *a, const struct chart_point *b) {
    return same_operation(a, b) && same_dtype(a, b) && a->unfused == b->unfused;
}

static bool same_shape(const struct chart_point *a, const struct chart_point *b) {
    return a->shape.rows == b->shape.rows && a->shape.cols == b->shape.cols && a->shape.positions == b->shape.positions &&
           a->shape.groups == b->shape.groups;
}

typedef bool (*same_fn)(const struct chart_point *a, const struct chart_point *b);

/* No point before this one equals it. */
static bool is_first(const struct chart *chart, size_t i, same_fn same) {
    for (size_t k = 0; k < i; k++)
        if (same(&chart->points[k], &chart->points[i]))
            return false;
    return true;
}

/* The index of a point among the distinct ones. */
static size_t number_of(const struct chart *chart, size_t i, same_fn same) {
    size_t number = 0;
    for (size_t k = 0; k < chart->count && !same(&chart->points[k], &chart->points[i]); k++)
        number += is_first(chart, k, same);
    return number;
}

static size_t count_of(const struct chart *chart, same_fn same) {
    size_t count = 0;
    for (size_t i = 0; i < chart->count; i++)
        count += is_first(chart, i, same);
    return count;
}

static bool has_unfused(const struct chart *chart) {
    for (size_t i = 0; i < chart->count; i++)
        if (chart->points[i].unfused)
            return true;
    return false;
}

/* -------------------------------------------------------------------------------------------------------- coordinates */

/* The scale of every panel. */
struct scale {
    double tick; /* GB/s */
    size_t shapes;
};

/* The least round step of which TICKS reach the highest speed. */
static double tick_of(const struct chart *chart) {
    static const double factors[] = {1, 2, 2.5, 5, 10};
    enum { LAST = sizeof factors / sizeof *factors - 1 };
    double top = 1e-3;
    for (size_t i = 0; i < chart->count; i++)
        top = fmax(top, fmax(chart->points[i].gb_s, chart->points[i].limit_gb_s));
    const double unit = pow(10, floor(log10(top / TICKS)));
    size_t i = 0;
    while (i < LAST && factors[i] * unit * TICKS < top)
        i++;
    return factors[i] * unit;
}

static double place_of_speed(const struct scale *scale, double gb_s) {
    return BOTTOM - (BOTTOM - TOP) * gb_s / (TICKS * scale->tick);
}

static double place_of_shape(const struct scale *scale, size_t number) {
    return LEFT + (RIGHT - LEFT) * ((double)number + 0.5) / (double)scale->shapes;
}

static double place_of_point(const struct chart *chart, const struct scale *scale, size_t i) {
    return place_of_shape(scale, number_of(chart, i, same_shape));
}

/* ------------------------------------------------------------------------------------------------------------ drawing */

static void draw_axes(const struct chart *chart, const struct scale *scale, FILE *stream) {
    for (int i = 0; i <= TICKS; i++) {
        const double y = place_of_speed(scale, i * scale->tick);
        fprintf(stream, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", i ? "grid" : "axis", LEFT, y,
                RIGHT, y);
        fprintf(stream, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6, y + 4, i * scale->tick);
    }
    char shape[BENCH_SHAPE_TEXT];
    fprintf(stream, "<line class=\"axis\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, TOP, LEFT, BOTTOM);
    for (size_t i = 0; i < chart->count; i++)
        if (is_first(chart, i, same_shape))
            fprintf(stream, "<text transform=\"translate(%.1f %d) rotate(-35)\" text-anchor=\"end\">%s</text>\n",
                    place_of_point(chart, scale, i) + 6, BOTTOM + 14, bench_shape_text(&chart->points[i].shape, shape));
}

/* A mark for the copy at each point of a series, and the line through them. */
static void draw_copies(const struct chart *chart, const struct scale *scale, size_t first, FILE *stream) {
    enum { MARK = 8 };
    const struct chart_point *const points = chart->points;
    fprintf(stream, "<path class=\"copy\" stroke=\"%s\" d=\"", svg_colour(points[first].dtype));
    for (size_t i = first; i < chart->count; i++)
        if (same_series(&points[i], &points[first]))
            fprintf(stream, "%c%.1f %.1f h%d ", i == first ? 'M' : 'L', place_of_point(chart, scale, i) - MARK / 2.0,
                    place_of_speed(scale, points[i].limit_gb_s), MARK);
    fputs("\"><title>the copy of as many bytes</title></path>\n", stream);
}

/* Draws the series whose first point is `first`: a line, and a dot for each point. */
static void draw_series(const struct chart *chart, const struct scale *scale, size_t first, FILE *stream) {
    const struct chart_point *const points = chart->points;
    const char *const colour = svg_colour(points[first].dtype);
    fprintf(stream, "<polyline class=\"%s\" stroke=\"%s\" points=\"", points[first].unfused ? "unfused" : "series", colour);
    for (size_t i = first; i < chart->count; i++)
        if (same_series(&points[i], &points[first]))
            fprintf(stream, "%.1f,%.1f ", place_of_point(chart, scale, i), place_of_speed(scale, points[i].gb_s));
    char shape[BENCH_SHAPE_TEXT];
    fputs("\"/>\n", stream);
    for (size_t i = first; i < chart->count; i++)
        if (same_series(&points[i], &points[first]))
            fprintf(stream,
                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"><title>%s%s %s %s"
                    ": %.4g GB/s, the copy %.4g</title></circle>\n",
                    place_of_point(chart, scale, i), place_of_speed(scale, points[i].gb_s), colour, points[i].operation,
                    points[i].unfused ? " in separate calls" : "", clnorm_dtype_name(points[i].dtype),
                    bench_shape_text(&points[i].shape, shape), points[i].gb_s, points[i].limit_gb_s);
}

/* Draws the panel of the operation whose first point is `first`. */
static void draw_panel(const struct chart *chart, const struct scale *scale, size_t first, FILE *stream) {
    const size_t number = number_of(chart, first, same_operation);
    fprintf(stream, "<g transform=\"translate(%d %d)\">\n<text class=\"name\" x=\"%d\" y=\"14\">",
            MARGIN + (int)(number % PANELS) * PANEL_WIDTH, HEAD + (int)(number / PANELS) * PANEL_HEIGHT, LEFT);
    svg_escaped(chart->points[first].operation, stream);
    fputs("</text>\n", stream);
    draw_axes(chart, scale, stream);
    for (size_t i = first; i < chart->count; i++)
        if (same_operation(&chart->points[i], &chart->points[first]) && is_first(chart, i, same_series)) {
            if (!chart->points[i].unfused)
                draw_copies(chart, scale, i, stream);
            draw_series(chart, scale, i, stream);
        }
    fputs("</g>\n", stream);
}

static void draw_legend(const struct chart *chart, FILE *stream) {
    int x = MARGIN + LEFT;
    for (size_t i = 0; i < chart->count; i++)
        if (is_first(chart, i, same_dtype))
            x = svg_entry(x, "series", svg_colour(chart->points[i].dtype), clnorm_dtype_name(chart->points[i].dtype),
                          stream);
    x = svg_entry(x, "copy", "#6e7781", "copy of as many bytes", stream);
    if (has_unfused(chart))
        x = svg_entry(x, "unfused", "#6e7781", "in separate calls", stream);
    fprintf(stream, "<text x=\"%d\" y=\"52\">GB/s of the least traffic, over rows x columns</text>\n", x);
}

void chart_write(const struct chart *chart, const char *title, FILE *stream) {
    const struct scale scale = {tick_of(chart), count_of(chart, same_shape)};
    const int rows = (int)((count_of(chart, same_operation) + PANELS - 1) / PANELS);
    const int width = 2 * MARGIN + PANELS * PANEL_WIDTH;
    const int height = HEAD + rows * PANEL_HEIGHT;
    svg_begin(width, height, MARGIN + LEFT, title, stream);
    draw_legend(chart, stream);
    for (size_t i = 0; i < chart->count; i++)
        if (is_first(chart, i, same_operation))
            draw_panel(chart, &scale, i, stream);
    svg_end(stream);
}
