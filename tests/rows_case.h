/* One softmax or GELU on the device, forward or backward, with everything about it compared with the reference. */
#ifndef TEST_ROWS_CASE_H
#define TEST_ROWS_CASE_H

#include "fixture.h"
#include "knob.h"

enum rows_operation { ROWS_GELU, ROWS_GELU_BACKWARD, ROWS_SOFTMAX, ROWS_SOFTMAX_BACKWARD };

/* The tensors of an operation: its inputs, then its output; a forward has one input. */
enum { ROWS_FIRST, ROWS_DY, ROWS_OUT, ROWS_TENSORS };

struct rows_case {
    enum rows_operation operation;
    uint64_t rows, cols;
    clnorm_dtype dtype[ROWS_TENSORS]; /* CLNORM_DTYPE_NONE: as the first */
    uint64_t gap[ROWS_TENSORS];       /* elements from the end of a row to the next */
    uint64_t shift[ROWS_TENSORS];     /* elements by which the first one is off an address that suits every vector */
    bool in_place;                    /* the output is the input at place */
    int place;
    bool special;    /* infinities, NaNs, zeros and far numbers are among the input */
    bool masked;     /* −∞ is: half of the entries, and every third row */
    bool zeros;      /* the first input is zeros of either sign */
    bool every_half; /* the first input goes through all bits of 16 */
    bool one_call;
    clnorm_gelu_form form;
    enum input input;
    uint64_t seed;
    struct cln_config config; /* forced */
};

bool rows_backward(enum rows_operation operation);
const char *rows_name(enum rows_operation operation);

/* A case of an operation with defaults, GELU's erf form too. */
struct rows_case rows_case_of(enum rows_operation operation, uint64_t rows, uint64_t cols);

/* The plan of a case, whose descriptor says every field or, where it can, none. */
clnorm_status rows_case_plan(clnorm_context *context, const struct rows_case *rows_case, clnorm_plan **plan);

/* Runs it. Prints the case when something is wrong with it. */
bool rows_case_passes(const struct fixture *fixture, const struct rows_case *rows_case);

/* The same, and the bytes of the output's rows go to bytes, [rows · cols] elements without gaps. */
bool rows_case_output(const struct fixture *fixture, const struct rows_case *rows_case, void *bytes);

#endif
