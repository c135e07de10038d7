/* Folders of the cache: owners, permissions, links, and other files in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_case.h"
#include "clnorm/clnorm.h"
#include "refusal.h"
#include "scratch.h"

static void a_folder_that_others_may_write_to_is_not_used(void **state) {
    const char *const dir = *state;
    store(dir, "one");
    const mode_t modes[] = {0777, 0770, 0702, 01777};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(dir, modes[i]), 0);
        assert_false(fetch(dir, "one"));
        store(dir, "two");
        assert_int_equal(scratch_count(dir), 1);
    }
    assert_int_equal(chmod(dir, 0755), 0); /* others may look */
    assert_true(fetch(dir, "one"));
}

static void see(const clnorm_cache_entry *entry, void *user) {
    (void)user;
    fail_msg("%s is listed", entry->file);
}

static void a_folder_of_somebody_else_is_not_used(void **state) {
    const char *dir = "/"; /* owned by root, and writable by root alone */
    const bool root = geteuid() == 0;
    if (root) {
        dir = *state;
        store(dir, "one");
        assert_int_equal(chown(dir, 12345, 12345), 0);
    }
    assert_false(fetch(dir, "one"));
    store(dir, "two");
    assert_false(fetch(dir, "two"));
    assert_int_equal(clnorm_cache_list(dir, see, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_cache_clear(dir, NULL), CLNORM_INVALID_ARGUMENT);
    if (root)
        assert_int_equal(scratch_count(dir), 1);
}

/* The link leads to a folder of the user's, and is the last part of the path or an earlier one. The user's own links are
 * followed. */
static void a_link_of_somebody_else_is_not_followed(void **state) {
    if (geteuid() != 0)
        skip(); /* only root can give a link away */
    const char *const folder = scratch_path(*state, "folder"), *const link = scratch_path(*state, "link");
    const char *const dirs[] = {link, scratch_path(link, "below")};
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(scratch_path(folder, "below"), 0700), 0);
    assert_int_equal(symlink(folder, link), 0);
    for (size_t i = 0; i < 2; i++) {
        store(dirs[i], "one");
        assert_true(fetch(dirs[i], "one"));
    }
    assert_int_equal(lchown(link, 12345, 12345), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_false(fetch(dirs[i], "one"));
        store(dirs[i], "two");
        assert_int_equal(clnorm_cache_list(dirs[i], see, NULL), CLNORM_INVALID_ARGUMENT);
        assert_detail("symbolic link");
    }
    assert_int_equal(scratch_count(folder), 2); /* an entry, and the folder below */
    assert_int_equal(scratch_count(scratch_path(folder, "below")), 1);
    assert_true(fetch(folder, "one"));
}

static void an_impossible_folder_is_a_miss(void **state) {
    const char *const file = scratch_path(*state, "file");
    const char *const loop = scratch_path(*state, "loop");
    scratch_write(file, "x", 1);
    assert_int_equal(symlink(loop, loop), 0);
    const char *const dirs[] = {file, scratch_path(file, "below"), loop, scratch_path(loop, "below"), ""};
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        store(dirs[i], "one");
        assert_false(fetch(dirs[i], "one"));
    }
    char *const deep = calloc(1, 100000);
    assert_non_null(deep);
    for (size_t i = 0; i + 2 < 100000; i += 2)
        memcpy(deep + i, "/d", 2);
    store(deep, "one"); /* past any limit on paths */
    assert_false(fetch(deep, "one"));
    free(deep);
    assert_int_equal(scratch_count(*state), 2);
}

static void an_unreadable_folder_or_entry_is_a_miss(void **state) {
    const char *const dir = *state;
    const bool root = geteuid() == 0; /* reads everything */
    store(dir, "one");
    assert_int_equal(chmod(scratch_only_file(dir), 0), 0);
    assert_int_equal(fetch(dir, "one"), root);
    assert_int_equal(chmod(dir, 0), 0);
    assert_int_equal(fetch(dir, "one"), root);
    store(dir, "two");
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(scratch_count(dir), root ? 2 : 1);
}

static void other_files_are_left_alone(void **state) {
    const char *const dir = *state;
    static const char *const names[] = {
        "notes.txt",
        "notes.clnorm",
        ".clnorm",
        "0123456789abcdef0123456789abcdef.txt",
        "0123456789abcdef0123456789abcde.clnorm",
        "0123456789ABCDEF0123456789ABCDEF.clnorm",
        "0123456789abcdef0123456789abcdef0.clnorm",
    };
    enum { NAMES = sizeof names / sizeof names[0] };
    for (size_t i = 0; i < NAMES; i++) {
        scratch_write(scratch_path(dir, names[i]), "", 0);
        assert_int_equal(truncate(scratch_path(dir, names[i]), (off_t)300 << 20), 0); /* each is past the cap */
    }
    assert_int_equal(mkdir(scratch_path(dir, "fedcba9876543210fedcba9876543210.clnorm"), 0700), 0);
    for (unsigned i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof name, "file-%u", i);
        scratch_write(scratch_path(dir, name), "x", 1);
    }
    store(dir, "one");
    assert_true(fetch(dir, "one"));
    size_t removed = 0;
    assert_int_equal(clnorm_cache_clear(dir, &removed), CLNORM_SUCCESS);
    assert_int_equal(removed, 1);
    assert_false(fetch(dir, "one"));
    assert_int_equal(scratch_count(dir), NAMES + 1 + 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(a_folder_that_others_may_write_to_is_not_used), scratch_test(a_folder_of_somebody_else_is_not_used),
        scratch_test(a_link_of_somebody_else_is_not_followed),       scratch_test(an_impossible_folder_is_a_miss),
        scratch_test(an_unreadable_folder_or_entry_is_a_miss),       scratch_test(other_files_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
