/* Compiled programs on disk: a fetch returns the stored bytes, and the oldest entries are removed. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_case.h"
#include "program/cache_folder.h"
#include "scratch.h"

static mode_t mode_of(const char *path) {
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return facts.st_mode & 07777;
}

/* --------------------------------------------------------------------------------------------------------------- keys */

static void keys_tell_lists_of_parts_apart(void **state) {
    (void)state;
    static const char *const lists[][3] = {
        {"ab", "c", NULL}, {"a", "bc", NULL}, {"abc", NULL, NULL}, {"abc", "", NULL}, {"", "abc", NULL}, {NULL, NULL, NULL},
    };
    enum { LISTS = sizeof lists / sizeof lists[0] };
    struct cln_cache_key keys[LISTS];
    memset(keys, 0, sizeof keys);
    for (size_t i = 0; i < LISTS; i++)
        for (size_t part = 0; lists[i][part]; part++)
            cln_cache_key_add(&keys[i], lists[i][part], strlen(lists[i][part]));
    for (size_t a = 0; a < LISTS; a++)
        for (size_t b = 0; b < a; b++)
            assert_true(keys[a].length != keys[b].length || memcmp(keys[a].bytes, keys[b].bytes, keys[a].length) != 0);
    for (size_t i = 0; i < LISTS; i++)
        cln_cache_key_free(&keys[i]);
}

static void texts_are_read_back(void **state) {
    (void)state;
    struct cln_cache_key key = make_key("");
    size_t offset = 0;
    assert_string_equal(cln_cache_key_text(&key, &offset), "norm.cl");
    assert_string_equal(cln_cache_key_text(&key, &offset), "A Device");
    assert_string_equal(cln_cache_key_text(&key, &offset), "-D VEC=4");
    assert_string_equal(cln_cache_key_text(&key, &offset), "");
    assert_null(cln_cache_key_text(&key, &offset));
    cln_cache_key_free(&key);

    cln_cache_key_add(&key, "no NUL", 6);
    offset = 0;
    assert_null(cln_cache_key_text(&key, &offset));
    const uint64_t lie = UINT64_MAX - 7;
    memcpy(key.bytes, &lie, sizeof lie);
    assert_null(cln_cache_key_text(&key, &offset));
    cln_cache_key_free(&key);
}

static void a_key_that_lost_a_part_is_a_miss(void **state) {
    const char *const dir = *state;
    struct cln_cache_key key = make_key("x");
    unsigned char *bytes = NULL;
    size_t length = 0;
    cln_cache_key_add(&key, "", SIZE_MAX - 10); /* more than any memory */
    assert_null(key.bytes);
    cln_cache_key_add_text(&key, "more");
    assert_null(key.bytes);
    cln_cache_store(dir, &key, (const unsigned char *)cache_payload, cache_payload_size);
    assert_int_equal(scratch_count(dir), 0);
    assert_false(cln_cache_load(dir, &key, &bytes, &length));
    cln_cache_remove(dir, &key);
    cln_cache_key_free(&key);
}

/* -------------------------------------------------------------------------------------------------- storing, fetching */

static void stored_entries_are_fetched(void **state) {
    const char *const dir = *state;
    assert_false(fetch(dir, "one"));
    store(dir, "one");
    assert_true(fetch(dir, "one"));
    assert_true(fetch(dir, "one"));
    assert_false(fetch(dir, "two"));
    store(dir, "two");
    assert_true(fetch(dir, "one") && fetch(dir, "two"));
    assert_int_equal(scratch_count(dir), 2);
}

static void storing_again_replaces(void **state) {
    const char *const dir = *state;
    struct cln_cache_key key = make_key("one");
    cln_cache_store(dir, &key, (const unsigned char *)"old", 3);
    assert_int_equal(scratch_count(dir), 1);
    store(dir, "one");
    assert_int_equal(scratch_count(dir), 1);
    assert_true(fetch(dir, "one"));
    cln_cache_remove(dir, &key);
    assert_int_equal(scratch_count(dir), 0);
    assert_false(fetch(dir, "one"));
    cln_cache_key_free(&key);
}

static void the_folder_is_made_for_the_user_alone(void **state) {
    const char *const dir = scratch_path(*state, "a/b//c/");
    const mode_t kept = umask(0);
    store(dir, "one");
    umask(kept);
    assert_true(fetch(dir, "one"));
    assert_int_equal(mode_of(scratch_path(*state, "a")), 0700);
    assert_int_equal(mode_of(scratch_path(*state, "a/b")), 0700);
    assert_int_equal(mode_of(dir), 0700);
    assert_int_equal(mode_of(scratch_only_file(dir)), 0600);
}

static void fetching_makes_no_folder(void **state) {
    assert_false(fetch(scratch_path(*state, "absent"), "one"));
    assert_int_equal(scratch_count(*state), 0);
}

static void empty_payloads_are_not_stored(void **state) {
    struct cln_cache_key key = make_key("one");
    cln_cache_store(*state, &key, (const unsigned char *)cache_payload, 0);
    assert_int_equal(scratch_count(*state), 0);
    cln_cache_key_free(&key);
}

static void large_payloads_are_not_stored(void **state) {
    const size_t length = (size_t)32 << 20;
    unsigned char *const bytes = calloc(length, 1);
    assert_non_null(bytes);
    struct cln_cache_key key = make_key("one");
    cln_cache_store(*state, &key, bytes, length);
    assert_int_equal(scratch_count(*state), 0);
    cln_cache_key_free(&key);
    free(bytes);
}

/* --------------------------------------------------------------------------------------------------------------- cap */

static void set_age(const char *path, time_t seconds) {
    const struct timespec now = {time(NULL) - seconds, 0};
    const struct timespec times[2] = {now, now};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A sparse file of mib MiB with an entry's name, last used age seconds ago. */
static const char *make_old(const char *dir, char digit, off_t mib, time_t age) {
    char name[64];
    memset(name, digit, 32);
    strcpy(name + 32, ".clnorm");
    const char *const path = scratch_path(dir, name);
    scratch_write(path, "", 0);
    assert_int_equal(truncate(path, mib << 20), 0);
    set_age(path, age);
    return path;
}

static void the_oldest_go_past_the_cap(void **state) {
    const char *const dir = *state;
    const char *const oldest = make_old(dir, '1', 60, 400);
    const char *const older = make_old(dir, '2', 60, 300);
    const char *const newer = make_old(dir, '3', 100, 100);
    const char *const newest = make_old(dir, '4', 90, 50);
    store(dir, "one"); /* 310 MiB and a bit */
    assert_true(fetch(dir, "one"));
    assert_true(scratch_exists(newest) && scratch_exists(newer) && scratch_exists(older));
    assert_false(scratch_exists(oldest));
    const char *const small = make_old(dir, '5', 1, 1000);
    store(dir, "two");
    assert_true(scratch_exists(small)); /* there is room for it again */
}

/* Files with times in the future would count as the latest used for years, and take all room. */
static void files_from_the_future_go_first(void **state) {
    const char *const dir = *state;
    const char *const ahead = make_old(dir, '1', 200, -100000);
    const char *const further = make_old(dir, '2', 56, -200000);
    const char *const past = make_old(dir, '3', 100, 1000);
    store(dir, "one");
    assert_true(fetch(dir, "one"));
    assert_true(scratch_exists(past) && scratch_exists(further));
    assert_false(scratch_exists(ahead));
}

static void used_entries_stay(void **state) {
    const char *const dir = *state;
    store(dir, "one");
    const char *const one = scratch_only_file(dir);
    set_age(one, 1000);
    const char *const other = make_old(dir, '1', 200, 500);
    assert_true(fetch(dir, "one")); /* now it is the latest used */
    make_old(dir, '2', 100, 100);
    store(dir, "two");
    assert_true(fetch(dir, "one") && fetch(dir, "two"));
    assert_false(scratch_exists(other));
}

/* A temporary file that a killed store left. */
static const char *make_temporary(const char *dir, char digit, time_t age) {
    char name[CLN_FILE_CAPACITY];
    memset(name, digit, CLN_DIGEST_DIGITS);
    strcpy(name + CLN_DIGEST_DIGITS, "-1790000000.123456789-4711.clnorm");
    const char *const path = scratch_path(dir, name);
    scratch_write(path, "half of an ent", 14);
    set_age(path, age);
    return path;
}

static void old_temporary_files_are_removed(void **state) {
    const char *const dir = *state;
    const char *const old = make_temporary(dir, '1', 3700);
    const char *const ahead = make_temporary(dir, '2', -100000);
    const char *const young = make_temporary(dir, '3', 3500); /* its store may still run */
    const char *const entry = make_old(dir, '4', 1, 100000);
    store(dir, "one");
    assert_true(fetch(dir, "one"));
    assert_false(scratch_exists(old) || scratch_exists(ahead));
    assert_true(scratch_exists(young) && scratch_exists(entry));
    assert_int_equal(scratch_count(dir), 3);
}

/* ----------------------------------------------------------------------------------------------------------- threads */

static void *store_and_fetch(void *dir) {
    for (unsigned i = 0; i < 200; i++) {
        store(dir, "one");
        (void)fetch(dir, "one"); /* fetch checks a hit */
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, store_and_fetch, *state), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(fetch(*state, "one"));
    assert_int_equal(scratch_count(*state), 1); /* no temporary file is left */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(keys_tell_lists_of_parts_apart),   scratch_test(texts_are_read_back),
        scratch_test(a_key_that_lost_a_part_is_a_miss), scratch_test(stored_entries_are_fetched),
        scratch_test(storing_again_replaces),           scratch_test(the_folder_is_made_for_the_user_alone),
        scratch_test(fetching_makes_no_folder),         scratch_test(empty_payloads_are_not_stored),
        scratch_test(large_payloads_are_not_stored),    scratch_test(the_oldest_go_past_the_cap),
        scratch_test(files_from_the_future_go_first),   scratch_test(used_entries_stay),
        scratch_test(old_temporary_files_are_removed),  scratch_test(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
