/* One group norm on the device, forward or backward. */
#ifndef TEST_GROUP_NORM_CASE_H
#define TEST_GROUP_NORM_CASE_H

#include "clnorm/group_norm.h"
#include "fixture.h"

struct group_case {
    uint64_t rows, cols, spatial, groups;
    int layout;
    int x, out;   /* dtypes; out: of y, dy and dx */
    int affine;   /* of weight, bias, dweight and dbias; 0: there are none */
    int residual; /* of residual and residual_out; 0: there is none */
    int activation;
    int input;           /* an enum input */
    uint64_t gap, shift; /* elements between samples, and before the first one */
    const char *config;
};

/* Options of few cases. */
struct group_more {
    int x_scaling, x_scale;       /* of an 8-bit x: a clnorm_scaling, and the dtype of its scales */
    int y, y_scaling;             /* of an 8-bit y: its dtype and a clnorm_scaling; 0: y has out's dtype */
    int y_scale;                  /* dtype of measured scales */
    double y_given;               /* y's scale; 0: it is measured */
    int dresidual_out, dresidual; /* dtypes; 0: there is none */
    bool accumulate;
    bool residual_in_place; /* residual_out lies over residual */
    bool dx_over_x;
};

struct group_run {
    const struct group_case *c;
    struct group_more more;
    struct tensor x, residual, weight, bias, y, residual_out, mean, rstd, dy, dx, dweight, dbias, workspace;
    struct tensor x_scale, y_scale, dresidual_out, dresidual;
    struct tensor dweight_before, dbias_before; /* values before accumulation, in host memory alone */
};

struct group_run group_run_make(const struct group_case *c);
struct group_run group_run_make_more(const struct group_case *c, const struct group_more *more);
void group_run_free(struct group_run *run);

clnorm_group_norm_desc group_forward_desc(const struct group_run *run);

/* Uploads, runs and reads the results; without a tensor mean or rstd these are not saved. Returns whether nothing else was
 * written. in_place: y lies over x. */
bool group_forward_execute(const struct fixture *fixture, struct group_run *run, bool in_place);

/* Whether the case runs with a layout on this device; sets its layout if so. A case that names a layout runs with that
 * one, others with both. In a quick set two thirds of the cases run, with one of the layouts, and a third of those that
 * name one: see fixture_takes(). Devices that are slow or need aligned vectors run fewer cases. i: index of the case. */
bool group_case_takes(const struct fixture *fixture, struct group_case *c, int layout, size_t i);

/* The same for a gradient, with given statistics or without: one case in four is without them, and its plan begins with
 * kernels of the forward. */
bool group_case_takes_gradient(const struct fixture *fixture, struct group_case *c, int layout, size_t i, bool given);

/* The i-th case in place, with whole segments, chunks, a forced config that keeps segments in registers, rows that no
 * vectors fill, a single position, and few channels; each with both layouts. Returns whether it runs on this device. */
enum { GROUP_CASES_IN_PLACE = 14 };
bool group_case_in_place(const struct fixture *fixture, size_t i, const char *held, struct group_case *c);

/* A case whose config also names a row split. config: keeps its text, of size bytes. */
struct group_case group_case_with_row_split(const struct group_case *c, const char *row_split, char *config, size_t size);

/* Whether the samples of a case have the same bits in two tensors, which may have more. */
bool group_samples_equal(const struct group_case *c, const struct tensor *a, const struct tensor *b);

/* Ends the test with a message that names the case. */
void group_case_fail(const struct fixture *fixture, const struct group_case *c, size_t i);

clnorm_group_norm_backward_desc group_backward_desc(const struct group_run *run, bool statistics_given);

/* The same for the backward. statistics_given: it reads mean and rstd, which a forward of the run wrote before. in_place:
 * dx lies over dy, and dresidual over dresidual_out. */
bool group_backward_execute(const struct fixture *fixture, struct group_run *run, bool statistics_given, bool in_place);

#endif
