/* The folder of the program cache: where it is, whether it can be trusted, and which files in it are ours. */
#ifndef CLN_CACHE_FOLDER_H
#define CLN_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The folder that the environment names, newly allocated; "" when CLNORM_CACHE=0 or there is no home; NULL when out of
 * memory. wish: an explicit folder, or NULL. */
char *cln_cache_dir(const char *wish);

enum cln_folder_state {
    CLN_FOLDER_OPEN,
    CLN_FOLDER_ABSENT,
    CLN_FOLDER_UNREADABLE, /* errno says why */
    CLN_FOLDER_FOREIGN,    /* of another user */
    CLN_FOLDER_LINKED,     /* a symbolic link of another user leads to it: whoever made that chose the folder */
    CLN_FOLDER_SHARED      /* others may write to it */
};

/* Opens a folder; *folder is to be closed when it is CLN_FOLDER_OPEN. All work is relative to that descriptor, so that what
 * was checked is what is used. */
enum cln_folder_state cln_folder_open(const char *dir, int *folder);

/* Makes the folder and its parents, for the user alone, as far as they are missing. */
void cln_folder_make(const char *dir);

enum {
    CLN_DIGEST_DIGITS = 32,
    CLN_FILE_CAPACITY = 96 /* of a name; ours are shorter */
};

/* A regular file that is named like ours: 32 hexadecimal digits, in a file that is being written some more, ".clnorm". */
struct cln_file {
    char name[CLN_FILE_CAPACITY];
    uint64_t size;
    struct timespec used; /* modification time, which a hit renews */
};

/* Our files, the latest used first, in a new allocation; NULL and 0 when there are none. false: out of memory. */
bool cln_folder_scan(int folder, struct cln_file **files, size_t *count);

/* Removes a file, if it is a regular one. */
void cln_folder_remove(int folder, const char *name);

/* Removes what killed stores left an hour ago or earlier, and those that were used longest ago until the rest has at most
 * this many bytes. Files of a clock that was ahead go first: they would be the latest used for as long as it takes. */
void cln_folder_trim(int folder, uint64_t bytes);

#endif
