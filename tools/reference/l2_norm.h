/* L2 norm of segments: y = x̂ · weight with x̂ = x / length, and length = √(Σx² + eps), or max(√Σx², eps) with eps as a
 * floor. Backward, wdy = weight · dy: dx = (wdy − x̂ · Σ(x̂ · wdy)) / length, the derivative of a quotient; below the floor
 * the length is constant, and dx = wdy / length. dweight is Σ over rows of dy · x̂. Row r takes row
 * (r / weight_repeat) mod weight_rows of the weight. */
#ifndef REFERENCE_L2_NORM_H
#define REFERENCE_L2_NORM_H

#include "reference/tensor.h"

struct ref_l2_norm {
    uint64_t rows, cols, group_size;
    struct ref_tensor x, dy;             /* [rows, cols]; dy: absent in the forward */
    struct ref_tensor length;            /* [groups, rows], as the forward saved it; absent: computed from x */
    struct ref_tensor weight;            /* [weight_rows, cols]; absent: ones */
    uint64_t weight_rows, weight_repeat; /* weight_rows 0: one row, for all */
    double eps;
    bool eps_is_floor;
};

/* A segment; arrays have group_size elements. Without dy, the results that depend on it are 0. */
struct ref_l2_segment {
    double *xhat, *y;
    double *wdy, *dx;
    double *dweight; /* the row's term */
    double length;
    double c1; /* Σ(x̂ · wdy); 0 below the floor */
};

/* Memory for segments of group_size elements; the arrays are NULL where there is not enough. */
struct ref_l2_segment ref_l2_segment_make(uint64_t group_size);
void ref_l2_segment_free(struct ref_l2_segment *segment);

uint64_t ref_l2_weight_row(const struct ref_l2_norm *norm, uint64_t row);

/* Computes the segment of a row and a group. */
void ref_l2_norm_segment(const struct ref_l2_norm *norm, uint64_t row, uint64_t group, struct ref_l2_segment *segment);

#endif
