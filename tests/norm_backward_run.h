/* A case of the backward norms, and its tensors. */
#ifndef TEST_NORM_BACKWARD_RUN_H
#define TEST_NORM_BACKWARD_RUN_H

#include "config/knobs.h"
#include "fixture.h"
#include "reference/reference.h"
#include "rope_tensors.h"

/* Where dx lies. */
enum dx_place { DX_APART, DX_OVER_X, DX_OVER_DY };

/* A shift is the distance, in elements, of a tensor's first one from an address that is aligned for every vector. dx and
 * dz over an input have its stride, and its dtype where theirs has another size. A given mean and rstd differ a little
 * from those of x, so that a kernel that computes them again is detected. With y_given, the y of the usual x takes its
 * place; weights and biases are such that x̂ can be recovered from it. */
struct norm_backward_case {
    clnorm_norm_backward_desc desc;
    struct {
        uint64_t x, x_scale, weight, bias, z, dy, mean, rstd, dx, dz, y, dweight, dbias, residual, dresidual_out, dresidual,
            rope;
    } shift;
    enum dx_place dx_place;
    bool dz_over_z;
    bool dresidual_in_place; /* dresidual is dresidual_out */
    bool wild_positions;     /* some positions are outside of the tables */
    enum input input;        /* of x; all others are normal */
    uint64_t seed;
};

/* The tensors of a case, in host memory first, then on the device too. */
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
    struct tensor fault;                        /* one uint32 */
    struct tensor dweight_before, dbias_before; /* in host memory: the values that accumulate adds to */
};

/* Makes the tensors of the descriptor and fills the inputs. */
struct norm_backward_run norm_backward_run_make(const struct norm_backward_case *backward_case);
void norm_backward_run_free(struct norm_backward_run *run);

/* Uploads the tensors, makes a plan, enqueues it and waits. Returns the status of the first library call that failed. */
clnorm_status norm_backward_run_go(const struct fixture *fixture, struct norm_backward_run *run);

/* The steps of norm_backward_run_go, for tests that enqueue a plan themselves: the plan's workspace, the buffers, and the
 * arguments. */
void norm_backward_run_prepare(const clnorm_plan *plan, struct norm_backward_run *run);
void norm_backward_run_upload(const struct fixture *fixture, struct norm_backward_run *run);
clnorm_args norm_backward_run_args(const struct norm_backward_run *run);

/* Reads the outputs, and checks that no other byte was written; prints the first one that was. */
bool norm_backward_run_receive(const struct fixture *fixture, struct norm_backward_run *run);

/* The number of columns that the device found not exact enough, as received. */
uint32_t norm_backward_run_fault(const struct norm_backward_run *run);

/* The reference of the run's inputs, which it borrows. */
struct ref_norm_backward norm_backward_reference_of(const struct norm_backward_run *run);

#endif
