#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process that removes the folder when this one ends, and this process's end of the pipe between them. */
static pid_t watcher = -1;
static int lifeline = -1;

/* Empties the folder of this descriptor, and closes it. Links are removed, not followed. */
static void empty_folder(int descriptor) {
    DIR *const folder = fdopendir(descriptor);
    if (!folder) {
        close(descriptor);
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        const int inner = openat(descriptor, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0)
            empty_folder(inner);
        (void)unlinkat(descriptor, entry->d_name, inner >= 0 ? AT_REMOVEDIR : 0);
    }
    closedir(folder);
}

static void remove_folder(const char *path) {
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0)
        empty_folder(descriptor);
    (void)rmdir(path);
}

/* Waits until the other end of the pipe is closed, by temporary_remove or by the end of the program, and removes the
 * folder. It has no terminal, and keeps none of the program's files open. */
static _Noreturn void watch(const char *path, int end) {
    enum { MOST_FILES = 1024 };
    char byte;
    (void)setsid();
    for (int i = 0; i < MOST_FILES; i++)
        if (i != end)
            (void)close(i);
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        continue;
    remove_folder(path);
    _exit(0);
}

static bool start_watcher(const char *path, struct fault *fault) {
    int ends[2];
    if (pipe(ends))
        return fault_set(fault, EXIT_FAILED, "pipe: %s", strerror(errno));
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    watcher = fork();
    if (watcher == 0)
        watch(path, ends[0]);
    (void)close(ends[0]);
    lifeline = ends[1];
    if (watcher < 0)
        (void)close(lifeline);
    return watcher > 0 || fault_set(fault, EXIT_FAILED, "fork: %s", strerror(errno));
}

bool temporary_make(char path[TEMPORARY_PATH], struct fault *fault) {
    const char *const variable = getenv("TMPDIR");
    const char *const parent = variable && *variable ? variable : "/tmp";
    const int length = snprintf(path, TEMPORARY_PATH, "%s/clnorm-XXXXXX", parent);
    if (length >= TEMPORARY_PATH)
        return fault_set(fault, EXIT_FAILED, "TMPDIR: its path of %d characters is too long", length);
    if (!mkdtemp(path))
        return fault_set(fault, EXIT_FAILED, "%s: %s", path, strerror(errno));
    const bool watched = start_watcher(path, fault);
    if (!watched)
        (void)rmdir(path);
    return watched;
}

bool temporary_caches(const char *path, struct fault *fault) {
    static const char *const variables[] = {"POCL_CACHE_DIR", "CUDA_CACHE_PATH", "MESA_SHADER_CACHE_DIR",
                                            "CLNORM_CACHE_DIR"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        char folder[TEMPORARY_PATH + 32];
        (void)snprintf(folder, sizeof folder, "%s/%s", path, variables[i]);
        if (setenv(variables[i], folder, 1))
            return fault_set(fault, EXIT_FAILED, "%s: %s", variables[i], strerror(errno));
    }
    return true;
}

void temporary_remove(const char *path) {
    remove_folder(path);
    (void)close(lifeline);
    (void)waitpid(watcher, NULL, 0);
}
