/* Compensated sums, which keep the rounding errors of their additions: Kahan 1965. */
#ifndef KEPT_SUM_H
#define KEPT_SUM_H

#include "common/vector.h"

struct kept_sum {
    real sum, lost;
};

static inline void kept_sum_add(struct kept_sum *kept, const real term) {
    const real corrected = term - kept->lost, sum = kept->sum + corrected;
    kept->lost = (sum - kept->sum) - corrected;
    kept->sum = sum;
}

/* A sum for each element of a vector. */
struct kept_sums {
    realv sum, lost;
};

static inline void kept_sums_add(struct kept_sums *kept, const realv term) {
    const realv corrected = term - kept->lost, sum = kept->sum + corrected;
    kept->lost = (sum - kept->sum) - corrected;
    kept->sum = sum;
}

#endif
