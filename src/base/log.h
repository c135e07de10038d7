/* Writes one line to the caller's log, if there is one. */
#ifndef CLN_LOG_H
#define CLN_LOG_H

#include "clnorm/clnorm.h"

__attribute__((format(printf, 2, 3))) void cln_log(const clnorm_context *context, const char *format, ...);

#endif
