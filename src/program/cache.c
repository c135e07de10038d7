#include "program/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "program/cache_folder.h"

enum { FORMAT = 1 };

static const uint64_t folder_cap = UINT64_C(256) << 20;
static const uint64_t entry_cap = UINT64_C(64) << 20;

/* The start of a file; the bytes of the key and of the payload follow. In the host's byte order: with another one the
 * magic differs. */
struct header {
    uint32_t magic;
    uint32_t format;
    uint64_t key_length;
    uint64_t payload_length;
    XXH128_hash_t payload_digest;
};

_Static_assert(sizeof(struct header) == 40, "the header has no padding");

static const uint32_t magic = 0x4d524e43; /* "CNRM" in little-endian order */

static void name_entry(const struct cln_cache_key *key, char name[CLN_FILE_CAPACITY]) {
    const XXH128_hash_t digest = XXH3_128bits(key->bytes, key->length);
    (void)snprintf(name, CLN_FILE_CAPACITY, "%016" PRIx64 "%016" PRIx64 ".clnorm", digest.high64, digest.low64);
}

/* -------------------------------------------------------------------------------------------------- reading, writing */

/* Opens without following a link, and without waiting where the file is a pipe. */
static int open_entry(int folder, const char *name) {
    return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* The size of a regular file that can be an entry; 0 for anything else. */
static uint64_t entry_size(int file) {
    struct stat facts;
    const bool regular = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0;
    return regular && (uint64_t)facts.st_size <= entry_cap ? (uint64_t)facts.st_size : 0;
}

static bool read_bytes(int file, void *bytes, size_t length) {
    unsigned char *at = bytes;
    while (length > 0) {
        const ssize_t got = read(file, at, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        length -= (size_t)got;
    }
    return true;
}

static bool write_bytes(int file, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    while (length > 0) {
        const ssize_t put = write(file, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        length -= (size_t)put;
    }
    return true;
}

/* Whether the lengths that a header gives add up to the size of its file. */
static bool fits(const struct header *header, uint64_t size) {
    return size > sizeof *header && header->magic == magic && header->format == FORMAT &&
           header->key_length < size - sizeof *header &&
           header->payload_length == size - sizeof *header - header->key_length;
}

/* ------------------------------------------------------------------------------------------------------------ loading */

/* Whether a file's bytes are what was stored under this key. If so, *payload and *length are set to the part that is the
 * payload. */
static bool verify(const unsigned char *bytes, uint64_t size, const struct cln_cache_key *key,
                   const unsigned char **payload, size_t *length) {
    struct header header;
    if (size < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    if (!fits(&header, size) || header.key_length != key->length ||
        memcmp(bytes + sizeof header, key->bytes, key->length) != 0)
        return false;
    *payload = bytes + sizeof header + key->length;
    *length = (size_t)header.payload_length;
    return XXH128_isEqual(XXH3_128bits(*payload, *length), header.payload_digest);
}

/* The payload of an open file; NULL when it cannot be read. *unsound: the file should be removed. */
static unsigned char *read_payload(int file, const struct cln_cache_key *key, size_t *length, bool *unsound) {
    const uint64_t size = entry_size(file);
    unsigned char *const bytes = size > 0 ? malloc((size_t)size) : NULL;
    const unsigned char *payload = NULL;
    *unsound = size == 0;
    if (!bytes)
        return NULL;
    if (!read_bytes(file, bytes, (size_t)size) || !verify(bytes, size, key, &payload, length)) {
        *unsound = true;
        free(bytes);
        return NULL;
    }
    memmove(bytes, payload, *length);
    return bytes;
}

bool cln_cache_load(const char *dir, const struct cln_cache_key *key, unsigned char **payload, size_t *length) {
    char name[CLN_FILE_CAPACITY];
    int folder = -1;
    if (!key->bytes || cln_folder_open(dir, &folder) != CLN_FOLDER_OPEN)
        return false;
    name_entry(key, name);
    const int file = open_entry(folder, name);
    unsigned char *bytes = NULL;
    if (file >= 0) {
        bool unsound = false;
        bytes = read_payload(file, key, length, &unsound);
        if (unsound)
            (void)cln_folder_remove(folder, name);
        if (bytes)
            (void)futimens(file, NULL); /* the least recently used files are removed first */
        (void)close(file);
    }
    (void)close(folder);
    if (bytes)
        *payload = bytes;
    return bytes != NULL;
}

bool cln_cache_peek(int folder, const char *name, struct cln_cache_key *key) {
    struct header header;
    const int file = open_entry(folder, name);
    if (file < 0)
        return false;
    const bool sound = read_bytes(file, &header, sizeof header) && fits(&header, entry_size(file));
    unsigned char *const bytes = sound ? malloc((size_t)header.key_length + 1) : NULL;
    const bool read = bytes && read_bytes(file, bytes, (size_t)header.key_length);
    (void)close(file);
    if (!read) {
        free(bytes);
        return false;
    }
    *key = (struct cln_cache_key){bytes, (size_t)header.key_length};
    return true;
}

void cln_cache_remove(const char *dir, const struct cln_cache_key *key) {
    char name[CLN_FILE_CAPACITY];
    int folder = -1;
    if (!key->bytes || cln_folder_open(dir, &folder) != CLN_FOLDER_OPEN)
        return;
    name_entry(key, name);
    (void)cln_folder_remove(folder, name);
    (void)close(folder);
}

/* ------------------------------------------------------------------------------------------------------------ storing */

/* Makes a name that no other process or thread uses now. Where one does, nothing is stored. */
static void name_temporary(const char *name, char temporary[CLN_FILE_CAPACITY]) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(temporary, CLN_FILE_CAPACITY, "%.*s-%lld.%09ld-%ld.clnorm", (int)CLN_DIGEST_DIGITS, name,
                   (long long)now.tv_sec, now.tv_nsec, (long)getpid());
}

static bool write_entry(int folder, const char *name, const struct header *header, const struct cln_cache_key *key,
                        const unsigned char *payload, size_t length) {
    const int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0)
        return false;
    const bool written = write_bytes(file, header, sizeof *header) && write_bytes(file, key->bytes, key->length) &&
                         write_bytes(file, payload, length);
    const bool kept = close(file) == 0 && written;
    if (!kept)
        (void)cln_folder_remove(folder, name);
    return kept;
}

void cln_cache_store(const char *dir, const struct cln_cache_key *key, const unsigned char *payload, size_t length) {
    char name[CLN_FILE_CAPACITY], temporary[CLN_FILE_CAPACITY];
    int folder = -1;
    if (!key->bytes || length == 0 || key->length > entry_cap / 2 || length > entry_cap / 2 - sizeof(struct header))
        return;
    cln_folder_make(dir);
    if (cln_folder_open(dir, &folder) != CLN_FOLDER_OPEN)
        return;
    const struct header header = {magic, FORMAT, key->length, length, XXH3_128bits(payload, length)};
    name_entry(key, name);
    name_temporary(name, temporary);
    if (write_entry(folder, temporary, &header, key, payload, length) && renameat(folder, temporary, folder, name) != 0)
        (void)cln_folder_remove(folder, temporary);
    cln_folder_trim(folder, folder_cap);
    (void)close(folder);
}
