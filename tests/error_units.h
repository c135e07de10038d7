/* Error bounds of the reference in units of its arithmetic, to be worked out by hand. */
#ifndef TEST_ERROR_UNITS_H
#define TEST_ERROR_UNITS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/reference.h"

static const double unit = 0x1p-30;

/* expected: in units. */
static inline void assert_units(double error, double expected) {
    if (!(fabs(error / unit - expected) <= 1e-6 * fmax(1, expected)))
        fail_msg("%.12g units are not %.12g", error / unit, expected);
}

/* 2 roundings of statistics, 3 of other sums, 16 units for a function. */
static const struct ref_arithmetic rounded = {.unit = unit, .function = 16, .statistics = 2, .shift = 4, .sum = 3};
/* Nothing is rounded, and numbers up to 1 are dropped. */
static const struct ref_arithmetic dropping = {.tiny = 1};

#endif
