/* Rotary position embedding (Su et al. 2021, arXiv:2104.09864), with the formulas of clnorm_rope. */
#ifndef REFERENCE_ROPE_H
#define REFERENCE_ROPE_H

#include <stdint.h>

#include "clnorm/norm.h"
#include "reference/tensor.h"

struct ref_rope {
    clnorm_rope form; /* 0: no rotation */
    uint64_t dims, positions, repeat;
    struct ref_tensor cos, sin; /* [positions, dims / 2] */
    const int32_t *position;    /* [rows / repeat]; NULL: the row's own index / repeat */
};

/* The rotation of a column of a segment: column · cos + partner · sin; the inverse is column · cos − partner · sin. */
struct ref_turn {
    uint64_t partner;
    double cos, sin; /* 1 and 0: the column is not rotated; NaN: the row's position is out of range */
};

struct ref_turn ref_rope_turn(const struct ref_rope *rope, uint64_t row, uint64_t column);

#endif
