/* A norm whose columns are divided among several slices, forward and backward. */
#ifndef TEST_NORM_SLICES_CASE_H
#define TEST_NORM_SLICES_CASE_H

#include "fixture.h"

enum { SLICES_MOST = 5 };

struct slices_case {
    uint64_t rows;
    uint64_t groups;             /* segments of a row that every slice has a part of; 0: slices have whole segments */
    uint64_t parts[SLICES_MOST]; /* of each slice: elements of a segment, or whole segments; ended by 0 */
    uint64_t whole;              /* elements of a segment where slices have whole ones; else 0 */
    int norm;
    int x, weight, out; /* dtypes; weight: of bias too; out: of y, dy, dx, dweight and dbias */
    int input;          /* an enum input */
    uint64_t gap;       /* elements between rows */
    uint64_t shift;     /* elements from an address that is aligned for every vector to the first one */
    uint64_t views;     /* 0: rows are consecutive; n: the next row lies rows / n places further on */
    bool in_place;      /* y lies where x does, dx where dy does */
    const char *config; /* of all but backward_apply, which has its own */
    const char *apply_config;
};

/* The part of a slice. moments and sums have a row for each segment. */
struct slice {
    uint64_t begin; /* index of its first element in a segment, or of its first segment */
    uint64_t cols, group_size, groups;
    struct tensor x, dy, weight, bias, moments, y, sums, dx, dweight, dbias;
};

struct slices_run {
    const struct slices_case *c;
    unsigned slices;
    uint64_t cols, group_size;         /* of whole rows */
    struct tensor x, dy, weight, bias; /* of whole rows, in host memory */
    struct slice slice[SLICES_MOST];
    double width; /* smallest number of elements that a statistics kernel adds side by side */
};

struct slices_run slices_run_make(const struct slices_case *c);
void slices_run_free(struct slices_run *run);

/* The column of whole rows that is this column of a slice. */
uint64_t slices_column(const struct slices_run *run, const struct slice *slice, uint64_t column);

/* The index at which a row lies among the rows of a slice's matrices. */
uint64_t slices_row(const struct slices_case *c, uint64_t row);

/* The matrix that has a slice's dx: dy itself in place. */
const struct tensor *slices_dx(const struct slices_run *run, const struct slice *slice);

/* Runs all four operations on every slice, and merges on the host. Returns whether nothing but the results was written. */
bool slices_run_execute(const struct fixture *fixture, struct slices_run *run);

/* Runs and checks every case that the device can run; the first wrong one ends the test. Returns the number of cases that
 * ran. */
unsigned slices_cases_are_right(const struct fixture *fixture, const struct slices_case *cases, size_t count);

#endif
