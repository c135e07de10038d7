#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/context.h"

void cln_log(const clnorm_context *context, const char *format, ...) {
    if (!context->log) {
        return;
    }
    char line[2048]; /* bytes; a program's line with more build options is cut */
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        context->log(line, context->log_user);
    }
}
