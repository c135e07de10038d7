/* What the pictures of the bench share. */
#ifndef SVG_H
#define SVG_H

#include <stdio.h>

#include <clnorm/base.h>

/* The head of a picture, readable on a light and on a dark ground, and its title. */
void svg_begin(int width, int height, int left, const char *title, FILE *stream);
void svg_end(FILE *stream);

void svg_escaped(const char *text, FILE *stream);

const char *svg_colour(clnorm_dtype dtype);

/* An entry of the legend. kind: series, copy or unfused. Returns where the next entry begins. */
int svg_entry(int x, const char *kind, const char *colour, const char *text, FILE *stream);

#endif
