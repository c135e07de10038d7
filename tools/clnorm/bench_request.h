/* What the command line asks to measure: operations, shapes and dtypes. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stdio.h>

#include "bench_job.h"
#include "options.h"
#include "widths.h"

struct bench_request {
    char *device;
    char *config; /* forced knobs */
    char *json;   /* a file for JSON lines; "-": standard output, and no table */
    char *svg;    /* a file for a picture */
    int runs;     /* at least so many of each, where they are done in 20 s */
    int warm_up;  /* runs before those that count */
    int enqueues; /* of the host's: how many to watch the memory over; 0: none */
    int unfused;  /* operations that are several in one also as separate calls */
    int median;   /* of runs also on CPUs, where else the least time counts */
    const struct bench_operation *operations[BENCH_MOST];
    struct bench_shape shapes[BENCH_MOST];
    clnorm_dtype dtypes[BENCH_MOST];
    size_t operation_count, shape_count, dtype_count; /* 0: the usual ones */
    long long packed;                                 /* of every shape: see bench_job.h */
    long long weight_rows, weight_repeat;             /* of every shape: see bench_job.h */
    struct widths sweep;                              /* of none: shapes count */
    uint64_t sweep_bytes;                             /* of x at each width */
};

/* Reads "ROWSxCOLS", or "NxCxHxW" and the like with "/GROUPS" after it or not. option: what it was given with. */
bool bench_parse_shape(const char *word, const char *option, struct bench_shape *shape, struct fault *fault);

/* Takes operations from the command line's words, and the lists of two options, which may be NULL. */
bool bench_read(struct bench_request *request, struct command_line *line, const char *shapes, const char *dtypes,
                struct fault *fault);

/* Fills in the usual shapes and dtypes of a CPU, or of other devices, where none were given. */
void bench_complete(struct bench_request *request, bool cpu);

/* Opens a file of a request to write to; *stream is NULL where path is, and standard output for "-". */
bool bench_open_output(const char *path, FILE **stream, struct fault *fault);
bool bench_close_output(const char *path, FILE *stream, struct fault *fault);

#endif
