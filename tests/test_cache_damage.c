/* Damaged and unfinished entries of the cache, and files that are no entries: each is a miss. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_case.h"
#include "scratch.h"

/* Offsets of an entry's fields, in bytes. */
enum { AT_FORMAT = 4, AT_KEY_LENGTH = 8, AT_PAYLOAD_LENGTH = 16, AT_DIGEST = 24, AT_KEY = 40 };

/* A stored entry: its folder, its file and the file's bytes. */
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
    assert_true(entry.length > AT_KEY + cache_payload_size);
    return entry;
}

/* Whether a file with these bytes is a miss and is removed. */
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

static void surplus_bytes_are_a_miss(void **state) {
    struct entry entry = make_entry(*state);
    entry.bytes = realloc(entry.bytes, entry.length + 1);
    assert_non_null(entry.bytes);
    entry.bytes[entry.length] = 0;
    assert_true(missed(&entry, entry.bytes, entry.length + 1));
    free(entry.bytes);
}

static void wrong_lengths_are_a_miss(void **state) {
    const struct entry entry = make_entry(*state);
    uint64_t key_length, payload_length;
    memcpy(&key_length, entry.bytes + AT_KEY_LENGTH, 8);
    memcpy(&payload_length, entry.bytes + AT_PAYLOAD_LENGTH, 8);
    const struct {
        uint64_t key, payload;
    } wrong[] = {
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
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(entry.bytes + AT_KEY_LENGTH, &wrong[i].key, 8);
        memcpy(entry.bytes + AT_PAYLOAD_LENGTH, &wrong[i].payload, 8);
        if (!missed(&entry, entry.bytes, entry.length))
            fail_msg("lengths %zu", i);
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

static void other_types_of_files_are_a_miss_and_stay(void **state) {
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

/* A disk that fills up anywhere within an entry: no part of it is kept, and an earlier one stays. */
static void a_store_that_fails_leaves_nothing(void **state) {
    const struct entry entry = make_entry(*state);
    struct rlimit usual;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_ptr_not_equal(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    for (size_t room = 0; room < entry.length; room++) {
        const struct rlimit small = {(rlim_t)room, usual.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        store(*state, "one");
        store(*state, "two"); /* as long as the other one */
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
        if (scratch_count(*state) != 1 || !fetch(*state, "one") || fetch(*state, "two"))
            fail_msg("with room for %zu of %zu bytes", room, entry.length);
    }
    assert_ptr_not_equal(signal(SIGXFSZ, SIG_DFL), SIG_ERR);
    store(*state, "two");
    assert_true(fetch(*state, "two"));
    free(entry.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(a_file_cut_anywhere_is_a_miss),
        scratch_test(a_flipped_bit_anywhere_is_a_miss),
        scratch_test(surplus_bytes_are_a_miss),
        scratch_test(wrong_lengths_are_a_miss),
        scratch_test(another_format_is_a_miss),
        scratch_test(an_entry_of_another_key_is_a_miss),
        scratch_test(junk_is_a_miss),
        scratch_test(a_huge_file_is_a_miss_and_is_not_read),
        scratch_test(other_types_of_files_are_a_miss_and_stay),
        scratch_test(a_store_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
