/* What the kernels of group norm's backward share: a vector's way from x and dy to the sums of its channel and to dx. */
#ifndef GROUP_NORM_BACKWARD_H
#define GROUP_NORM_BACKWARD_H

#include "norm/group_norm.h"
#include "norm/running_sum.h"

/* What a vector's channels have: one channel, or as many as it has elements. */
struct channels {
    realv mean, rstd, weight, bias;
};

/* Σdn and Σ(dn · (x − mean)). */
struct channel_sums {
    struct running_sum of_dn, of_product;
};

static inline void channel_sums_start(struct channel_sums *sums) {
    running_sum_start(&sums->of_dn);
    running_sum_start(&sums->of_product);
}

/* dn = dy · activation′(n) */
static inline realv dn_of(const struct channels *channels, const realv centre, const realv dy) {
#if ACTIVATION
    return dy * activation_slope(centre * channels->rstd * channels->weight + channels->bias);
#else
    (void)channels, (void)centre;
    return dy;
#endif
}

/* centre: x − mean. Past the end of a row x and dy are zeros, and so is dn. */
static inline void channel_sums_take(struct channel_sums *sums, const realv centre, const realv dn) {
    sums->of_dn.run[0] += dn;
    sums->of_product.run[0] += dn * centre;
    running_sum_end_block(&sums->of_dn);
    running_sum_end_block(&sums->of_product);
}

/* x and dy of a vector, as they lie in memory. */
struct packed_pair {
    PACKED(X_DTYPE) x;
    PACKED(DY_DTYPE) dy;
};

#define LOAD_PAIR(call, sample, place, count)                              \
    ((struct packed_pair){LOAD_OF(call, X_DTYPE, x, sample, place, count), \
                          LOAD_OF(call, DY_DTYPE, dy, sample, place, count)})

/* Their x − mean and dn. */
struct point {
    realv centre, dn;
};

static inline struct point point_of(const struct channels *channels, const struct packed_pair *packed) {
    struct point point;
    point.centre = WIDEN(X_DTYPE)(packed->x) - channels->mean;
    point.dn = dn_of(channels, point.centre, WIDEN(DY_DTYPE)(packed->dy));
    return point;
}

/* slopes: as group_norm_slopes makes them. */
static inline realv dx_of(const struct channels *channels, const realv slopes[2], const realv centre, const realv dn) {
    return channels->rstd * channels->weight * dn - slopes[0] - centre * channels->rstd * slopes[1];
}

/* Of one channel. */
#define CHANNELS_AT(call, group, channel) \
    { (call)->mean[group], (call)->rstd[group], WEIGHT_OF(call, channel), BIAS_OF(call, channel) }

#endif
