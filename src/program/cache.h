/* Compiled programs on disk, one file for each entry. Every failure is a miss: no function returns an error.
 *
 * An entry has magic, format number, key length, payload length, XXH128 of the payload, the key and the payload. It is read
 * whole and verified before the payload is used. It is written under a temporary name and renamed, so that a reader sees
 * all of it or nothing. Its name is the XXH128 of the key. The folder is made with mode 0700, and is not used where another
 * user owns it or may write to it. */
#ifndef CLN_CACHE_H
#define CLN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The key of an entry: length-prefixed parts, so that no two lists of parts give the same bytes. The first three are texts
 * with their NUL, which clnorm_cache_list shows: source, device, options. */
struct cln_cache_key {
    unsigned char *bytes; /* owned; NULL when empty, and after a failed allocation, which makes every use a miss */
    size_t length;
};

void cln_cache_key_add(struct cln_cache_key *key, const void *part, size_t length);
void cln_cache_key_add_text(struct cln_cache_key *key, const char *text);
void cln_cache_key_free(struct cln_cache_key *key);

/* The text at *offset, which is advanced to the next part; NULL when there is no sound text there. */
const char *cln_cache_key_text(const struct cln_cache_key *key, size_t *offset);

/* Fetches an entry into a new allocation. false: there is no such entry, or it is damaged (then it is removed). */
bool cln_cache_load(const char *dir, const struct cln_cache_key *key, unsigned char **payload, size_t *length);

/* Stores an entry, and removes the least recently used ones while the folder is larger than its limit. */
void cln_cache_store(const char *dir, const struct cln_cache_key *key, const unsigned char *payload, size_t length);

/* Removes an entry, such as one that the driver refuses. */
void cln_cache_remove(const char *dir, const struct cln_cache_key *key);

/* Reads the key of an entry of an open folder, without looking at the payload. */
bool cln_cache_peek(int folder, const char *name, struct cln_cache_key *key);

#endif
