/* OpenCL's calls on programs, which pass through program_calls.c to be counted, or refused. */
#ifndef TEST_PROGRAM_CALLS_H
#define TEST_PROGRAM_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>

enum refusal { REFUSE_NOTHING, REFUSE_BINARY, REFUSE_BINARY_STATUS, REFUSE_BUILD, REFUSE_EVERY_BUILD };

struct driver_calls {
    unsigned binaries;     /* that the driver was given */
    atomic_int references; /* to programs, that there are */
    enum refusal refusal;
    atomic_bool verbose; /* the last build had -cl-nv-verbose */
    int losses;          /* the builds from now on that fail without a diagnostic */
};

extern struct driver_calls driver;

/* Finds the library itself, before its first call. */
void program_calls_start(void);

#endif
