/* The tensors of a rotary embedding, for cases of the norms. */
#ifndef TEST_ROPE_TENSORS_H
#define TEST_ROPE_TENSORS_H

#include "fixture.h"
#include "reference/rope.h"

extern const clnorm_rope rope_forms[2];

/* All absent without a rotation. */
struct rope_tensors {
    struct tensor cos, sin;
    struct tensor position; /* int32, in elements of F32 */
};

/* desc: complete. shift: of the tables, in elements. wild: some given positions are outside of the tables. */
struct rope_tensors rope_tensors_make(const clnorm_norm_desc *desc, uint64_t shift, bool wild);

/* Points the reference at their elements. */
void rope_tensors_lend(const struct rope_tensors *rope, struct ref_rope *reference);

void rope_tensors_give(const struct rope_tensors *rope, clnorm_args *args);

bool rope_tensors_unchanged(const struct fixture *fixture, const struct rope_tensors *rope);

#endif
