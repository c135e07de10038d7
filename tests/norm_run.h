/* A case of the forward norms, and its tensors. */
#ifndef TEST_NORM_RUN_H
#define TEST_NORM_RUN_H

#include "config/knobs.h"
#include "fixture.h"
#include "rope_tensors.h"

/* A shift is the distance, in elements, of a tensor's first one from an address that is aligned for every vector. */
struct norm_case {
    clnorm_norm_desc desc;
    struct {
        uint64_t x, x_scale, weight, bias, z, y, y_t, y_scale, mean, rstd, residual, row_scale, residual_out, rope;
    } shift;
    bool in_place;          /* y is x */
    bool residual_in_place; /* residual_out is residual */
    bool wild_positions;    /* some positions are outside of the tables */
    enum input input;
    uint64_t seed; /* dropout's too */
};

/* The tensors of a case, in host memory first, then on the device too. */
struct norm_run {
    clnorm_norm_desc desc; /* complete */
    bool in_place, residual_in_place;
    enum input input;
    clnorm_seed seed;
    struct cln_config config; /* the plan's */
    struct tensor x, x_scale, weight, bias, z, y, mean, rstd, workspace;
    struct tensor residual, row_scale, residual_out;
    struct tensor y_t, y_scale, y_row_scale;
    struct rope_tensors rope;
    struct tensor mask; /* dropout_mask: two of its bytes in each element */
};

#endif
