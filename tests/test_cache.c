/* Compiled programs on disk: what is fetched is what was stored, and whatever else lies there is a miss. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"
#include "program/cache.h"
#include "program/cache_folder.h"
#include "scratch.h"

/* Where the fields of an entry are. */
enum { AT_FORMAT = 4, AT_KEY_LENGTH = 8, AT_PAYLOAD_LENGTH = 16, AT_DIGEST = 24, AT_KEY = 40 };

static int make_scratch(void **state) {
    *state = scratch_make();
    return 0;
}

static int remove_scratch(void **state) {
    scratch_remove(*state);
    return 0;
}

static struct cln_cache_key make_key(const char *last) {
    struct cln_cache_key key = {NULL, 0};
    cln_cache_key_add_text(&key, "norm.cl");
    cln_cache_key_add_text(&key, "A Device");
    cln_cache_key_add_text(&key, "-D VEC=4");
    cln_cache_key_add_text(&key, last);
    return key;
}

static const char payload[] = "what the driver gave us\0\1\2\3 and some more of it";

static void store(const char *dir, const char *last) {
    struct cln_cache_key key = make_key(last);
    cln_cache_store(dir, &key, (const unsigned char *)payload, sizeof payload);
    cln_cache_key_free(&key);
}

/* Whether the entry is there; when it is, it is the payload. */
static bool fetch(const char *dir, const char *last) {
    struct cln_cache_key key = make_key(last);
    unsigned char *bytes = NULL;
    size_t length = 0;
    const bool there = cln_cache_load(dir, &key, &bytes, &length);
    if (there) {
        assert_int_equal(length, sizeof payload);
        assert_memory_equal(bytes, payload, sizeof payload);
    } else {
        assert_null(bytes);
    }
    free(bytes);
    cln_cache_key_free(&key);
    return there;
}

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
    cln_cache_key_add(&key, "", SIZE_MAX - 10); /* more than there can be memory for */
    assert_null(key.bytes);
    cln_cache_key_add_text(&key, "more");
    assert_null(key.bytes);
    cln_cache_store(dir, &key, (const unsigned char *)payload, sizeof payload);
    assert_int_equal(scratch_count(dir), 0);
    assert_false(cln_cache_load(dir, &key, &bytes, &length));
    cln_cache_remove(dir, &key);
    cln_cache_key_free(&key);
}

/* -------------------------------------------------------------------------------------------------- storing, fetching */

static void what_is_stored_is_fetched(void **state) {
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

static void nothing_is_not_stored(void **state) {
    struct cln_cache_key key = make_key("one");
    cln_cache_store(*state, &key, (const unsigned char *)payload, 0);
    assert_int_equal(scratch_count(*state), 0);
    cln_cache_key_free(&key);
}

static void what_is_too_large_is_not_stored(void **state) {
    const size_t length = (size_t)32 << 20;
    unsigned char *const bytes = calloc(length, 1);
    assert_non_null(bytes);
    struct cln_cache_key key = make_key("one");
    cln_cache_store(*state, &key, bytes, length);
    assert_int_equal(scratch_count(*state), 0);
    cln_cache_key_free(&key);
    free(bytes);
}

/* ----------------------------------------------------------------------------------------------------------- damage */

/* A stored entry's file, its bytes, and a longer buffer to spoil them in. */
struct entry {
    const char *dir;
    char path[4096];
    unsigned char *bytes;
    size_t length;
};

static struct entry make_entry(const char *dir) {
    struct entry entry = {.dir = dir};
    store(dir, "one");
    strcpy(entry.path, scratch_only_file(dir));
    entry.bytes = scratch_read(entry.path, &entry.length);
    assert_true(entry.length > AT_KEY + sizeof payload);
    return entry;
}

/* Whether a file with these bytes is a miss, and gone. */
static bool missed(const struct entry *entry, const unsigned char *bytes, size_t length) {
    scratch_write(entry->path, bytes, length);
    return !fetch(entry->dir, "one") && !scratch_exists(entry->path);
}

static void a_file_cut_anywhere_is_a_miss(void **state) {
    const struct entry entry = make_entry(*state);
    for (size_t length = 0; length < entry.length; length++)
        if (!missed(&entry, entry.bytes, length))
            fail_msg("cut to %zu of %zu bytes", length, entry.length);
    scratch_write(entry.path, entry.bytes, entry.length);
    assert_true(fetch(*state, "one"));
    free(entry.bytes);
}

static void a_flipped_bit_anywhere_is_a_miss(void **state) {
    const struct entry entry = make_entry(*state);
    for (size_t bit = 0; bit < entry.length * 8; bit++) {
        const unsigned char mask = (unsigned char)(1u << bit % 8);
        entry.bytes[bit / 8] ^= mask;
        if (!missed(&entry, entry.bytes, entry.length))
            fail_msg("bit %zu of byte %zu", bit % 8, bit / 8);
        entry.bytes[bit / 8] ^= mask;
    }
    free(entry.bytes);
}

static void more_bytes_than_said_are_a_miss(void **state) {
    struct entry entry = make_entry(*state);
    entry.bytes = realloc(entry.bytes, entry.length + 1);
    assert_non_null(entry.bytes);
    entry.bytes[entry.length] = 0;
    assert_true(missed(&entry, entry.bytes, entry.length + 1));
    free(entry.bytes);
}

static void lengths_that_lie_are_a_miss(void **state) {
    const struct entry entry = make_entry(*state);
    uint64_t key_length, payload_length;
    memcpy(&key_length, entry.bytes + AT_KEY_LENGTH, 8);
    memcpy(&payload_length, entry.bytes + AT_PAYLOAD_LENGTH, 8);
    const struct {
        uint64_t key, payload;
    } lies[] = {
        {0, key_length + payload_length},
        {key_length + payload_length, 0},
        {key_length - 1, payload_length + 1}, /* the sum is right */
        {key_length + 1, payload_length - 1},
        {key_length, payload_length + (UINT64_C(1) << 32)}, /* right in 32 bits */
        {key_length, UINT64_MAX},
        {UINT64_MAX, payload_length},
        {key_length + (UINT64_C(1) << 63), payload_length + (UINT64_C(1) << 63)}, /* the sum wraps around */
        {UINT64_MAX - 39, key_length + payload_length + 40},
        {0, 0},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        memcpy(entry.bytes + AT_KEY_LENGTH, &lies[i].key, 8);
        memcpy(entry.bytes + AT_PAYLOAD_LENGTH, &lies[i].payload, 8);
        if (!missed(&entry, entry.bytes, entry.length))
            fail_msg("lie %zu", i);
    }
    free(entry.bytes);
}

static void another_format_is_a_miss(void **state) {
    const struct entry entry = make_entry(*state);
    entry.bytes[AT_FORMAT]++;
    assert_true(missed(&entry, entry.bytes, entry.length));
    free(entry.bytes);
}

static void an_entry_of_another_key_is_a_miss(void **state) {
    const struct entry one = make_entry(*state);
    char path[4096];
    assert_int_equal(unlink(one.path), 0);
    store(*state, "two"); /* a key of the same length */
    strcpy(path, scratch_only_file(*state));
    size_t length = 0;
    unsigned char *const two = scratch_read(path, &length);
    assert_int_equal(length, one.length);
    assert_true(missed(&one, two, length));
    assert_true(fetch(*state, "two"));
    free(two);
    free(one.bytes);
}

static void junk_is_a_miss(void **state) {
    const struct entry entry = make_entry(*state);
    unsigned char junk[4096];
    uint32_t random = 1;
    for (size_t round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof junk; i++)
            junk[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
        const size_t genuine = round % 5 * 10; /* begins like an entry */
        memcpy(junk, entry.bytes, genuine);
        assert_true(missed(&entry, junk, round * 20));
    }
    free(entry.bytes);
}

static void a_huge_file_is_a_miss_and_is_not_read(void **state) {
    const struct entry entry = make_entry(*state);
    assert_int_equal(truncate(entry.path, (off_t)1 << 40), 0); /* sparse: it takes no room */
    assert_false(fetch(*state, "one"));
    assert_false(scratch_exists(entry.path));
    free(entry.bytes);
}

static void what_is_no_file_is_a_miss_and_stays(void **state) {
    const struct entry entry = make_entry(*state);
    const char *const elsewhere = scratch_path(*state, "elsewhere");
    assert_int_equal(rename(entry.path, elsewhere), 0);

    assert_int_equal(symlink(elsewhere, entry.path), 0); /* to a sound entry */
    assert_false(fetch(*state, "one"));
    assert_true(scratch_exists(entry.path) && scratch_exists(elsewhere));
    assert_int_equal(unlink(entry.path), 0);

    assert_int_equal(mkfifo(entry.path, 0600), 0); /* opening it would wait for a writer */
    assert_false(fetch(*state, "one"));
    assert_true(scratch_exists(entry.path));
    assert_int_equal(unlink(entry.path), 0);

    assert_int_equal(mkdir(entry.path, 0700), 0);
    assert_false(fetch(*state, "one"));
    store(*state, "one"); /* cannot take the folder's place */
    assert_false(fetch(*state, "one"));
    assert_int_equal(scratch_count(*state), 2);
    free(entry.bytes);
}

/* ----------------------------------------------------------------------------------------------------------- folders */

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
    const char *dir = "/"; /* of root, and not to be written to by others */
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

/* To a folder of one's own, as the last part of the path or before it. The user's own links are followed. */
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
        assert_non_null(strstr(clnorm_error_detail(), "symbolic link"));
    }
    assert_int_equal(scratch_count(folder), 2); /* an entry, and the folder below */
    assert_int_equal(scratch_count(scratch_path(folder, "below")), 1);
    assert_true(fetch(folder, "one"));
}

static void a_folder_that_cannot_be_had_is_a_miss(void **state) {
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
        assert_int_equal(truncate(scratch_path(dir, names[i]), (off_t)300 << 20), 0); /* past the cap by itself */
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

/* --------------------------------------------------------------------------------------------------------------- cap */

static void set_age(const char *path, time_t seconds) {
    const struct timespec now = {time(NULL) - seconds, 0};
    const struct timespec times[2] = {now, now};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A file as an entry would be called, sparse, of so many MiB, last used so many seconds ago. */
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

static void past_the_cap_the_oldest_go(void **state) {
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

/* Files of a clock that was ahead would be the latest used for years, and leave no room. */
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

static void what_was_used_stays(void **state) {
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

/* A temporary file as a store that was killed leaves it. */
static const char *make_temporary(const char *dir, char digit, time_t age) {
    char name[CLN_FILE_CAPACITY];
    memset(name, digit, CLN_DIGEST_DIGITS);
    strcpy(name + CLN_DIGEST_DIGITS, "-1790000000.123456789-4711.clnorm");
    const char *const path = scratch_path(dir, name);
    scratch_write(path, "half of an ent", 14);
    set_age(path, age);
    return path;
}

static void what_killed_stores_left_goes_after_an_hour(void **state) {
    const char *const dir = *state;
    const char *const old = make_temporary(dir, '1', 3700);
    const char *const ahead = make_temporary(dir, '2', -100000);
    const char *const young = make_temporary(dir, '3', 3500); /* its store may be under way */
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
        (void)fetch(dir, "one"); /* a hit is checked there */
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_scratch, remove_scratch)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(keys_tell_lists_of_parts_apart),
        TEST(texts_are_read_back),
        TEST(a_key_that_lost_a_part_is_a_miss),
        TEST(what_is_stored_is_fetched),
        TEST(storing_again_replaces),
        TEST(the_folder_is_made_for_the_user_alone),
        TEST(fetching_makes_no_folder),
        TEST(nothing_is_not_stored),
        TEST(what_is_too_large_is_not_stored),
        TEST(a_file_cut_anywhere_is_a_miss),
        TEST(a_flipped_bit_anywhere_is_a_miss),
        TEST(more_bytes_than_said_are_a_miss),
        TEST(lengths_that_lie_are_a_miss),
        TEST(another_format_is_a_miss),
        TEST(an_entry_of_another_key_is_a_miss),
        TEST(junk_is_a_miss),
        TEST(a_huge_file_is_a_miss_and_is_not_read),
        TEST(what_is_no_file_is_a_miss_and_stays),
        TEST(a_folder_that_others_may_write_to_is_not_used),
        TEST(a_folder_of_somebody_else_is_not_used),
        TEST(a_link_of_somebody_else_is_not_followed),
        TEST(a_folder_that_cannot_be_had_is_a_miss),
        TEST(an_unreadable_folder_or_entry_is_a_miss),
        TEST(other_files_are_left_alone),
        TEST(past_the_cap_the_oldest_go),
        TEST(files_from_the_future_go_first),
        TEST(what_was_used_stays),
        TEST(what_killed_stores_left_goes_after_an_hour),
        TEST(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
