#include "scratch.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

char *scratch_make(void) {
    const char *const parent = getenv("TMPDIR");
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/clnorm-test-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(pattern))
        fail_msg("no folder %s", pattern);
    return strdup(pattern);
}

int scratch_setup(void **state) {
    *state = scratch_make();
    return 0;
}

int scratch_teardown(void **state) {
    scratch_remove(*state);
    return 0;
}

const char *scratch_path(const char *dir, const char *name) {
    static char paths[16][4096];
    static unsigned next;
    char *const path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

/* The next name that is not "." or "..". */
static const char *next_name(DIR *directory) {
    for (const struct dirent *item = readdir(directory); item; item = readdir(directory))
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            return item->d_name;
    return NULL;
}

static DIR *open_folder(const char *path) {
    DIR *const directory = opendir(path);
    if (!directory)
        fail_msg("cannot read %s", path);
    return directory;
}

static void remove_tree(const char *path) {
    struct stat facts;
    if (lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        (void)chmod(path, S_IRWXU);
        DIR *const directory = open_folder(path);
        char child[4096];
        for (const char *name = next_name(directory); name; name = next_name(directory)) {
            snprintf(child, sizeof child, "%s/%s", path, name);
            remove_tree(child);
        }
        closedir(directory);
    }
    assert_int_equal(remove(path), 0);
}

void scratch_remove(char *path) {
    remove_tree(path);
    free(path);
}

void scratch_write(const char *path, const void *bytes, size_t length) {
    FILE *const file = fopen(path, "wb");
    if (!file)
        fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

unsigned char *scratch_read(const char *path, size_t *length) {
    struct stat facts = {0};
    FILE *const file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &facts) != 0)
        fail_msg("cannot read %s", path);
    *length = (size_t)facts.st_size;
    unsigned char *const bytes = malloc(*length + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

bool scratch_exists(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0;
}

size_t scratch_count(const char *dir) {
    DIR *const directory = open_folder(dir);
    size_t count = 0;
    while (next_name(directory))
        count++;
    closedir(directory);
    return count;
}

const char *scratch_only_file(const char *dir) {
    assert_int_equal(scratch_count(dir), 1);
    DIR *const directory = open_folder(dir);
    const char *const path = scratch_path(dir, next_name(directory));
    closedir(directory);
    return path;
}
