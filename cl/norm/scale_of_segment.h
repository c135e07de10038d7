/* What a norm divides a segment by: the root of its variance or of its mean square, or with L2_NORM its length. rstd is the
 * reciprocal of that number. */
#ifndef SCALE_OF_SEGMENT_H
#define SCALE_OF_SEGMENT_H

#include "common/dtype.h"
#include "common/enums.h"

/* The number that makes a mean of a sum over the segment. */
#define DIVISOR (NORM == L2_NORM ? (real)1 : (real)GROUP_SIZE)

#if FLOORED /* eps is the least length */

static inline real rstd_of_floor(const real eps) {
    return (real)1 / eps;
}

/* A NaN is not below the floor. */
static inline real rstd_of(const real squares, const real eps) {
    const real length = sqrt(squares);
    return length < eps ? rstd_of_floor(eps) : (real)1 / length;
}

static inline bool is_floor(const real rstd, const real eps) {
    return rstd == rstd_of_floor(eps);
}

#else

/* squares: Σ(s − mean)² over the segment. */
static inline real rstd_of(const real squares, const real eps) {
    return (real)1 / sqrt(squares / DIVISOR + eps);
}

static inline bool is_floor(const real rstd, const real eps) {
    (void)rstd, (void)eps;
    return false;
}

#endif

/* The number of a segment in memory: rstd, or with L2_NORM the length, which is exactly eps on the floor. */
static inline real saved_of(const real rstd, const real eps) {
    return NORM != L2_NORM ? rstd : is_floor(rstd, eps) ? eps : (real)1 / rstd;
}

static inline real rstd_of_saved(const real saved) {
    return NORM == L2_NORM ? (real)1 / saved : saved;
}

#endif
