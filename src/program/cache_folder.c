#include "program/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clnorm/clnorm.h"

/* ------------------------------------------------------------------------------------------------------ where it is */

static const char *variable(const char *name) {
    const char *const value = getenv(name);
    return value ? value : "";
}

/* Writes the folder's path as snprintf does. */
static size_t format_dir(char *path, size_t capacity, const char *wish) {
    const char *const dir = variable("CLNORM_CACHE_DIR");
    const char *const cache_home = variable("XDG_CACHE_HOME");
    const char *const home = variable("HOME");
    int length = 0;
    if (strcmp(variable("CLNORM_CACHE"), "0") == 0)
        length = snprintf(path, capacity, "%s", "");
    else if (wish || *dir)
        length = snprintf(path, capacity, "%s", wish ? wish : dir);
    else if (*cache_home == '/') /* the XDG specification says to ignore relative paths */
        length = snprintf(path, capacity, "%s/clnorm", cache_home);
    else
        length = snprintf(path, capacity, "%s%s", *home == '/' ? home : "", *home == '/' ? "/.cache/clnorm" : "");
    return length < 0 ? 0 : (size_t)length;
}

char *cln_cache_dir(const char *wish) {
    const size_t length = format_dir(NULL, 0, wish);
    char *const path = malloc(length + 1);
    if (path)
        format_dir(path, length + 1, wish);
    return path;
}

size_t clnorm_cache_dir(char *path, size_t capacity) {
    return format_dir(path, capacity, NULL);
}

/* ------------------------------------------------------------------------------------------------- making, opening */

void cln_folder_make(const char *dir) {
    char *const path = strdup(dir);
    for (char *at = path; at && *at; at++)
        if (*at == '/' && at > path) {
            *at = '\0';
            (void)mkdir(path, S_IRWXU);
            *at = '/';
        }
    if (path)
        (void)mkdir(path, S_IRWXU);
    free(path);
}

/* Whether each part of the path, as it is written, that is a symbolic link is the user's own or the system's. The user
 * chose the target of such a link, whose own links are not examined. A path that cannot be examined is not trusted. */
static bool links_are_trusted(const char *dir) {
    char *const path = strdup(dir);
    bool trusted = path != NULL;
    for (char *at = path; trusted; at++) {
        const char end = *at;
        struct stat facts;
        if (end && (end != '/' || at == path))
            continue;
        *at = '\0';
        trusted = lstat(path, &facts) == 0 && (!S_ISLNK(facts.st_mode) || !facts.st_uid || facts.st_uid == geteuid());
        *at = end;
        if (!end)
            break;
    }
    free(path);
    return trusted;
}

enum cln_folder_state cln_folder_open(const char *dir, int *folder) {
    const int opened = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        return errno == ENOENT ? CLN_FOLDER_ABSENT : CLN_FOLDER_UNREADABLE;
    struct stat facts;
    enum cln_folder_state state = CLN_FOLDER_OPEN;
    if (fstat(opened, &facts) != 0 || faccessat(opened, ".", R_OK | X_OK, AT_EACCESS) != 0)
        state = CLN_FOLDER_UNREADABLE;
    else if (facts.st_uid != geteuid())
        state = CLN_FOLDER_FOREIGN;
    else if (facts.st_mode & (S_IWGRP | S_IWOTH))
        state = CLN_FOLDER_SHARED;
    else if (!links_are_trusted(dir)) /* the folder is open already, so that a link made from now on is not followed */
        state = CLN_FOLDER_LINKED;
    if (state == CLN_FOLDER_OPEN)
        *folder = opened;
    else
        (void)close(opened);
    return state;
}

/* ---------------------------------------------------------------------------------------------------------- its files */

static const char suffix[] = ".clnorm";

/* Whether a file has a name such as this cache gives: see struct cln_file. */
static bool has_entry_name(const char *name) {
    const size_t length = strlen(name);
    return length >= CLN_DIGEST_DIGITS + sizeof suffix - 1 && length < CLN_FILE_CAPACITY &&
           strspn(name, "0123456789abcdef") == CLN_DIGEST_DIGITS &&
           strcmp(name + length - (sizeof suffix - 1), suffix) == 0;
}

static bool look_at(int folder, const char *name, struct cln_file *file) {
    struct stat facts;
    if (!has_entry_name(name) || fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
        return false;
    memcpy(file->name, name, strlen(name) + 1);
    file->size = (uint64_t)facts.st_size;
    file->used = facts.st_mtim;
    return true;
}

static int compare(const void *left, const void *right) {
    const struct cln_file *const a = left, *const b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec > b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec > b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* A second open file description of the folder, as reading a directory moves the position of the first. */
static DIR *open_again(int folder) {
    const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const directory = again < 0 ? NULL : fdopendir(again);
    if (!directory && again >= 0)
        (void)close(again);
    return directory;
}

bool cln_folder_scan(int folder, struct cln_file **files, size_t *count) {
    struct cln_file *list = NULL;
    size_t length = 0, capacity = 0;
    DIR *const directory = open_again(folder);
    const struct dirent *item = directory ? readdir(directory) : NULL;
    for (; item; item = readdir(directory)) {
        struct cln_file file;
        if (!look_at(folder, item->d_name, &file))
            continue;
        if (length == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            struct cln_file *const more = realloc(list, capacity * sizeof *list);
            if (!more)
                break;
            list = more;
        }
        list[length++] = file;
    }
    if (directory)
        (void)closedir(directory);
    if (item || !directory) {
        free(list);
        return false;
    }
    if (list)
        qsort(list, length, sizeof *list, compare);
    *files = list;
    *count = length;
    return true;
}

bool cln_folder_remove(int folder, const char *name) {
    struct stat facts;
    return fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode) &&
           unlinkat(folder, name, 0) == 0;
}

/* Whether a file was left unfinished by a store that ended long ago. A store takes milliseconds. A time far in the
 * future comes from a wrong clock. */
static bool is_abandoned(const struct cln_file *file) {
    static const time_t longest = 3600; /* seconds */
    const bool temporary = strlen(file->name) > CLN_DIGEST_DIGITS + sizeof suffix - 1;
    const time_t now = time(NULL);
    return temporary && (file->used.tv_sec < now - longest || file->used.tv_sec > now + longest);
}

/* Whether a file's time comes from a clock that was ahead. One minute is allowed for the clocks of file servers. */
static bool is_ahead(const struct cln_file *file) {
    return file->used.tv_sec > time(NULL) + 60;
}

/* The bytes that kept files leave of the folder's limit. */
struct room {
    uint64_t bytes;
    bool full; /* a file did not fit: the files after it are removed too */
};

static void keep_or_remove(int folder, const struct cln_file *file, struct room *room) {
    room->full = room->full || file->size > room->bytes;
    if (room->full)
        (void)cln_folder_remove(folder, file->name);
    else
        room->bytes -= file->size;
}

void cln_folder_trim(int folder, uint64_t bytes) {
    struct cln_file *files = NULL;
    size_t count = 0;
    if (!cln_folder_scan(folder, &files, &count))
        return;
    struct room room = {bytes, false};
    for (size_t i = 0; i < count; i++)
        if (is_abandoned(&files[i]))
            (void)cln_folder_remove(folder, files[i].name);
        else if (!is_ahead(&files[i]))
            keep_or_remove(folder, &files[i], &room);
    for (size_t i = 0; i < count; i++)
        if (is_ahead(&files[i]) && !is_abandoned(&files[i]))
            keep_or_remove(folder, &files[i], &room);
    free(files);
}
