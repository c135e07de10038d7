/* The operations that are measured, each with its inputs and outputs. */
#ifndef BENCH_OPERATION_H
#define BENCH_OPERATION_H

#include "operation.h"

enum { BENCH_MOST = 64 }; /* shapes, dtypes or operations in a list */

enum { UNFUSED_MOST = 5 }; /* separate calls, and the NULL that ends them */

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
    const char *choice;   /* an option of the record; NULL: none */
    const char *word;     /* the value of that option */
    char *quantize;       /* of the norms' y */
    char *rope;           /* heads have 128 columns, or the largest power of two below that divides the columns */
    char *mode;           /* of quantize: tensor, row or group */
    long long group_size; /* columns, of a mode of groups */
    char *layout;         /* of channels; NULL: first */
    const char *unfused[UNFUSED_MOST]; /* the separate calls that do the same, ended by NULL: operations of this table with
                                          one x, or a plain add, dropout or gate; none: there is nothing fused to compare */
};

/* All of them, ended by a name of NULL. */
const struct bench_operation *bench_operations(void);

/* The operation that a word names. */
bool bench_find_operation(const char *word, const struct bench_operation **operation, struct fault *fault);

#endif
