#include "base/struct_size.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"

/* A size of more bytes was never set: no struct of a newer library will be that large. */
enum { MOST = 4096 };

static uint64_t size_of(const void *given) {
    uint64_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

clnorm_status cln_struct_check(const struct cln_struct *kind, const void *given) {
    if (!given)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", kind->name);
    const uint64_t size = size_of(given), most = kind->size > MOST ? kind->size : MOST;
    if (size < 2 * sizeof size || size > most || size % sizeof(uint32_t))
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s.size is %" PRIu64 ": expected %zu, start from %s", kind->name, size,
                        kind->size, kind->init);
    return CLNORM_SUCCESS;
}

clnorm_status cln_struct_take(const struct cln_struct *kind, const void *given, void *own) {
    const clnorm_status status = cln_struct_check(kind, given);
    if (status)
        return status;
    const uint64_t size = size_of(given), known = kind->size;
    for (uint64_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i])
            return cln_fail(CLNORM_INVALID_ARGUMENT,
                            "%s.size is %" PRIu64 ": expected %zu, or zeros from there on; the header is newer than the "
                            "library",
                            kind->name, size, kind->size);
    memcpy(own, given, (size_t)(size < known ? size : known));
    memcpy(own, &known, sizeof known);
    return CLNORM_SUCCESS;
}

void cln_struct_give(const struct cln_struct *kind, const void *own, void *given) {
    const uint64_t size = size_of(given);
    memcpy(given, own, (size_t)(size < kind->size ? size : kind->size));
    memcpy(given, &size, sizeof size);
}
