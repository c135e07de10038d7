/* A file that is written where it lies, and keeps what it holds until then. */
#ifndef KEPT_FILE_H
#define KEPT_FILE_H

#include <stdio.h>

#include "fault.h"

/* Opens a file of any kind, or makes one. flags and mode: of open() and fdopen(). *made: it was not there before. NULL:
 * fault says why. A regular file that another run has opened is refused; devices and pipes are for any number of runs. */
FILE *kept_file_open(const char *path, int flags, const char *mode, bool *made, struct fault *fault);

#endif
