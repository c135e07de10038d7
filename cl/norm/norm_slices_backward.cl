/* Conversions for rows whose columns are shared out to several callers: of moments and sums of whole rows to the form that
 * norm_backward_sums.cl and norm_backward.cl read, and of the sums of a slice to the form that callers exchange. Each
 * work-item has a segment.
 *
 * Macros as for norm_backward.cl. */

#include "common/arguments.h"
#include "common/dtype.h"
#include "common/lanes.h"
#include "norm/norm_slices_args.h"

/* The sums are of as many elements as moments says, but the kernels that read chunk_sums divide by GROUP_SIZE. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_open_moments(PARAMETERS(NORM_OPEN_MOMENTS_ARGS)) {
    const ulong segment = get_global_id(0);
    if (segment >= work)
        return;
    const global real *own = moments + moments_at + 3 * segment;
#if READS_MEAN
    mean[mean_at + segment] = own[0];
#endif
    rstd[rstd_at + segment] = (real)1 / sqrt(own[1] / own[2] + eps);
#if HAS_SUMS
    const real share = (real)GROUP_SIZE / own[2];
    chunk_sums[chunk_sums_at + segment] = sums[sums_at + 2 * segment] * share;
    chunk_sums[chunk_sums_at + work + segment] = sums[sums_at + 2 * segment + 1] * share;
#endif
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_merge_sums(PARAMETERS(NORM_MERGE_SUMS_ARGS)) {
    const ulong segment = get_global_id(0);
    if (segment >= work)
        return;
    const global real *own = chunk_sums + chunk_sums_at + segment;
    real product = 0, gradient = 0;
    for (ulong i = 0; i < CHUNKS; i++) {
        product += own[i * work];
        if (NORM == LAYER_NORM)
            gradient += own[(CHUNKS + i) * work];
    }
    sums[sums_at + 2 * segment] = product;
    sums[sums_at + 2 * segment + 1] = gradient;
}
