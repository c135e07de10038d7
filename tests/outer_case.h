/* One call over tensors whose rows have outer dimensions, compared bit for bit with the same call over dense ones, which
 * other tests compare with the reference. */
#ifndef TEST_OUTER_CASE_H
#define TEST_OUTER_CASE_H

#include "fixture.h"
#include "operation/operations.h"

/* A descriptor of any operation, without outer dimensions. */
struct outer_desc {
    _Alignas(max_align_t) unsigned char bytes[CLN_DESC_MOST];
};

/* How the rows of one tensor lie. */
struct outer_layout {
    const char *name; /* of the descriptor's tensor; NULL ends a list */
    clnorm_dim outer[3];
    uint64_t shift; /* elements from an address that is aligned for every vector to the first one */
};

struct outer_desc outer_desc_of(const struct cln_operation *operation, uint64_t rows, uint64_t cols);

/* The descriptor's tensor of a name. */
clnorm_tensor *outer_tensor(const struct cln_operation *operation, struct outer_desc *desc, const char *name);

/* Whether both calls succeed, their outputs' rows are equal, and nothing else was written; prints the first error. over:
 * the input that the tensor output lies over; NULL: none. */
bool outer_case_passes(const struct fixture *fixture, const struct cln_operation *operation, const struct outer_desc *desc,
                       const struct outer_layout *layouts, const char *output, const char *over);

#endif
