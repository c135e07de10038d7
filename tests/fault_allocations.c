#include "fault_allocations.h"

#include <stddef.h>

/* The linker's --wrap redirects the calls of this program, and of the static library in it, to these. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);

struct fault_allocations fault_allocations;

static bool allocation_fails(void) {
    if (fault_allocations.to_failure == 0 || --fault_allocations.to_failure > 0)
        return false;
    fault_allocations.failed = true;
    return true;
}

void *__wrap_malloc(size_t size) {
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return allocation_fails() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text) {
    return allocation_fails() ? NULL : __real_strdup(text);
}
