/* Checks of 8-bit outputs: codes and scales. */
#ifndef TEST_CODES_CHECK_H
#define TEST_CODES_CHECK_H

#include "fixture.h"

/* Bounds of the largest magnitude of some numbers. */
struct magnitude {
    double low, high;
};

/* Extends the bounds by a number y that may be off by error; ignores NaNs and infinities. */
void magnitude_add(struct magnitude *magnitude, double y, double error);

/* The value of the code of y / scale, where the quotient is off by roundings, 1 or -1, times the error of the division. */
double codes_value(clnorm_dtype codes, double y, double scale, double roundings);

/* Whether a scale fits the largest magnitude of its numbers; prints one that does not. */
bool codes_scale_is_right(clnorm_dtype codes, const char *name, const struct tensor *scales, uint64_t place,
                          struct magnitude magnitude);

#endif
