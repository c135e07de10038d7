#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

bool fault_set(struct fault *fault, int code, const char *format, ...) {
    fault->code = code;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    for (char *c = fault->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            *c = '?';
    return false;
}

static int exit_code(clnorm_status status) {
    switch (status) {
    case CLNORM_INVALID_ARGUMENT:
    case CLNORM_INVALID_ENUM:
    case CLNORM_INVALID_VALUE:
    case CLNORM_INVALID_SHAPE:
    case CLNORM_INVALID_SELECTOR:
    case CLNORM_OVERFLOW:
        return EXIT_REQUEST;
    default:
        return EXIT_FAILED;
    }
}

bool fault_library(struct fault *fault, clnorm_status status, const char *what) {
    const char *const detail = clnorm_error_detail();
    fault_set(fault, exit_code(status), "%s: ", what);
    size_t length = strlen(fault->text);
    for (const char *c = *detail ? detail : clnorm_status_text(status); *c && length + 1 < sizeof fault->text; c++)
        fault->text[length++] = (char)((unsigned char)*c < ' ' ? ' ' : *c); /* a build log has lines */
    fault->text[length] = '\0';
    return false;
}

bool fault_opencl(struct fault *fault, cl_int code, const char *call, const char *what) {
    return fault_set(fault, EXIT_FAILED, "%s: %s failed with %s (%d)", what, call, cln_opencl_code_name(code), (int)code);
}
