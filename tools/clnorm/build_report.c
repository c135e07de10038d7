#include "build_report.h"

#include <stdlib.h>
#include <string.h>

static const char heading[] = "Compiling entry function '";

/* Where the log's last lines on a kernel begin; NULL: there are none. */
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

/* The number before a word, "32 registers", in a text of this length. */
static long number_before(const char *text, size_t length, const char *word) {
    const char *const end = text + length;
    const char *at = strstr(text, word);
    if (!at || at >= end)
        return NOT_TOLD;
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return *at == ' ' ? NOT_TOLD : strtol(at, NULL, 10);
}

struct build_report build_report_read(const char *log, const char *kernel) {
    const char *const section = find_section(log, kernel);
    if (!section)
        return (struct build_report){NOT_TOLD, NOT_TOLD, NOT_TOLD, NOT_TOLD};
    const char *const next = strstr(section, heading);
    const size_t length = next ? (size_t)(next - section) : strlen(section);
    return (struct build_report){
        .registers = number_before(section, length, " registers"),
        .stack = number_before(section, length, " bytes stack frame"),
        .spill_stores = number_before(section, length, " bytes spill stores"),
        .spill_loads = number_before(section, length, " bytes spill loads"),
    };
}
