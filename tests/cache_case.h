/* Entries of the program cache, with one payload and keys that differ in their last part. */
#ifndef TEST_CACHE_CASE_H
#define TEST_CACHE_CASE_H

#include <stdbool.h>

#include "program/cache.h"

extern const char cache_payload[];
extern const size_t cache_payload_size;

struct cln_cache_key make_key(const char *last);

/* Stores an entry. */
void store(const char *dir, const char *last);

/* Whether the entry is in the cache; checks that a loaded entry equals the payload. */
bool fetch(const char *dir, const char *last);

#endif
