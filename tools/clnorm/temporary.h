/* A temporary folder. */
#ifndef TEMPORARY_H
#define TEMPORARY_H

#include "fault.h"

enum { TEMPORARY_PATH = 512 };

/* Makes an empty folder in $TMPDIR or /tmp; there may be one at a time. Forks a process that removes the folder however
 * this process ends, so that it must come before any call of OpenCL. */
bool temporary_make(char path[TEMPORARY_PATH], struct fault *fault);

/* Sets variables of the environment so that all caches of compiled programs, the drivers' included, are in the folder. Must
 * come before any call of OpenCL. */
bool temporary_caches(const char *path, struct fault *fault);

/* Removes the folder and its contents. */
void temporary_remove(const char *path);

#endif
