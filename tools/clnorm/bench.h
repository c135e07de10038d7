/* What the two halves of `clnorm bench` share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>

#include "operation.h"
#include "options.h"
#include "session.h"

enum { UNFUSED_MOST = 5 }; /* separate calls and an end */

/* An operation as it is measured. */
struct bench_operation {
    const char *name; /* on the command line, and in JSON */
    const char *operation;
    const char *inputs[ROLES]; /* roles, ended by NULL */
    char *outputs;             /* roles; NULL: the usual ones */
    char *gate;
    unsigned moved; /* tensors of x's size that have to be moved; 0: every tensor, once */
    double dropout;
    char *activation;
    int s_given;
    const char *choice;                /* an option of the record's; NULL: none */
    const char *word;                  /* of it */
    char *quantize;                    /* of the norms' y */
    const char *unfused[UNFUSED_MOST]; /* what it is as separate calls, ended by NULL: operations of this table that have
                                          one x, or a plain add, dropout or gate; none: it fuses nothing that is measured */
};

/* All of them, ended by a name of NULL. */
const struct bench_operation *bench_operations(void);

enum { BENCH_MOST = 64 }; /* shapes, dtypes or operations in a list */

struct bench_shape {
    uint64_t rows, cols;
};

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
};

/* The operation that a word names. */
bool bench_find_operation(const char *word, const struct bench_operation **operation, struct fault *fault);

/* Reads "ROWSxCOLS". option: what it was given with. */
bool bench_parse_shape(const char *word, const char *option, struct bench_shape *shape, struct fault *fault);

/* Takes operations from the command line's words, and the lists of two options, which may be NULL. */
bool bench_read(struct bench_request *request, struct command_line *line, const char *shapes, const char *dtypes,
                struct fault *fault);

/* Fills in what is usual on a CPU, or elsewhere, where nothing was asked for. */
void bench_complete(struct bench_request *request, bool cpu);

/* What an operation is measured with. config: forced knobs, borrowed; may be NULL. */
struct operation_options bench_options(const struct bench_operation *operation, const char *config);

/* The job of an operation on tensors without bytes. */
bool bench_job(struct job *job, const struct bench_operation *operation, struct bench_shape shape, clnorm_dtype dtype,
               const char *config, struct fault *fault);

/* The least that it has to move. */
uint64_t bench_bytes(const struct bench_operation *operation, const struct job *job);

/* Opens a file of a request to write to; *stream is NULL where path is, and standard output for "-". */
bool bench_open_output(const char *path, FILE **stream, struct fault *fault);
bool bench_close_output(const char *path, FILE *stream, struct fault *fault);

/* Times on the device, against a copy. */
bool bench_device(const struct bench_request *request, struct fault *fault);

/* Times on the host: an enqueue against the bare OpenCL calls, and plan creation without and with caches. */
bool bench_host(const struct bench_request *request, struct fault *fault);

#endif
