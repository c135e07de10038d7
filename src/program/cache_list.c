#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "program/cache.h"
#include "program/cache_folder.h"

/* Opens the folder of dir. A folder that does not exist is success, with a *folder of -1. */
static clnorm_status open_folder(const char *dir, int *folder) {
    char *const path = dir ? strdup(dir) : cln_cache_dir(NULL);
    if (!path)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, opening the cache folder");
    char reason[128] = "";
    clnorm_status status = CLNORM_SUCCESS;
    *folder = -1;
    switch (*path ? cln_folder_open(path, folder) : CLN_FOLDER_ABSENT) {
    case CLN_FOLDER_OPEN:
    case CLN_FOLDER_ABSENT:
        break;
    case CLN_FOLDER_UNREADABLE:
        (void)strerror_r(errno, reason, sizeof reason);
        status = cln_fail(CLNORM_INVALID_ARGUMENT, "the cache folder '%s' cannot be opened: %s", path, reason);
        break;
    case CLN_FOLDER_FOREIGN:
        status = cln_fail(CLNORM_INVALID_ARGUMENT, "the cache folder '%s' belongs to another user: it is not used", path);
        break;
    case CLN_FOLDER_LINKED:
        status = cln_fail(CLNORM_INVALID_ARGUMENT,
                          "the cache folder '%s' is reached by a symbolic link of another user: it is not used", path);
        break;
    case CLN_FOLDER_SHARED:
        status =
            cln_fail(CLNORM_INVALID_ARGUMENT, "the cache folder '%s' can be written to by others: it is not used", path);
        break;
    }
    free(path);
    return status;
}

/* Opens the folder and lists its files. */
static clnorm_status open_files(const char *dir, int *folder, struct cln_file **files, size_t *count) {
    *files = NULL;
    *count = 0;
    const clnorm_status status = open_folder(dir, folder);
    if (status != CLNORM_SUCCESS || *folder < 0 || cln_folder_scan(*folder, files, count))
        return status;
    char reason[128] = "";
    (void)strerror_r(errno, reason, sizeof reason);
    const bool memory = errno == ENOMEM;
    (void)close(*folder);
    return cln_fail(memory ? CLNORM_OUT_OF_HOST_MEMORY : CLNORM_INVALID_ARGUMENT, "the cache folder cannot be read: %s",
                    reason);
}

static void close_files(int folder, struct cln_file *files) {
    free(files);
    if (folder >= 0)
        (void)close(folder);
}

static const char *next_text(const struct cln_cache_key *key, size_t *offset) {
    const char *const text = cln_cache_key_text(key, offset);
    return text ? text : "";
}

static void show(int folder, const struct cln_file *file, clnorm_cache_fn each, void *user) {
    struct cln_cache_key key = {NULL, 0};
    size_t offset = 0;
    (void)cln_cache_peek(folder, file->name, &key);
    clnorm_cache_entry entry = {.file = file->name, .size = file->size, .last_used = (int64_t)file->used.tv_sec};
    entry.source = next_text(&key, &offset);
    entry.device = next_text(&key, &offset);
    entry.options = next_text(&key, &offset);
    each(&entry, user);
    cln_cache_key_free(&key);
}

clnorm_status clnorm_cache_list(const char *dir, clnorm_cache_fn each, void *user) {
    int folder = -1;
    struct cln_file *files = NULL;
    size_t count = 0;
    if (!each)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "each is NULL");
    const clnorm_status status = open_files(dir, &folder, &files, &count);
    if (status != CLNORM_SUCCESS)
        return status;
    for (size_t i = 0; i < count; i++)
        show(folder, &files[i], each, user);
    close_files(folder, files);
    return CLNORM_SUCCESS;
}

clnorm_status clnorm_cache_clear(const char *dir, size_t *removed) {
    int folder = -1;
    struct cln_file *files = NULL;
    size_t count = 0;
    const clnorm_status status = open_files(dir, &folder, &files, &count);
    if (status != CLNORM_SUCCESS)
        return status;
    size_t gone = 0;
    bool refused = false;
    for (size_t i = 0; i < count; i++) {
        errno = 0; /* which stays 0 where the name is not a file's any more */
        const bool is_gone = cln_folder_remove(folder, files[i].name);
        gone += is_gone;
        refused = refused || (!is_gone && errno && errno != ENOENT);
    }
    close_files(folder, files);
    if (refused)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%zu of %zu files of the cache folder cannot be removed", count - gone,
                        count);
    if (removed)
        *removed = gone;
    return CLNORM_SUCCESS;
}
