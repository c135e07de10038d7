/* Common parts of the soak. */
#ifndef TEST_SOAK_H
#define TEST_SOAK_H

#include <stdint.h>

#include "clnorm/clnorm.h"

/* Ends the process with exit status 1 and a message. */
__attribute__((format(printf, 1, 2), noreturn)) void soak_fail(const char *format, ...);

/* The same where an OpenCL call failed. */
void soak_check(cl_int code, const char *what);

/* A random number below limit. */
uint64_t soak_random(uint64_t *state, uint64_t limit);

/* Kills processes, as many as kills says, while they write to a program cache. No entry may be wrong, and their temporary
 * files must be removed. */
void soak_kills(uint64_t kills, uint64_t seed);

#endif
