#include <stdlib.h>
#include <string.h>

#include "program/cache.h"

/* The length of a key that lacks a part, as an allocation failed. */
static const size_t broken = SIZE_MAX;

void cln_cache_key_add(struct cln_cache_key *key, const void *part, size_t length) {
    if (!key->bytes && key->length == broken)
        return;
    const uint64_t prefix = length;
    const size_t room = SIZE_MAX - sizeof prefix - key->length;
    unsigned char *const bytes = length < room ? realloc(key->bytes, key->length + sizeof prefix + length) : NULL;
    if (!bytes) {
        cln_cache_key_free(key);
        key->length = broken;
        return;
    }
    memcpy(bytes + key->length, &prefix, sizeof prefix);
    if (length > 0)
        memcpy(bytes + key->length + sizeof prefix, part, length);
    key->bytes = bytes;
    key->length += sizeof prefix + length;
}

void cln_cache_key_add_text(struct cln_cache_key *key, const char *text) {
    cln_cache_key_add(key, text, strlen(text) + 1);
}

void cln_cache_key_free(struct cln_cache_key *key) {
    free(key->bytes);
    key->bytes = NULL;
    key->length = 0;
}

const char *cln_cache_key_text(const struct cln_cache_key *key, size_t *offset) {
    uint64_t length = 0;
    if (!key->bytes || *offset > key->length || key->length - *offset < sizeof length)
        return NULL;
    memcpy(&length, key->bytes + *offset, sizeof length);
    const size_t start = *offset + sizeof length;
    if (length == 0 || length > key->length - start || key->bytes[start + length - 1] != '\0')
        return NULL;
    *offset = start + (size_t)length;
    return (const char *)key->bytes + start;
}
