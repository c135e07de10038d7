/* The common part of the kernels of group norm's backward: from a vector of x and dy to the sums of its channels and to
 * dx. */
#ifndef GROUP_NORM_BACKWARD_H
#define GROUP_NORM_BACKWARD_H

#include "norm/group_norm.h"

/* The numbers of a vector's channels: of one channel, or of a channel for each element. */
struct channels {
    realv mean, rstd;
    realv scale, bias; /* scale: rstd · weight */
#if IS_FP8(X_DTYPE)
    realv x_scale; /* of all channels */
#endif
};

#if IS_FP8(X_DTYPE)
#define X_OF(channels, packed) (WIDEN(X_DTYPE)(packed) * (channels)->x_scale)
#define X_SCALE_MEMBER(call, sample) , X_SCALE_OF(call, sample)
#else
#define X_OF(channels, packed) WIDEN(X_DTYPE)(packed)
#define X_SCALE_MEMBER(call, sample)
#endif

/* A sum over vectors: of one channel, or of a channel for each element. */
#if IS_FIRST
typedef real total_t;
#define TOTAL(sum) sum_elements(sum)
#else
typedef realv total_t;
#define TOTAL(sum) (sum)
#endif

/* Σdn and Σ(dn · (x − mean)), of the current run and of the runs before it. No sum is one long chain of additions, whose
 * roundings would add up. */
struct channel_sums {
    realv dn, product;
    total_t of_dn, of_product;
};

#define RUN_VECTORS 16 /* vectors of a run */

static inline void channel_sums_start(struct channel_sums *sums) {
    sums->dn = sums->product = 0;
    sums->of_dn = sums->of_product = 0;
}

/* dn = dy · activation′(n) */
static inline realv dn_of(const struct channels *channels, const realv centre, const realv dy) {
#if ACTIVATION
    return dy * activation_slope(centre * channels->scale + channels->bias);
#else
    (void)channels, (void)centre;
    return dy;
#endif
}

/* centre: x − mean. Past the end of a row x and dy are zeros, and so is dn. */
static inline void channel_sums_take(struct channel_sums *sums, const realv centre, const realv dn) {
    sums->dn += dn;
    sums->product += dn * centre;
}

static inline void channel_sums_end_run(struct channel_sums *sums) {
    sums->of_dn += TOTAL(sums->dn);
    sums->of_product += TOTAL(sums->product);
    sums->dn = sums->product = 0;
}

/* x and dy of a vector, as loaded. Like struct packed_s it is never copied. */
struct packed_pair {
    PACKED(X_DTYPE) x;
    PACKED(DY_DTYPE) dy;
};

#define LOAD_PAIR(to, call, sample, place, count)               \
    ((to)->x = LOAD_OF(call, X_DTYPE, x, sample, place, count), \
     (to)->dy = LOAD_OF(call, DY_DTYPE, dy, sample, place, count))

/* x − mean and dn of a vector. */
struct point {
    realv centre, dn;
};

static inline struct point point_of(const struct channels *channels, const struct packed_pair *packed) {
    struct point point;
    point.centre = X_OF(channels, packed->x) - channels->mean;
    point.dn = dn_of(channels, point.centre, WIDEN(DY_DTYPE)(packed->dy));
    return point;
}

/* slopes: those of group_norm_slopes. */
static inline realv dx_of(const struct channels *channels, const realv slopes[2], const realv centre, const realv dn) {
    return channels->scale * dn - (centre * (channels->rstd * slopes[1]) + slopes[0]);
}

/* The numbers of one channel of a group of a sample. */
#define CHANNELS_AT(call, group, channel)                                                         \
    {                                                                                             \
        (call)->mean[group], (call)->rstd[group], (call)->rstd[group] * WEIGHT_OF(call, channel), \
            BIAS_OF(call, channel) X_SCALE_MEMBER(call, (group) / GROUPS)                         \
    }

/* Writes a vector of the gradient of s, which is that of x and of the residual, at a place of the sample. ds: the
 * gradient without dresidual_out. */
#if PRESENT(DRESIDUAL_OUT_DTYPE)
#define ALL_OF_S(call, sample, place, ds, count) \
    (ds) + WIDEN(DRESIDUAL_OUT_DTYPE)(LOAD_OF(call, DRESIDUAL_OUT_DTYPE, dresidual_out, sample, place, count))
#else
#define ALL_OF_S(call, sample, place, ds, count) ds
#endif
#define PUT_OF(dtype, call, tensor, sample, place, value, count) \
    STORE_PART(dtype)((call)->tensor + (sample) * (call)->tensor##_stride + (place), value, count, (call)->aligned)
#if PRESENT(DRESIDUAL_DTYPE)
#define PUT_ALL(call, sample, place, all, count)                             \
    {                                                                        \
        PUT_OF(DRESIDUAL_DTYPE, call, dresidual, sample, place, all, count); \
        PUT_OF(DX_DTYPE, call, dx, sample, place, all, count);               \
    }
#else
#define PUT_ALL(call, sample, place, all, count) PUT_OF(DX_DTYPE, call, dx, sample, place, all, count)
#endif
#define PUT_DS(call, sample, place, ds, count)                      \
    {                                                               \
        const realv all = ALL_OF_S(call, sample, place, ds, count); \
        PUT_ALL(call, sample, place, all, count);                   \
    }

#endif
