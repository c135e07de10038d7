/* The JSON lines of a benchmark. An earlier file stays as it is until the first line, so that a request that is refused
 * leaves it alone. */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "fault.h"

struct bench_output {
    const char *path; /* borrowed */
    FILE *stream;     /* NULL: no lines are wanted */
    bool made;        /* there was no such file */
    bool begun;       /* the file is empty, or has lines of this program alone */
};

/* path: NULL: none are wanted; "-": standard output. */
bool bench_output_open(struct bench_output *output, const char *path, struct fault *fault);

/* Writes a line, with flags of json_dumpf, and releases it. line: NULL: out of memory. */
bool bench_output_line(struct bench_output *output, json_t *line, size_t flags, struct fault *fault);

/* good: the file replaces an earlier one even where it has no lines. Otherwise a new file without lines is removed. */
bool bench_output_close(struct bench_output *output, bool good, struct fault *fault);

#endif
