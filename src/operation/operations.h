/* The records of the operations, each defined in the file of its name. */
#ifndef CLN_OPERATIONS_H
#define CLN_OPERATIONS_H

#include "operation/list.h"
#include "operation/operation.h"

#define CLN_DECLARE(name) extern const struct cln_operation cln_##name;
CLN_OPERATION_LIST(CLN_DECLARE, CLN_DECLARE)
#undef CLN_DECLARE

#endif
