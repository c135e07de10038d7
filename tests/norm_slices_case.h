/* A norm whose columns are shared out to several slices, forward and backward, compared with the reference of whole rows.
 */
#ifndef TEST_NORM_SLICES_CASE_H
#define TEST_NORM_SLICES_CASE_H

#include "fixture.h"

enum { SLICES_MOST = 5 };

struct slices_case {
    uint64_t rows;
    uint64_t groups;             /* segments of a row that every slice has a part of; 0: slices have whole segments */
    uint64_t parts[SLICES_MOST]; /* elements that a slice has of a segment, or segments that it has; ended by 0 */
    uint64_t whole;              /* elements of a segment where slices have whole ones; else 0 */
    int norm;
    int x, weight, out; /* dtypes; weight: of bias too; out: of y, dy, dx, dweight and dbias */
    int input;          /* an enum input */
    uint64_t gap;       /* elements between rows */
    uint64_t shift;     /* elements by which the first one is off an address that suits every vector */
    uint64_t views;     /* 0: rows lie one after the other; n: a row's next one has rows / n others before it */
    bool in_place;      /* y lies where x does, dx where dy does */
    const char *config; /* of all but backward_apply, which has its own */
    const char *apply_config;
};

/* What a slice has; moments and sums are matrices of a segment's row each. */
struct slice {
    uint64_t begin; /* before it: elements of a segment, or segments */
    uint64_t cols, group_size, groups;
    struct tensor x, dy, weight, bias, moments, y, sums, dx, dweight, dbias;
};

struct slices_run {
    const struct slices_case *c;
    unsigned slices;
    uint64_t cols, group_size;         /* of whole rows */
    struct tensor x, dy, weight, bias; /* of whole rows, in host memory */
    struct slice slice[SLICES_MOST];
    double width; /* elements beside each other that the statistics' kernels add up, at least */
};

struct slices_run slices_run_make(const struct slices_case *c);
void slices_run_free(struct slices_run *run);

/* The column of whole rows that is this column of a slice. */
uint64_t slices_column(const struct slices_run *run, const struct slice *slice, uint64_t column);

/* The index at which a row lies among the rows of a slice's matrices. */
uint64_t slices_row(const struct slices_case *c, uint64_t row);

/* The matrix that has a slice's dx: dy itself in place. */
const struct tensor *slices_dx(const struct slices_run *run, const struct slice *slice);

/* Runs all four operations on every slice, and merges on the host; whether nothing but results was written. */
bool slices_run_execute(const struct fixture *fixture, struct slices_run *run);

/* Both, of each case that the device can run; the first that is wrong fails the test. Returns how many it were. */
unsigned slices_cases_are_right(const struct fixture *fixture, const struct slices_case *cases, size_t count);

#endif
