/* `clnorm tune --grid`: measures the model's best configs over many widths, for the library's database. */
#ifndef TUNE_GRID_H
#define TUNE_GRID_H

#include "bench_request.h"

struct grid_request {
    char *widths; /* "64,128,…"; NULL or "grid": the usual ones */
    char *bytes;  /* of x, for each of which every width is measured; NULL: "64M,8M" */
    int candidates;
    int jobs; /* processes that compile ahead of the measurement */
};

/* Appends a row to the file for each operation, dtype, width and size that it has none for. */
bool tune_grid(const struct bench_request *request, const struct grid_request *grid, const char *path, struct fault *fault);

#endif
