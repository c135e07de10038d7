/* A case of the backward norms, and its tensors while it is tried. */
#ifndef TEST_NORM_BACKWARD_RUN_H
#define TEST_NORM_BACKWARD_RUN_H

#include "config/knobs.h"
#include "fixture.h"
#include "reference/reference.h"
#include "rope_tensors.h"

/* Where dx lies. */
enum dx_place { DX_APART, DX_OVER_X, DX_OVER_DY };

/* What a case is made of. Shifts are in elements: how far a tensor's first one is from an address that suits every vector.
 * dx and dz that lie over an input have its stride, and its dtype where they do not have one of its size. mean and rstd
 * that are given are not those of x, but near them: who computes them again is found out. With y_given, x is filled as
 * ever, and y made of it takes its place; weights and biases are such that x̂ can be had from it. */
struct norm_backward_case {
    clnorm_norm_backward_desc desc;
    struct {
        uint64_t x, x_scale, weight, bias, z, dy, mean, rstd, dx, dz, y, dweight, dbias, residual, dresidual_out, dresidual,
            rope;
    } shift;
    enum dx_place dx_place;
    bool dz_over_z;
    bool dresidual_in_place; /* dresidual is dresidual_out */
    bool wild_positions;     /* some are outside the tables */
    enum input input;        /* of x; all others are normal */
    uint64_t seed;
};

/* A case under way: the tensors of its descriptor, in host memory at first, then on the device. */
struct norm_backward_run {
    clnorm_norm_backward_desc desc; /* complete */
    enum dx_place dx_place;
    bool dz_over_z, dresidual_in_place;
    enum input input;
    clnorm_seed seed;
    struct cln_config config; /* the plan's */
    struct tensor x, x_scale, weight, bias, z, dy, mean, rstd;
    struct tensor dx, dz, y, dweight, dbias, workspace;
    struct tensor residual, row_scale, dresidual_out, dresidual;
    struct rope_tensors rope;
    struct tensor fault;                        /* one number of 4 bytes */
    struct tensor dweight_before, dbias_before; /* in host memory: what accumulate adds to */
};

/* Makes the tensors that the descriptor wants and fills the inputs. */
struct norm_backward_run norm_backward_run_make(const struct norm_backward_case *backward_case);
void norm_backward_run_free(struct norm_backward_run *run);

/* Uploads the tensors, plans, enqueues and waits. The status of the first call of the library that failed. */
clnorm_status norm_backward_run_go(const struct fixture *fixture, struct norm_backward_run *run);

/* The parts of that for tests with an enqueue of their own: the workspace that a plan wants, the buffers, and what an
 * enqueue is given. */
void norm_backward_run_prepare(const clnorm_plan *plan, struct norm_backward_run *run);
void norm_backward_run_upload(const struct fixture *fixture, struct norm_backward_run *run);
clnorm_args norm_backward_run_args(const struct norm_backward_run *run);

/* Fetches the outputs, and checks that no byte else was touched. Prints what is wrong. */
bool norm_backward_run_receive(const struct fixture *fixture, struct norm_backward_run *run);

/* Columns that the device found not exact enough, as received. */
uint32_t norm_backward_run_fault(const struct norm_backward_run *run);

/* The reference of the run's inputs, which it borrows. */
struct ref_norm_backward norm_backward_reference_of(const struct norm_backward_run *run);

#endif
