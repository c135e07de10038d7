/* A context whose programs are counted and logged, and a program for it. */
#ifndef TEST_PROGRAM_CASE_H
#define TEST_PROGRAM_CASE_H

#include <stdbool.h>

#include "base/context.h"
#include "program/program.h"
#include "program_calls.h"

struct fixture {
    char *dir; /* of the cache */
    clnorm_device_info device;
    cl_context cl;
    clnorm_context *context;
    char log[1 << 16]; /* its lines */
};

/* Setup and teardown of a test: *state is a struct fixture with an empty cache. A program that is not released fails. */
int program_setup(void **state);
int program_teardown(void **state);
#define program_test(function) cmocka_unit_test_setup_teardown(function, program_setup, program_teardown)

/* A context of the fixture's device with its log. dir: of the cache; "": none. */
clnorm_context *make_context(struct fixture *fixture, const char *dir);

/* A context that remembers nothing, as in the next process. */
void start_again(struct fixture *fixture);

/* A kernel that writes the macro NUMBER, and options by which that is 7. */
extern const struct cln_source program_source;
extern const char program_seven[];

cl_program get(struct fixture *fixture, const struct cln_source *of, const char *options);

/* Gets the program of 7; whether the log says that it came from there: "built", "from memory" or "from disk". */
bool comes(struct fixture *fixture, const char *from);

/* The number that a program writes. */
cl_int run(const struct fixture *fixture, cl_program program);

#endif
