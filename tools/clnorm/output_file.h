/* A file that is written beside its place and takes it when it is complete. What was there before stays until then, and
 * stays where the writing fails or a signal ends the program. */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include <stdio.h>

#include "fault.h"

struct output_file {
    FILE *stream;    /* to write to */
    char *path;      /* symbolic links are followed */
    char *temporary; /* path, the process's number, ".tmp" */
};

/* Whether a file can be written there: the folder takes new files, and holds nothing or a regular file of that name. */
bool output_file_check(const char *path, struct fault *fault);

/* Replaces regular files alone, and keeps their permissions. One file is open at a time. On failure nothing is left. */
bool output_file_open(struct output_file *file, const char *path, struct fault *fault);

/* good: what was written is what was meant to be. Otherwise, and on failure, the file that was there before stays. */
bool output_file_close(struct output_file *file, bool good, struct fault *fault);

/* Whether both paths lead to the same existing file. */
bool output_file_is(const char *path, const char *other);

#endif
