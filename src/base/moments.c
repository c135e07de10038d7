#include "base/dtype.h"
#include "base/status.h"
#include "clnorm/norm_slices.h"

struct moments {
    double mean, squares, count;
};

/* Chan, Golub, LeVeque 1979: takes no difference of large sums. Moments with a count of 0 add nothing. */
static struct moments merged(struct moments a, struct moments b) {
    if (b.count == 0)
        return a;
    if (a.count == 0)
        return b;
    const double count = a.count + b.count, delta = b.mean - a.mean;
    return (struct moments){a.mean + delta * (b.count / count),
                            a.squares + b.squares + delta * delta * (a.count * (b.count / count)), count};
}

static void merge_floats(float *into, const float *from) {
    const struct moments sum =
        merged((struct moments){into[0], into[1], into[2]}, (struct moments){from[0], from[1], from[2]});
    into[0] = (float)sum.mean;
    into[1] = (float)sum.squares;
    into[2] = (float)sum.count;
}

static void merge_doubles(double *into, const double *from) {
    const struct moments sum =
        merged((struct moments){into[0], into[1], into[2]}, (struct moments){from[0], from[1], from[2]});
    into[0] = sum.mean;
    into[1] = sum.squares;
    into[2] = sum.count;
}

clnorm_status clnorm_moments_merge(clnorm_dtype dtype, void *into, const void *from, uint64_t segments) {
    if (dtype != CLNORM_F32 && dtype != CLNORM_F64)
        return cln_fail(CLNORM_INVALID_ENUM, "dtype is %d, %s: expected f32 or f64", (int)dtype, clnorm_dtype_name(dtype));
    if (segments && (!into || !from))
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", into ? "from" : "into");
    for (uint64_t i = 0; i < segments; i++)
        if (dtype == CLNORM_F64)
            merge_doubles((double *)into + 3 * i, (const double *)from + 3 * i);
        else
            merge_floats((float *)into + 3 * i, (const float *)from + 3 * i);
    return CLNORM_SUCCESS;
}
