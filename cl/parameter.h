/* A kernel's parameters for a tensor that may be absent, or for a number that may not count: none then, as a launch costs
 * by the parameter. On an H200 eight tensors less made the plain RMS norm of one row take 4.3 us instead of 4.8.
 *
 *     OPTIONAL(there, type, name)         type name, const ulong name_at,
 *     OPTIONAL_AT(there, name)            its first element
 *     OPTIONAL_NUMBER(there, type, name)  const type name,
 *     NUMBER_OR_0(there, name)            it
 *
 * there: 1 or 0, or a macro that is one of them; src/norm_stages.c and norm_backward_stages.c bind what is there. */
#ifndef PARAMETER_H
#define PARAMETER_H

#include "vector.h"

#define OPTIONAL(there, type, name) JOIN(OPTIONAL_, there)(type, name)
#define OPTIONAL_1(type, name) type name, const ulong name##_at,
#define OPTIONAL_0(type, name)

#define OPTIONAL_AT(there, name) JOIN(OPTIONAL_AT_, there)(name)
#define OPTIONAL_AT_1(name) (name + name##_at)
#define OPTIONAL_AT_0(name) 0

#define OPTIONAL_NUMBER(there, type, name) JOIN(OPTIONAL_NUMBER_, there)(type, name)
#define OPTIONAL_NUMBER_1(type, name) const type name,
#define OPTIONAL_NUMBER_0(type, name)

#define NUMBER_OR_0(there, name) JOIN(NUMBER_OR_0_, there)(name)
#define NUMBER_OR_0_1(name) name
#define NUMBER_OR_0_0(name) 0

#endif
