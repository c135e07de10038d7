/* Structs that cross the API begin with their size: an older caller's are smaller, a newer one's larger. */
#ifndef CLN_STRUCT_SIZE_H
#define CLN_STRUCT_SIZE_H

#include "clnorm/base.h"

/* The name, initialiser and size of a kind of struct, for error messages. */
struct cln_struct {
    const char *name; /* "desc" */
    const char *init; /* "CLNORM_NORM_DESC_INIT" */
    size_t size;      /* bytes, as this library knows it */
};

/* Copies an input struct to own. Where the input is smaller, the rest of own keeps its defaults. A larger one's extra
 * bytes must be 0. */
clnorm_status cln_struct_take(const struct cln_struct *kind, const void *given, void *own);

/* Whether an output struct's size is plausible. */
clnorm_status cln_struct_check(const struct cln_struct *kind, const void *given);

/* Copies own to an output struct that was checked, as far as that has room. The output's size stays. */
void cln_struct_give(const struct cln_struct *kind, const void *own, void *given);

#endif
