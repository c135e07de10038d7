/* The folder of the program cache: its path, whether it can be trusted, and which of its files are entries. */
#ifndef CLN_CACHE_FOLDER_H
#define CLN_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The path of the cache's folder in a new allocation: wish, or with NULL the folder that the environment names. "" with
 * CLNORM_CACHE=0, an empty wish, or no home; NULL when memory is out. */
char *cln_cache_dir(const char *wish);

enum cln_folder_state {
    CLN_FOLDER_OPEN,
    CLN_FOLDER_ABSENT,
    CLN_FOLDER_UNREADABLE, /* errno says why */
    CLN_FOLDER_FOREIGN,    /* of another user */
    CLN_FOLDER_LINKED,     /* it is reached by a symbolic link of another user, who chose the folder thereby */
    CLN_FOLDER_SHARED      /* others may write to it */
};

/* Opens a folder. The caller closes *folder after CLN_FOLDER_OPEN. All work is relative to that descriptor, so that the
 * folder that was checked is the one that is used. */
enum cln_folder_state cln_folder_open(const char *dir, int *folder);

/* Makes the folder and its missing parents, with access for the user alone. */
void cln_folder_make(const char *dir);

enum {
    CLN_DIGEST_DIGITS = 32,
    CLN_FILE_CAPACITY = 96 /* bytes of a name; those of entries are shorter */
};

/* A regular file with the name of an entry: 32 hexadecimal digits, a suffix while it is being written, ".clnorm". */
struct cln_file {
    char name[CLN_FILE_CAPACITY];
    uint64_t size;
    struct timespec used; /* modification time, which a hit renews */
};

/* The entries' files, the most recently used first, in a new allocation; NULL and 0 when there are none. false: it
 * cannot be read, as errno says, or memory is out. */
bool cln_folder_scan(int folder, struct cln_file **files, size_t *count);

/* Removes a file if it is a regular one. Returns whether it did. */
bool cln_folder_remove(int folder, const char *name);

/* Removes unfinished files that are an hour old, and then the least recently used entries until the rest has at most so
 * many bytes. Files with times in the future go first: they would count as the most recently used until then. */
void cln_folder_trim(int folder, uint64_t bytes);

#endif
