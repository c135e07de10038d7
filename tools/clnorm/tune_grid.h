/* `clnorm tune --grid`: measures the configs that the model ranks first at many widths, for the library's database. */
#ifndef TUNE_GRID_H
#define TUNE_GRID_H

#include "bench_request.h"

struct grid_request {
    char *widths; /* "64,128,…"; NULL or "grid": the usual ones */
    char *bytes;  /* sizes of x; every width is measured with each; NULL: "64M,8M" */
    int candidates;
    int jobs;   /* processes that compile ahead of the measurement */
    bool force; /* replace a file of another device */
};

/* Appends a row to the file for each operation, dtype, width and size without one. */
bool tune_grid(const struct bench_request *request, const struct grid_request *options, const char *path,
               struct fault *fault);

#endif
