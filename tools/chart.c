#include "chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The picture's measures, in its own unit. */
enum {
    WIDTH = 960,
    LEFT = 70, /* of the axis of GB/s */
    RIGHT = 930,
    TOP = 50,
    BOTTOM = 410, /* of the axis of shapes */
    LEGEND = 500,
    LEGEND_COLUMNS = 3,
    LEGEND_WIDTH = 290,
    LEGEND_HEIGHT = 20
};

static const char style[] = "text { font: 13px sans-serif; fill: #24292f }\n"
                            ".title { font-size: 15px }\n"
                            ".axis { stroke: #6e7781 }\n"
                            ".grid { stroke: #6e7781; stroke-opacity: .25 }\n"
                            ".copy { fill: #6e7781; fill-opacity: .25; stroke: #6e7781 }\n"
                            ".series { fill: none; stroke-width: 2 }\n"
                            "@media (prefers-color-scheme: dark) { text { fill: #d0d7de } }\n";

static const char *const colours[] = {"#3b82f6", "#e4572e", "#2a9d4e", "#b5651d", "#9b5de5",
                                      "#d6409f", "#0f9fb0", "#c99a00", "#7a8b00", "#6b7fd7"};
enum { COLOURS = sizeof colours / sizeof *colours };

static const char *dash_of(clnorm_dtype dtype) {
    switch (dtype) {
    case CLNORM_BF16:
        return "7 4";
    case CLNORM_F16:
        return "2 3";
    case CLNORM_F64:
        return "9 3 2 3";
    default:
        return "none";
    }
}

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

/* ------------------------------------------------------------------------------------------------- what goes together */

static bool same_operation(const struct chart_point *a, const struct chart_point *b) {
    return !strcmp(a->operation, b->operation);
}

static bool same_series(const struct chart_point *a, const struct chart_point *b) {
    return same_operation(a, b) && a->dtype == b->dtype;
}

static bool same_shape(const struct chart_point *a, const struct chart_point *b) {
    return a->shape.rows == b->shape.rows && a->shape.cols == b->shape.cols;
}

typedef bool (*same_fn)(const struct chart_point *a, const struct chart_point *b);

/* No point before this one is the like of it. */
static bool is_first(const struct chart *chart, size_t i, same_fn same) {
    for (size_t k = 0; k < i; k++)
        if (same(&chart->points[k], &chart->points[i]))
            return false;
    return true;
}

/* Which of the different ones a point is. */
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

/* ------------------------------------------------------------------------------------------------------------- places */

/* A round step of which six or fewer reach the top. */
static double tick_of(const struct chart *chart) {
    static const double factors[] = {1, 2, 5, 10};
    double top = 1e-3;
    for (size_t i = 0; i < chart->count; i++)
        top = fmax(top, fmax(chart->points[i].gb_s, chart->points[i].limit_gb_s));
    const double unit = pow(10, floor(log10(top / 6)));
    size_t i = 0;
    while (i < 3 && factors[i] * unit * 6 < top)
        i++;
    return factors[i] * unit;
}

static double place_of_speed(double gb_s, double tick) {
    return BOTTOM - (BOTTOM - TOP) * gb_s / (6 * tick);
}

static double place_of_shape(size_t number, size_t shapes) {
    return LEFT + (RIGHT - LEFT) * ((double)number + 0.5) / (double)shapes;
}

/* ------------------------------------------------------------------------------------------------------------ drawing */

static void print_escaped(const char *text, FILE *stream) {
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        default:
            fputc(*text, stream);
        }
}

static void draw_axes(const struct chart *chart, double tick, size_t shapes, FILE *stream) {
    for (int i = 0; i <= 6; i++) {
        const double y = place_of_speed(i * tick, tick);
        fprintf(stream, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", i ? "grid" : "axis", LEFT, y,
                RIGHT, y);
        fprintf(stream, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4, i * tick);
    }
    fprintf(stream, "<line class=\"axis\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, TOP, LEFT, BOTTOM);
    fprintf(stream, "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">GB/s</text>\n",
            (TOP + BOTTOM) / 2);
    for (size_t i = 0; i < chart->count; i++)
        if (is_first(chart, i, same_shape))
            fprintf(stream,
                    "<text transform=\"translate(%.1f %d) rotate(-20)\" text-anchor=\"end\">%" PRIu64 "x%" PRIu64
                    "</text>\n",
                    place_of_shape(number_of(chart, i, same_shape), shapes) + 14, BOTTOM + 20, chart->points[i].shape.rows,
                    chart->points[i].shape.cols);
    fprintf(stream, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">rows x columns</text>\n", (LEFT + RIGHT) / 2,
            BOTTOM + 65);
}

/* The slowest, or fastest, copy of a shape. */
static double copy_of_shape(const struct chart *chart, size_t number, bool fastest) {
    double speed = fastest ? 0 : HUGE_VAL;
    for (size_t i = 0; i < chart->count; i++) {
        const double limit = chart->points[i].limit_gb_s;
        if (number_of(chart, i, same_shape) == number)
            speed = fastest ? fmax(speed, limit) : fmin(speed, limit);
    }
    return speed;
}

/* From the slowest to the fastest copy of each shape. */
static void draw_copies(const struct chart *chart, double tick, size_t shapes, FILE *stream) {
    fputs("<path class=\"copy\" d=\"", stream);
    for (size_t i = 0; i < shapes; i++)
        fprintf(stream, "%c%.1f %.1f ", i ? 'L' : 'M', place_of_shape(i, shapes),
                place_of_speed(copy_of_shape(chart, i, true), tick));
    for (size_t i = shapes; i-- > 0;)
        fprintf(stream, "L%.1f %.1f ", place_of_shape(i, shapes), place_of_speed(copy_of_shape(chart, i, false), tick));
    fputs("Z\"/>\n", stream);
}

/* The line of the series that a point is the first of, and a dot for each of its points. */
static void draw_series(const struct chart *chart, size_t first, double tick, size_t shapes, FILE *stream) {
    const struct chart_point *const points = chart->points;
    const char *const colour = colours[number_of(chart, first, same_operation) % COLOURS];
    fprintf(stream, "<polyline class=\"series\" stroke=\"%s\" stroke-dasharray=\"%s\" points=\"", colour,
            dash_of(points[first].dtype));
    for (size_t i = first; i < chart->count; i++)
        if (same_series(&points[i], &points[first]))
            fprintf(stream, "%.1f,%.1f ", place_of_shape(number_of(chart, i, same_shape), shapes),
                    place_of_speed(points[i].gb_s, tick));
    fputs("\"/>\n", stream);
    for (size_t i = first; i < chart->count; i++)
        if (same_series(&points[i], &points[first]))
            fprintf(stream,
                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s %s %" PRIu64 "x%" PRIu64
                    ": %.4g GB/s, the copy %.4g</title></circle>\n",
                    place_of_shape(number_of(chart, i, same_shape), shapes), place_of_speed(points[i].gb_s, tick), colour,
                    points[i].operation, clnorm_dtype_name(points[i].dtype), points[i].shape.rows, points[i].shape.cols,
                    points[i].gb_s, points[i].limit_gb_s);
}

/* Where the entry of this number is. */
static void place_of_entry(size_t number, int *x, int *y) {
    *x = LEFT + (int)(number % LEGEND_COLUMNS) * LEGEND_WIDTH;
    *y = LEGEND + (int)(number / LEGEND_COLUMNS) * LEGEND_HEIGHT;
}

static void draw_legend(const struct chart *chart, FILE *stream) {
    int x;
    int y;
    size_t number = 0;
    place_of_entry(number++, &x, &y);
    fprintf(stream, "<rect class=\"copy\" x=\"%d\" y=\"%d\" width=\"30\" height=\"8\"/>\n", x, y - 4);
    fprintf(stream, "<text x=\"%d\" y=\"%d\">copies of the same bytes</text>\n", x + 38, y + 4);
    for (size_t i = 0; i < chart->count; i++) {
        const struct chart_point *const point = &chart->points[i];
        if (!is_first(chart, i, same_series))
            continue;
        place_of_entry(number++, &x, &y);
        fprintf(stream,
                "<line class=\"series\" stroke=\"%s\" stroke-dasharray=\"%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n",
                colours[number_of(chart, i, same_operation) % COLOURS], dash_of(point->dtype), x, y, x + 30, y);
        fprintf(stream, "<text x=\"%d\" y=\"%d\">%s %s</text>\n", x + 38, y + 4, point->operation,
                clnorm_dtype_name(point->dtype));
    }
}

void chart_write(const struct chart *chart, const char *title, FILE *stream) {
    const double tick = tick_of(chart);
    const size_t shapes = count_of(chart, same_shape);
    const size_t entries = count_of(chart, same_series) + 1;
    const int height = LEGEND + (int)((entries + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS) * LEGEND_HEIGHT;
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n<style>\n%s"
            "</style>\n<text class=\"title\" x=\"%d\" y=\"28\">",
            WIDTH, height, WIDTH, height, style, LEFT);
    print_escaped(title, stream);
    fputs("</text>\n", stream);
    draw_axes(chart, tick, shapes, stream);
    draw_copies(chart, tick, shapes, stream);
    for (size_t i = 0; i < chart->count; i++)
        if (is_first(chart, i, same_series))
            draw_series(chart, i, tick, shapes, stream);
    draw_legend(chart, stream);
    fputs("</svg>\n", stream);
}
