/* Outputs in 8 bits compared with what they should stand for. */
#ifndef TEST_CODES_CHECK_H
#define TEST_CODES_CHECK_H

#include "fixture.h"

/* What the largest magnitude of some numbers lies between. */
struct magnitude {
    double low, high;
};

/* Takes in one that may be off by error; what is not finite does not count. */
void magnitude_add(struct magnitude *magnitude, double y, double error);

/* What the code of y by a scale stands for, where the quotient is off by some roundings: 1 or -1 of them. */
double codes_value(clnorm_dtype codes, double y, double scale, double roundings);

/* Whether a scale is that of codes of numbers with this largest magnitude; prints it where it is not. */
bool codes_scale_is_right(clnorm_dtype codes, const char *name, const struct tensor *scales, uint64_t place,
                          struct magnitude magnitude);

#endif
