/* The job of one measurement. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include <jansson.h>

#include "bench_operation.h"
#include "session.h"

struct bench_shape {
    uint64_t rows, cols;
    long long packed;                     /* heads of a packed [rows / heads, 3, heads, cols] that are the rows; 0: dense */
    long long weight_rows, weight_repeat; /* of norms, whose weight and bias are of [weight_rows, cols]; 0: of [cols] */
    uint64_t positions, groups; /* of images, whose rows are samples · positions, and cols channels; 0: usual ones */
};

enum { BENCH_SHAPE_TEXT = 96 };

/* "ROWSxCOLS", or "SAMPLESxCHANNELSxPOSITIONS" of images, and "/GROUPS" where groups are given. text: BENCH_SHAPE_TEXT
 * bytes, which are returned. */
const char *bench_shape_text(const struct bench_shape *shape, char *text);

/* Sets the keys positions and groups of a shape that is an image. */
void bench_shape_json(const struct bench_shape *shape, json_t *object);

/* The shape of an x of about `bytes` with this many columns, at least one row. Images have the usual positions, or fewer
 * where a sample of them takes more. */
struct bench_shape bench_shape_of_bytes(const struct bench_operation *operation, uint64_t bytes, uint64_t cols,
                                        clnorm_dtype dtype);

/* The options that an operation is measured with. config: forced knobs, borrowed; may be NULL. */
struct operation_options bench_options(const struct bench_operation *operation, const char *config);

/* Of group norm: the positions of a sample, and the groups of its channels. The defaults are the largest power of two that
 * divides the rows, at most 1024, and the largest that divides the channels, at most 32. */
uint64_t bench_positions(const struct bench_shape *shape);
uint64_t bench_groups(const struct bench_shape *shape);

/* What the operation needs where x cannot have this many columns, such as "an even number of columns"; otherwise NULL. */
const char *bench_columns_needed(const struct bench_operation *operation, uint64_t cols);

/* The job of an operation on tensors without bytes. */
bool bench_job(struct job *job, const struct bench_operation *operation, struct bench_shape shape, clnorm_dtype dtype,
               const char *config, struct fault *fault);

/* The plan of such a job. CLNORM_UNSUPPORTED, too, where the operation takes no such tensors; fault says why it failed. */
clnorm_status bench_plan(const struct session *session, const struct bench_operation *operation, struct bench_shape shape,
                         clnorm_dtype dtype, const char *config, clnorm_plan **plan, struct fault *fault);

/* The bytes of its least traffic. */
uint64_t bench_bytes(const struct bench_operation *operation, const struct job *job);

#endif
