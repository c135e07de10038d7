/* One forward normalisation on the device, with everything about it compared with the reference. */
#ifndef TEST_NORM_CASE_H
#define TEST_NORM_CASE_H

#include "fixture.h"
#include "knob.h"
#include "rope_tensors.h"

/* What a case is made of. Shifts are in elements: how far a tensor's first one is from an address that suits every vector.
 */
struct norm_case {
    clnorm_norm_desc desc;
    struct {
        uint64_t x, x_scale, weight, bias, z, y, y_t, y_scale, mean, rstd, residual, row_scale, residual_out, rope;
    } shift;
    bool in_place;          /* y is x */
    bool residual_in_place; /* residual_out is residual */
    bool wild_positions;    /* some are outside the tables */
    enum input input;
    uint64_t seed; /* dropout's too */
};

/* A case under way: the tensors of its descriptor, in host memory at first, then on the device. */
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
    struct tensor mask; /* its bytes, two to an element */
};

/* A descriptor of a shape with defaults. */
clnorm_norm_desc norm_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols);

/* Makes the tensors that the descriptor wants and fills the inputs. */
struct norm_run norm_run_make(const struct norm_case *norm_case);
void norm_run_free(struct norm_run *run);

/* Uploads the tensors, plans, enqueues and waits. The status of the first call of the library that failed. Where the driver
 * is known to do lanes that share a segment wrong, a segment has one. */
clnorm_status norm_run_go(const struct fixture *fixture, struct norm_run *run);

/* The two halves of that for tests with an enqueue of their own: the buffers, and what an enqueue is given. */
void norm_run_upload(const struct fixture *fixture, struct norm_run *run);
clnorm_args norm_run_args(const struct norm_run *run);

/* Fetches the outputs, checks that no byte else was touched, and then as norm_run_check does. Prints what is wrong. */
bool norm_run_verify(const struct fixture *fixture, struct norm_run *run);

/* Compares outputs in host memory with the reference, to a tolerance that dtypes, cols, config and magnitudes yield. */
bool norm_run_check(const struct norm_run *run);

/* All of it. Prints the case when something is wrong with it. */
bool norm_case_passes(const struct fixture *fixture, const struct norm_case *norm_case);

/* Takes wide accesses back that strides do not allow on this device. */
void norm_settle(const struct fixture *fixture, clnorm_norm_desc *desc);

void norm_case_print(const struct norm_case *norm_case);

#endif
