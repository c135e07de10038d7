/* Entries of the cache of compiled programs, of one payload and with keys that differ in their last part. */
#ifndef TEST_CACHE_CASE_H
#define TEST_CACHE_CASE_H

#include <stdbool.h>

#include "program/cache.h"

extern const char cache_payload[];
extern const size_t cache_payload_size;

struct cln_cache_key make_key(const char *last);

/* Stores an entry. */
void store(const char *dir, const char *last);

/* Whether the entry is there; when it is, it is the payload. */
bool fetch(const char *dir, const char *last);

#endif
