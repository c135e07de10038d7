#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *fuzz_text(const uint8_t *data, size_t size) {
    char *const text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static char folder[64];

static void remove_folder(void) {
    DIR *const directory = opendir(folder);
    if (!directory)
        return;
    for (const struct dirent *item; (item = readdir(directory));)
        (void)unlinkat(dirfd(directory), item->d_name, 0);
    (void)closedir(directory);
    (void)rmdir(folder);
}

const char *fuzz_folder(void) {
    if (*folder)
        return folder;
    const char *const parent = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%.40s/clnorm-fuzz-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder) || atexit(remove_folder)) {
        perror(folder);
        abort();
    }
    return folder;
}

void fuzz_write(const char *path, const uint8_t *data, size_t size) {
    (void)unlink(path); /* file systems may sync a file at once that was truncated and rewritten */
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || write(file, data, size) != (ssize_t)size || close(file)) {
        perror(path);
        abort();
    }
}
