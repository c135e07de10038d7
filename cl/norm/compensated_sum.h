/* Compensated sums, which keep the rounding errors of their additions: Kahan 1965. */
#ifndef COMPENSATED_SUM_H
#define COMPENSATED_SUM_H

#include "common/vector.h"

#define DEFINE_COMPENSATED_SUM(name, type)                                       \
    struct name {                                                                \
        type sum, lost;                                                          \
    };                                                                           \
    static inline void JOIN(name, _add)(struct name * total, const type term) {  \
        const type corrected = term - total->lost, sum = total->sum + corrected; \
        total->lost = (sum - total->sum) - corrected;                            \
        total->sum = sum;                                                        \
    }

DEFINE_COMPENSATED_SUM(compensated_sum, real)
DEFINE_COMPENSATED_SUM(compensated_sums, realv) /* of each element of a vector */

#endif
