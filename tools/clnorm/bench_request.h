/* The measurements that the command line requests: operations, shapes and dtypes. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include "bench_job.h"
#include "options.h"
#include "widths.h"

enum { BENCH_MOST_SECONDS = 20 }; /* of one measurement */

struct bench_request {
    char *device;
    char *config;   /* forced knobs */
    char *json;     /* a file for JSON lines; "-": standard output, and no table */
    char *svg;      /* a file for a picture */
    int runs;       /* the minimum of each, within 20 s */
    double seconds; /* the least time of the runs of each */
    int warm_up;    /* runs before the timed ones */
    int enqueues;   /* of --host: how many to compare the memory in use over; 0: none */
    int unfused;    /* measure fused operations as separate calls too */
    int in_place;   /* outputs lie over inputs: see launch_in_place() */
    int median;     /* take the median of the runs on CPUs too, not the least time */
    const struct bench_operation *operations[BENCH_MOST];
    struct bench_shape shapes[BENCH_MOST];
    clnorm_dtype dtypes[BENCH_MOST];
    size_t operation_count, shape_count, dtype_count; /* 0: the usual ones */
    long long packed;                                 /* of every shape: see bench_job.h */
    long long weight_rows, weight_repeat;             /* of every shape: see bench_job.h */
    struct widths sweep;                              /* empty: shapes are measured */
    uint64_t sweep_bytes;                             /* of x at each width */
};

/* Reads "ROWSxCOLS", or "NxCxHxW" with any number of extents from the third on, which "/GROUPS" may follow. option: the
 * name for the error message. */
bool bench_parse_shape(const char *word, const char *option, struct bench_shape *shape, struct fault *fault);

/* Reads operations from the command line's words, and shapes and dtypes from lists, which may be NULL. Refuses operations
 * that do not take the columns of a shape. */
bool bench_read(struct bench_request *request, struct command_line *line, const char *shapes, const char *dtypes,
                struct fault *fault);

/* Fills in the usual shapes and dtypes of a CPU, or of other devices, where none were given. */
void bench_complete(struct bench_request *request, bool cpu);

/* Of several operations or dtypes, an operation that refuses a dtype is left out, with a note on stderr, unless knobs are
 * forced. Returns whether that is so; it then clears the fault. request: complete. noted: 0 at first; the last one that was
 * left out, which has its note. */
struct bench_left_out {
    const struct bench_operation *operation;
    clnorm_dtype dtype;
};
bool bench_leave_out(const struct bench_request *request, struct bench_left_out point, struct bench_left_out *noted,
                     struct fault *fault);

/* Prints a line on stderr for each operation of a complete request that does not take the columns of every shape or width:
 * it was skipped there. */
void bench_note_skipped(const struct bench_request *request);

/* The number of measurements, without the skipped ones: of each operation and dtype, and each shape or width. */
size_t bench_count(const struct bench_request *request);

#endif
