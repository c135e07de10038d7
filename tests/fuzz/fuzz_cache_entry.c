/* Files of the program cache: a file is loaded only where its format, lengths, key and digest are right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "clnorm/clnorm.h"
#include "fuzz.h"
#include "program/cache.h"

/* Offsets of a file's fields, in bytes. */
enum { KEY_LENGTH = 8, PAYLOAD_LENGTH = 16, DIGEST = 24, KEY = 40 };

static struct cln_cache_key key;
static char path[256];

static void remember_path(const clnorm_cache_entry *entry, void *user) {
    (void)user;
    (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder(), entry->file);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count, (void)arguments;
    cln_cache_key_add_text(&key, "softmax.cl");
    cln_cache_key_add_text(&key, "Made up 1");
    cln_cache_key_add_text(&key, "-DVEC=4");
    cln_cache_store(fuzz_folder(), &key, (const unsigned char *)"program", 7);
    return clnorm_cache_list(fuzz_folder(), remember_path, NULL) || !*path;
}

/* Makes lengths and digest match the bytes. key_length is limited to the bytes after the header. */
static void mend_header(uint8_t *data, size_t size, uint64_t key_length) {
    key_length = key_length < size - KEY ? key_length : size - KEY - 1;
    const uint64_t payload_length = size - KEY - key_length;
    const XXH128_hash_t digest = XXH3_128bits(data + KEY + key_length, payload_length);
    memcpy(data + KEY_LENGTH, &key_length, sizeof key_length);
    memcpy(data + PAYLOAD_LENGTH, &payload_length, sizeof payload_length);
    memcpy(data + DIGEST, &digest, sizeof digest);
}

/* Most mutants get a valid header: few would pass its check by chance. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, capacity);
    if (size > KEY && seed % 4)
        mend_header(data, size, seed % 4 == 1 ? seed / 4 % 256 : key.length);
    return size;
}

/* The length of the payload, computed without the library; 0 for an invalid file. */
static size_t payload_of(const uint8_t *data, size_t size) {
    uint64_t key_length = 0, payload_length = 0;
    XXH128_hash_t digest;
    if (size <= KEY + key.length)
        return 0;
    memcpy(&key_length, data + KEY_LENGTH, sizeof key_length);
    memcpy(&payload_length, data + PAYLOAD_LENGTH, sizeof payload_length);
    memcpy(&digest, data + DIGEST, sizeof digest);
    const bool sound = memcmp(data, "CNRM\1\0\0\0", KEY_LENGTH) == 0 && key_length == key.length &&
                       payload_length == size - KEY - key.length && memcmp(data + KEY, key.bytes, key.length) == 0 &&
                       XXH128_isEqual(XXH3_128bits(data + KEY + key.length, (size_t)payload_length), digest);
    return sound ? (size_t)payload_length : 0;
}

static void read_texts(const clnorm_cache_entry *entry, void *user) {
    size_t *const bytes = user;
    *bytes += entry->size + strlen(entry->source) + strlen(entry->device) + strlen(entry->options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *payload = NULL;
    size_t length = 0, bytes = 0;
    fuzz_write(path, data, size);
    if (clnorm_cache_list(fuzz_folder(), read_texts, &bytes) || bytes < size)
        abort();
    const bool loaded = cln_cache_load(fuzz_folder(), &key, &payload, &length);
    const size_t expected = payload_of(data, size);
    if (loaded != (expected > 0) || length * loaded != expected)
        abort();
    if (loaded && memcmp(payload, data + size - length, length) != 0)
        abort();
    if (!loaded && access(path, F_OK) == 0) /* an invalid file must be removed */
        abort();
    free(payload);
    return 0;
}
