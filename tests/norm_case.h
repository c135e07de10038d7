/* One forward norm on the device, compared with the reference. */
#ifndef TEST_NORM_CASE_H
#define TEST_NORM_CASE_H

#include "knob.h"
#include "norm_run.h"

/* A descriptor of a shape with defaults. */
clnorm_norm_desc norm_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols);

/* Makes the tensors of the descriptor and fills the inputs. */
struct norm_run norm_run_make(const struct norm_case *norm_case);
void norm_run_free(struct norm_run *run);

/* Uploads the tensors, makes a plan, enqueues it and waits. Returns the status of the first library call that failed. A
 * segment has one lane where the driver miscompiles lanes that share one. */
clnorm_status norm_run_go(const struct fixture *fixture, struct norm_run *run);

/* The steps of norm_run_go, for tests that enqueue a plan themselves: the buffers, and the arguments. */
void norm_run_upload(const struct fixture *fixture, struct norm_run *run);
clnorm_args norm_run_args(const struct norm_run *run);

/* Reads the outputs, checks that no other byte was written, and calls norm_run_check; prints the first error. */
bool norm_run_verify(const struct fixture *fixture, struct norm_run *run);

/* Compares outputs in host memory with the reference, within tolerances that follow from dtypes, cols, config and
 * magnitudes. */
bool norm_run_check(const struct norm_run *run);

/* Runs and checks a case; prints one that fails. */
bool norm_case_passes(const struct fixture *fixture, const struct norm_case *norm_case);

/* Halves a forced vec until the strides allow it on this device. */
void norm_settle(const struct fixture *fixture, clnorm_norm_desc *desc);

void norm_case_print(const struct norm_case *norm_case);

#endif
