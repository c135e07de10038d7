/* Replaces a file at once: the output goes to a temporary file beside it, which is renamed when it is complete. The earlier
 * file stays where writing fails or a signal ends the program. */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include <stdio.h>

#include "fault.h"

struct output_file {
    FILE *stream;    /* to write to */
    char *path;      /* symbolic links are followed */
    char *temporary; /* path, the time, the process's number, ".tmp" */
};

/* Notes which signals the program's caller ignores: they remove no file. Must come before any call of OpenCL, whose drivers
 * replace handlers. */
void output_file_start(void);

/* Whether a file can be written there: the folder takes new files, and holds nothing or a regular file of that name. */
bool output_file_check(const char *path, struct fault *fault);

/* Replaces regular files only, and keeps their permissions. One output file may be open at a time. A failure leaves no
 * temporary file. */
bool output_file_open(struct output_file *file, const char *path, struct fault *fault);

/* good: the output is complete. Otherwise, and on failure, the earlier file stays. */
bool output_file_close(struct output_file *file, bool good, struct fault *fault);

/* Whether both paths lead to the same existing file. */
bool output_file_is(const char *path, const char *other);

#endif
