/* What the parts of the soak share. */
#ifndef TEST_SOAK_H
#define TEST_SOAK_H

#include <stdint.h>

#include "clnorm/clnorm.h"

/* Ends the process with exit status 1 and a sentence. */
__attribute__((format(printf, 1, 2), noreturn)) void soak_fail(const char *format, ...);

/* Ends it where an OpenCL call failed. */
void soak_check(cl_int code, const char *what);

/* Below limit. */
uint64_t soak_random(uint64_t *state, uint64_t limit);

/* Kills so many processes while they write to a program cache: no entry may be wrong, and what they leave is cleared away.
 */
void soak_kills(uint64_t kills, uint64_t seed);

#endif
