/* Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with the formulas of clnorm_rope. */
#ifndef REFERENCE_ROPE_H
#define REFERENCE_ROPE_H

#include <stdint.h>

#include "clnorm/norm.h"
#include "reference/tensor.h"

struct ref_rope {
    clnorm_rope form; /* 0: columns are as they are */
    uint64_t dims, positions, repeat;
    struct ref_tensor cos, sin; /* [positions, dims / 2] */
    const int32_t *position;    /* [rows / repeat]; NULL: the row's own index / repeat */
};

/* How a column of a segment is rotated: column · cos + partner · sin; back again it is column · cos − partner · sin. */
struct ref_turn {
    uint64_t partner;
    double cos, sin; /* 1 and 0 of a column that is not; NaN where the row's position is not one of positions */
};

struct ref_turn ref_rope_turn(const struct ref_rope *rope, uint64_t row, uint64_t column);

#endif
