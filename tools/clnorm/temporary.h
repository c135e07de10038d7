/* A folder for one run. */
#ifndef TEMPORARY_H
#define TEMPORARY_H

#include "fault.h"

enum { TEMPORARY_PATH = 512 };

/* Makes an empty one, in $TMPDIR or /tmp, one at a time. Called before OpenCL is touched: it forks a process that removes
 * the folder however this one ends. */
bool temporary_make(char path[TEMPORARY_PATH], struct fault *fault);

/* Points every cache of compiled programs, the drivers' too, at folders within it, before OpenCL is touched. */
bool temporary_caches(const char *path, struct fault *fault);

/* Removes it and all that is in it. */
void temporary_remove(const char *path);

#endif
