/* The rotation (RoPE) of the norms, forward and backward. */
#ifndef CLN_ROPE_H
#define CLN_ROPE_H

#include "operation/operation.h"

/* The members of a descriptor that describe it. */
struct cln_rope {
    clnorm_rope form;
    uint32_t position_given;
    uint64_t rows, group_size, dims, positions, repeat;
    clnorm_tensor cos, sin;
};

#define CLN_ROPE_OF(p)                                                                                                  \
    ((struct cln_rope){(p)->rope, (p)->position_given, (p)->rows, (p)->group_size, (p)->rope_dims, (p)->rope_positions, \
                       (p)->rope_repeat, (p)->rope_cos, (p)->rope_sin})

/* Fills in the defaults of a descriptor with a rotation. width: columns of a segment. */
void cln_rope_complete(uint64_t width, uint64_t *dims, uint64_t *repeat, clnorm_tensor *cos, clnorm_tensor *sin);

/* Checks a completed rotation. */
clnorm_status cln_rope_check(const struct cln_rope *rope);

/* Describes the arguments of a rotation; without one there are none. */
clnorm_status cln_rope_describe(const struct cln_rope *rope, struct cln_tensor tensor[CLN_ROLES]);

/* The bitwise or of the strides of tables that are read in whole vectors. */
uint64_t cln_rope_strides(const struct cln_rope *rope);

/* Sets the macros of a rotation. */
void cln_rope_spec(const struct cln_rope *rope, struct cln_spec *spec);

#endif
