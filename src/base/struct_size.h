/* Structs that cross the API begin with their size: an older caller's are smaller, a newer one's larger. */
#ifndef CLN_STRUCT_SIZE_H
#define CLN_STRUCT_SIZE_H

#include "clnorm/base.h"

/* What a kind of struct is called and starts from, for a failure. */
struct cln_struct {
    const char *name; /* "desc" */
    const char *init; /* "CLNORM_NORM_DESC_INIT" */
    size_t size;      /* bytes, as this library knows it */
};

/* Reads an input into own, which has the defaults of what a smaller one lacks. A larger one's extra bytes must be 0. */
clnorm_status cln_struct_take(const struct cln_struct *kind, const void *given, void *own);

/* Whether an output's size is one that a caller can have. */
clnorm_status cln_struct_check(const struct cln_struct *kind, const void *given);

/* Writes own into an output that was checked, as far as it has room, but for its size. */
void cln_struct_give(const struct cln_struct *kind, const void *own, void *given);

#endif
