/* Parts of SVG that the charts share. */
#ifndef SVG_H
#define SVG_H

#include <stdio.h>

#include <clnorm/base.h>

/* Begins a picture for light and dark backgrounds, with its title. */
void svg_begin(int width, int height, int left, const char *title, FILE *stream);
void svg_end(FILE *stream);

void svg_escaped(const char *text, FILE *stream);

const char *svg_colour(clnorm_dtype dtype);

/* Writes an entry of the legend. kind: series, copy or unfused. Returns the x of the next entry. */
int svg_entry(int x, const char *kind, const char *colour, const char *text, FILE *stream);

#endif
