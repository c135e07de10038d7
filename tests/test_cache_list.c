/* The folder of compiled programs: its path, its list of entries, and clearing it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"
#include "program/cache.h"
#include "program/cache_folder.h"
#include "refusal.h"
#include "scratch.h"

/* The linker's --wrap redirects the library's calls to these. A user who may remove everything runs some tests. */
int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);

static int unlink_code; /* the next removal fails with it; 0: it does not */

int __wrap_unlinkat(int folder, const char *name, int flags) {
    if (!unlink_code)
        return __real_unlinkat(folder, name, flags);
    errno = unlink_code;
    unlink_code = 0;
    return -1;
}

/* ------------------------------------------------------------------------------------------------------------- where */

static void set(const char *name, const char *value) {
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void the_environment_names_the_folder(void **state) {
    (void)state;
    static const struct {
        const char *cache, *dir, *xdg, *home, *wish, *expected;
    } cases[] = {
        {NULL, "/d", "/x", "/h", "/w", "/w"},
        {NULL, "/d", "/x", "/h", "", ""},
        {"0", "/d", "/x", "/h", "/w", ""},
        {"0", "/d", "/x", "/h", NULL, ""},
        {"1", "/d", "/x", "/h", NULL, "/d"},
        {"", "/d", "/x", "/h", NULL, "/d"},
        {NULL, "relative", "/x", "/h", NULL, "relative"},
        {NULL, "", "/x", "/h", NULL, "/x/clnorm"},
        {NULL, NULL, "/x", "/h", NULL, "/x/clnorm"},
        {NULL, NULL, "relative", "/h", NULL, "/h/.cache/clnorm"},
        {NULL, NULL, "", "/h", NULL, "/h/.cache/clnorm"},
        {NULL, NULL, NULL, "/h", NULL, "/h/.cache/clnorm"},
        {NULL, NULL, NULL, "", NULL, ""},
        {NULL, NULL, NULL, "h", NULL, ""},
        {NULL, NULL, NULL, NULL, NULL, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set("CLNORM_CACHE", cases[i].cache);
        set("CLNORM_CACHE_DIR", cases[i].dir);
        set("XDG_CACHE_HOME", cases[i].xdg);
        set("HOME", cases[i].home);
        char *const dir = cln_cache_dir(cases[i].wish);
        assert_non_null(dir);
        assert_string_equal(dir, cases[i].expected);
        free(dir);
        char path[64] = "untouched";
        if (!cases[i].wish) {
            assert_int_equal(clnorm_cache_dir(path, sizeof path), strlen(cases[i].expected));
            assert_string_equal(path, cases[i].expected);
        }
    }
}

static void a_path_that_does_not_fit_is_cut(void **state) {
    (void)state;
    set("CLNORM_CACHE", NULL);
    set("CLNORM_CACHE_DIR", "/some/folder");
    char path[8];
    assert_int_equal(clnorm_cache_dir(path, sizeof path), strlen("/some/folder"));
    assert_string_equal(path, "/some/f");
    assert_int_equal(clnorm_cache_dir(NULL, 0), strlen("/some/folder"));
}

/* ----------------------------------------------------------------------------------------------------------- listing */

static void store(const char *dir, const char *source, const char *options, size_t length) {
    struct cln_cache_key key = {NULL, 0};
    unsigned char *const payload = calloc(length, 1);
    assert_non_null(payload);
    cln_cache_key_add_text(&key, source);
    cln_cache_key_add_text(&key, "A Device");
    cln_cache_key_add_text(&key, options);
    cln_cache_store(dir, &key, payload, length);
    cln_cache_key_free(&key);
    free(payload);
}

struct seen {
    size_t count;
    struct {
        char source[32], device[32], options[32], file[128];
        uint64_t size;
        int64_t last_used;
    } entries[8];
};

static void see(const clnorm_cache_entry *entry, void *user) {
    struct seen *const seen = user;
    assert_true(seen->count < 8);
    strcpy(seen->entries[seen->count].source, entry->source);
    strcpy(seen->entries[seen->count].device, entry->device);
    strcpy(seen->entries[seen->count].options, entry->options);
    strcpy(seen->entries[seen->count].file, entry->file);
    seen->entries[seen->count].size = entry->size;
    seen->entries[seen->count].last_used = entry->last_used;
    seen->count++;
}

static void entries_are_listed_with_their_texts(void **state) {
    const char *const dir = *state;
    store(dir, "norm.cl", "-D VEC=4", 1000);
    const char *const path = scratch_only_file(dir);
    struct seen seen = {.count = 0};
    assert_int_equal(clnorm_cache_list(dir, see, &seen), CLNORM_SUCCESS);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.entries[0].source, "norm.cl");
    assert_string_equal(seen.entries[0].device, "A Device");
    assert_string_equal(seen.entries[0].options, "-D VEC=4");
    assert_string_equal(scratch_path(dir, seen.entries[0].file), path);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(seen.entries[0].size, facts.st_size);
    assert_true(seen.entries[0].size > 1000);
    assert_int_equal(seen.entries[0].last_used, facts.st_mtime);
}

static void the_latest_used_is_listed_first(void **state) {
    const char *const dir = *state;
    static const char *const order[] = {"c.cl", "a.cl", "b.cl"};
    for (int i = 2; i >= 0; i--) {
        store(dir, order[i], "", 10);
        nanosleep(&(struct timespec){0, 20000000}, NULL); /* longer than a tick of a file system's clock */
    }
    struct seen seen = {.count = 0};
    assert_int_equal(clnorm_cache_list(dir, see, &seen), CLNORM_SUCCESS);
    assert_int_equal(seen.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(seen.entries[i].source, order[i]);
}

static void damaged_entries_are_listed_without_texts(void **state) {
    const char *const dir = *state;
    store(dir, "norm.cl", "-D VEC=4", 1000);
    char path[4096];
    strcpy(path, scratch_only_file(dir));
    size_t length = 0;
    unsigned char *const bytes = scratch_read(path, &length);
    for (size_t cut = 0; cut < length; cut += 13) {
        scratch_write(path, bytes, cut);
        struct seen seen = {.count = 0};
        assert_int_equal(clnorm_cache_list(dir, see, &seen), CLNORM_SUCCESS);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.entries[0].size, cut);
        assert_string_equal(seen.entries[0].source, "");
        assert_string_equal(seen.entries[0].options, "");
    }
    memset(bytes + 40, 0xff, 8); /* the length of the first text */
    scratch_write(path, bytes, length);
    struct seen seen = {.count = 0};
    assert_int_equal(clnorm_cache_list(dir, see, &seen), CLNORM_SUCCESS);
    assert_string_equal(seen.entries[0].source, "");
    assert_string_equal(seen.entries[0].device, "");
    free(bytes);
}

static void an_absent_folder_has_no_entries(void **state) {
    const char *const dirs[] = {scratch_path(*state, "absent"), ""};
    for (size_t i = 0; i < 2; i++) {
        struct seen seen = {.count = 0};
        size_t removed = 7;
        assert_int_equal(clnorm_cache_list(dirs[i], see, &seen), CLNORM_SUCCESS);
        assert_int_equal(seen.count, 0);
        assert_int_equal(clnorm_cache_clear(dirs[i], &removed), CLNORM_SUCCESS);
        assert_int_equal(removed, 0);
    }
    assert_int_equal(scratch_count(*state), 0);
}

static void an_unusable_folder_is_an_error(void **state) {
    const char *const dir = *state;
    struct seen seen = {.count = 0};
    size_t removed = 7;
    store(dir, "norm.cl", "", 10);
    assert_int_equal(chmod(dir, 0777), 0);
    assert_int_equal(clnorm_cache_list(dir, see, &seen), CLNORM_INVALID_ARGUMENT);
    assert_detail(dir);
    assert_int_equal(clnorm_cache_clear(dir, &removed), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(removed, 7);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(scratch_count(dir), 1);
    const char *const file = scratch_only_file(dir);
    assert_int_equal(clnorm_cache_list(file, see, &seen), CLNORM_INVALID_ARGUMENT);
    assert_detail(file);
    assert_int_equal(seen.count, 0);
    assert_int_equal(clnorm_cache_list(dir, NULL, NULL), CLNORM_INVALID_ARGUMENT);
}

static void without_a_folder_the_environment_decides(void **state) {
    const char *const dir = *state;
    struct seen seen = {.count = 0};
    size_t removed = 0;
    set("CLNORM_CACHE", NULL);
    set("CLNORM_CACHE_DIR", dir);
    store(dir, "norm.cl", "", 10);
    store(dir, "other.cl", "", 10);
    assert_int_equal(clnorm_cache_list(NULL, see, &seen), CLNORM_SUCCESS);
    assert_int_equal(seen.count, 2);
    assert_int_equal(clnorm_cache_clear(NULL, &removed), CLNORM_SUCCESS);
    assert_int_equal(removed, 2);
    assert_int_equal(scratch_count(dir), 0);
    set("CLNORM_CACHE", "0");
    store(dir, "norm.cl", "", 10);
    assert_int_equal(clnorm_cache_clear(NULL, &removed), CLNORM_SUCCESS);
    assert_int_equal(removed, 0);
    assert_int_equal(scratch_count(dir), 1);
}

/* Where a file cannot be removed the others are, and their number is not written. One that another process has just removed
 * is no error. */
static void files_that_stay_are_an_error(void **state) {
    static const struct {
        int code; /* of the first removal */
        clnorm_status status;
    } cases[] = {{EACCES, CLNORM_INVALID_ARGUMENT},
                 {EPERM, CLNORM_INVALID_ARGUMENT},
                 {EROFS, CLNORM_INVALID_ARGUMENT},
                 {EIO, CLNORM_INVALID_ARGUMENT},
                 {ENOENT, CLNORM_SUCCESS}};
    const char *const dir = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t removed = 7;
        store(dir, "a.cl", "", 10);
        store(dir, "b.cl", "", 10);
        store(dir, "c.cl", "", 10);
        unlink_code = cases[i].code;
        assert_int_equal(clnorm_cache_clear(dir, &removed), cases[i].status);
        assert_int_equal(unlink_code, 0);
        if (cases[i].status)
            assert_detail("1 of 3 files of the cache folder cannot be removed");
        assert_int_equal(removed, cases[i].status ? 7 : 2);
        assert_int_equal(scratch_count(dir), 1);
        assert_int_equal(clnorm_cache_clear(dir, &removed), CLNORM_SUCCESS);
        assert_int_equal(removed, 1);
        assert_int_equal(scratch_count(dir), 0);
    }
}

/* With room for one more file descriptor the folder is opened, and not read. */
static void an_unreadable_folder_is_an_error(void **state) {
    const char *const dir = *state;
    struct seen seen = {.count = 0};
    size_t removed = 0;
    struct rlimit usual, one_more;
    store(dir, "norm.cl", "", 10);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int next = open("/dev/null", O_RDONLY);
    assert_true(next >= 0 && close(next) == 0);
    one_more = usual;
    one_more.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &one_more), 0);
    const clnorm_status listed = clnorm_cache_list(dir, see, &seen);
    const clnorm_status cleared = clnorm_cache_clear(dir, &removed);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(listed, CLNORM_INVALID_ARGUMENT);
    assert_int_equal(cleared, CLNORM_INVALID_ARGUMENT);
    assert_detail("the cache folder cannot be read: Too many open files");
    assert_int_equal(scratch_count(dir), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(the_environment_names_the_folder),         scratch_test(a_path_that_does_not_fit_is_cut),
        scratch_test(entries_are_listed_with_their_texts),      scratch_test(the_latest_used_is_listed_first),
        scratch_test(damaged_entries_are_listed_without_texts), scratch_test(an_absent_folder_has_no_entries),
        scratch_test(an_unusable_folder_is_an_error),           scratch_test(an_unreadable_folder_is_an_error),
        scratch_test(without_a_folder_the_environment_decides), scratch_test(files_that_stay_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
