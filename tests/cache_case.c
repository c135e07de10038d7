#include "cache_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct cln_cache_key make_key(const char *last) {
    struct cln_cache_key key = {NULL, 0};
    cln_cache_key_add_text(&key, "norm.cl");
    cln_cache_key_add_text(&key, "A Device");
    cln_cache_key_add_text(&key, "-D VEC=4");
    cln_cache_key_add_text(&key, last);
    return key;
}

const char cache_payload[] = "what the driver gave us\0\1\2\3 and some more of it";
const size_t cache_payload_size = sizeof cache_payload;

void store(const char *dir, const char *last) {
    struct cln_cache_key key = make_key(last);
    cln_cache_store(dir, &key, (const unsigned char *)cache_payload, cache_payload_size);
    cln_cache_key_free(&key);
}

bool fetch(const char *dir, const char *last) {
    struct cln_cache_key key = make_key(last);
    unsigned char *bytes = NULL;
    size_t length = 0;
    const bool there = cln_cache_load(dir, &key, &bytes, &length);
    if (there) {
        assert_int_equal(length, cache_payload_size);
        assert_memory_equal(bytes, cache_payload, cache_payload_size);
    } else {
        assert_null(bytes);
    }
    free(bytes);
    cln_cache_key_free(&key);
    return there;
}
