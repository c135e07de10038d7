/* One softmax or GELU on the device, forward or backward, compared with the reference. */
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
    clnorm_dtype dtype[ROWS_TENSORS]; /* CLNORM_DTYPE_NONE: the first one's */
    uint64_t gap[ROWS_TENSORS];       /* elements from the end of a row to the next */
    uint64_t shift[ROWS_TENSORS];     /* elements from an address that is aligned for every vector to the first one */
    bool in_place;                    /* the output is the input at place */
    int place;
    bool special;    /* some inputs are infinities, NaNs, zeros or large numbers */
    bool masked;     /* half of the inputs, and every third row, are −∞ */
    bool zeros;      /* the first input is zeros of either sign */
    bool every_half; /* the first input has every 16-bit pattern */
    bool one_call;
    clnorm_gelu_form form;
    enum input input;
    uint64_t seed;
    struct cln_config config; /* forced */
};

bool rows_backward(enum rows_operation operation);
const char *rows_name(enum rows_operation operation);

/* A case of an operation with defaults: f32, and GELU's erf form. */
struct rows_case rows_case_of(enum rows_operation operation, uint64_t rows, uint64_t cols);

/* Makes the plan of a case. Strides without gaps stay at their default, 0. */
clnorm_status rows_case_plan(clnorm_context *context, const struct rows_case *rows_case, clnorm_plan **plan);

/* Runs and checks a case; prints one that fails. */
bool rows_case_passes(const struct fixture *fixture, const struct rows_case *rows_case);

/* The same. Copies the output's rows to bytes: [rows · cols] elements without gaps. */
bool rows_case_output(const struct fixture *fixture, const struct rows_case *rows_case, void *bytes);

#endif
