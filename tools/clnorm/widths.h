/* The widths of a sweep: hidden sizes of models, head dimensions, powers of two and odd ones, or a list. */
#ifndef WIDTHS_H
#define WIDTHS_H

#include <stddef.h>
#include <stdint.h>

#include <clnorm/base.h>

#include "fault.h"

enum { MOST_WIDTHS = 128 };

struct widths {
    uint64_t width[MOST_WIDTHS];
    size_t count;
};

struct widths widths_usual(void);

/* Reads numbers separated by commas; K and M are powers of 1024. option: the name for the error. */
bool numbers_read(const char *text, const char *option, uint64_t *numbers, size_t most, size_t *count, struct fault *fault);

/* Reads "grid", which is the usual ones, or a list. They are in ascending order, each once. */
bool widths_read(const char *text, const char *option, struct widths *widths, struct fault *fault);

#endif
