/* Compensated sums, which keep the rounding errors of their additions: Kahan 1965. */
#ifndef KEPT_SUM_H
#define KEPT_SUM_H

#include "common/vector.h"

#define DEFINE_KEPT_SUM(name, type)                                            \
    struct name {                                                              \
        type sum, lost;                                                        \
    };                                                                         \
    static inline void JOIN(name, _add)(struct name * kept, const type term) { \
        const type corrected = term - kept->lost, sum = kept->sum + corrected; \
        kept->lost = (sum - kept->sum) - corrected;                            \
        kept->sum = sum;                                                       \
    }

DEFINE_KEPT_SUM(kept_sum, real)
DEFINE_KEPT_SUM(kept_sums, realv) /* of each element of a vector */

#endif
