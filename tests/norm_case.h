/* One forward normalisation on the device, with everything about it compared with the reference. */
#ifndef TEST_NORM_CASE_H
#define TEST_NORM_CASE_H

#include "knob.h"
#include "norm_run.h"

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
