/* Every operation. */
#include "operation/operations.h"

#include <stddef.h>

#define RECORD(name) &cln_##name,

const struct cln_operation *const cln_operations[] = {CLN_OPERATION_LIST(RECORD, RECORD) NULL};
