#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool temporary_make(char path[TEMPORARY_PATH], struct fault *fault) {
    const char *const variable = getenv("TMPDIR");
    const char *const parent = variable && *variable ? variable : "/tmp";
    const int length = snprintf(path, TEMPORARY_PATH, "%s/clnorm-XXXXXX", parent);
    if (length >= TEMPORARY_PATH)
        return fault_set(fault, EXIT_FAILED, "TMPDIR: its path of %d characters is too long", length);
    return mkdtemp(path) || fault_set(fault, EXIT_FAILED, "%s: %s", path, strerror(errno));
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

/* Removes what is in the folder of this descriptor, which is closed. Links are removed, not followed. */
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

void temporary_remove(const char *path) {
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0)
        empty_folder(descriptor);
    (void)rmdir(path);
}
