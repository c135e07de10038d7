#include "verdict.h"

#include <math.h>
#include <stdbool.h>

static void keep_worst(struct verdict *verdict, uint64_t index, double error, double tolerance, double ratio, double actual,
                       double expected) {
    if (verdict->checked > 1 && !(ratio > verdict->ratio))
        return;
    verdict->index = index;
    verdict->error = error;
    verdict->tolerance = tolerance;
    verdict->ratio = ratio;
    verdict->actual = actual;
    verdict->expected = expected;
}

/* Values that are not finite have no distance: they are right or wrong. */
static bool same_special(double actual, double expected, double slack) {
    if (isinf(slack))
        return !isfinite(actual);
    return isnan(expected) ? isnan(actual) : actual == expected;
}

void verdict_add(struct verdict *verdict, const struct element *element, uint64_t index, double actual, double expected,
                 double slack) {
    verdict->checked++;
    if (!isfinite(expected) || isnan(actual)) {
        const bool right = !isfinite(expected) && same_special(actual, expected, slack);
        verdict->wrong += !right;
        keep_worst(verdict, index, right ? 0 : INFINITY, 0, right ? 0 : INFINITY, actual, expected);
        return;
    }
    /* Rounding is monotonic, so that a value within the slack is rounded to a value within these bounds. */
    const double low = element_round(element, expected - slack);
    const double high = element_round(element, expected + slack);
    const bool right = low <= actual && actual <= high;
    verdict->wrong += !right;
    const double error = actual == element_round(element, expected) ? 0 : fabs(actual - expected);
    const double tolerance = fmax(high - expected, expected - low);
    const double ratio = error > 0 ? error / tolerance : 0;
    keep_worst(verdict, index, error, tolerance, isnan(ratio) ? 1 : ratio, actual, expected);
}
