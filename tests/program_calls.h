/* OpenCL calls on programs. program_calls.c intercepts them to count or refuse them. */
#ifndef TEST_PROGRAM_CALLS_H
#define TEST_PROGRAM_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>

enum refusal { REFUSE_NOTHING, REFUSE_BINARY, REFUSE_BINARY_STATUS, REFUSE_BUILD, REFUSE_EVERY_BUILD };

struct driver_calls {
    unsigned binaries;     /* calls of clCreateProgramWithBinary */
    atomic_int references; /* to programs */
    enum refusal refusal;
    atomic_bool verbose; /* the last build had -cl-nv-verbose */
    int losses;          /* number of next builds that fail without a diagnostic */
};

extern struct driver_calls driver;

/* Opens the OpenCL library; must come before the first call. */
void program_calls_start(void);

#endif
