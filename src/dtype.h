/* What the runtime knows of element types beyond the public name and size. */
#ifndef CLN_DTYPE_H
#define CLN_DTYPE_H

#include "clnorm/clnorm.h"

/* Whether the number is a dtype that a tensor can have (CLNORM_DTYPE_NONE is not). */
bool cln_dtype_valid(clnorm_dtype dtype);

#endif
