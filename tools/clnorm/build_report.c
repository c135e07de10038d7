#include "build_report.h"

#include <stdlib.h>
#include <string.h>

static const char heading[] = "Compiling entry function '";

/* The beginning of the log's last section on a kernel; NULL: there is none. */
static const char *find_section(const char *log, const char *kernel) {
    const char *found = NULL;
    const size_t length = strlen(kernel);
    for (const char *at = strstr(log, heading); at; at = strstr(at, heading)) {
        at += sizeof heading - 1;
        if (!strncmp(at, kernel, length) && at[length] == '\'')
            found = at;
    }
    return found;
}

/* The number before a word, as in "32 registers", in the first `length` bytes of a text. */
static long number_before(const char *text, size_t length, const char *word) {
    const char *const end = text + length;
    const char *at = strstr(text, word);
    if (!at || at >= end)
        return NOT_REPORTED;
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return *at == ' ' ? NOT_REPORTED : strtol(at, NULL, 10);
}

struct build_report build_report_read(const char *log, const char *kernel) {
    const char *const section = find_section(log, kernel);
    if (!section)
        return (struct build_report){NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED};
    const char *const next = strstr(section, heading);
    const size_t length = next ? (size_t)(next - section) : strlen(section);
    return (struct build_report){
        .registers = number_before(section, length, " registers"),
        .stack = number_before(section, length, " bytes stack frame"),
        .spill_stores = number_before(section, length, " bytes spill stores"),
        .spill_loads = number_before(section, length, " bytes spill loads"),
    };
}
