/* A compensated sum, which keeps the rounding errors of its additions: Kahan 1965. */
#ifndef COMPENSATED_SUM_H
#define COMPENSATED_SUM_H

#include "common/vector.h"

struct compensated_sum {
    real sum, lost;
};

static inline void compensated_sum_add(struct compensated_sum *total, const real term) {
    const real corrected = term - total->lost, sum = total->sum + corrected;
    total->lost = (sum - total->sum) - corrected;
    total->sum = sum;
}

#endif
