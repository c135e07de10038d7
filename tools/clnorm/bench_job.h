/* The job of one measurement. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "bench_operation.h"

struct bench_shape {
    uint64_t rows, cols;
    long long packed;                     /* heads of a packed [rows / heads, 3, heads, cols] that are the rows; 0: dense */
    long long weight_rows, weight_repeat; /* of norms, whose weight and bias are of [weight_rows, cols]; 0: of [cols] */
};

/* What an operation is measured with. config: forced knobs, borrowed; may be NULL. */
struct operation_options bench_options(const struct bench_operation *operation, const char *config);

/* Of group norm: the positions that the rows of a shape are, and the groups that its channels have. */
uint64_t bench_positions(uint64_t rows);
uint64_t bench_groups(uint64_t cols);

/* The job of an operation on tensors without bytes. Group norm's shape has rows / 1024 samples of 1024 positions each, or
 * what power of two below that divides the rows, and 32 groups of channels, or what power of two divides these. */
bool bench_job(struct job *job, const struct bench_operation *operation, struct bench_shape shape, clnorm_dtype dtype,
               const char *config, struct fault *fault);

/* The least that it has to move. */
uint64_t bench_bytes(const struct bench_operation *operation, const struct job *job);

#endif
