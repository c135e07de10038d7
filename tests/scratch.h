/* A temporary folder of a test, and helpers for its files. A failure of a helper ends the test. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Makes an empty folder that only the user can access. The caller passes its path to scratch_remove. */
char *scratch_make(void);
void scratch_remove(char *path);

/* Setup and teardown of a test whose state is the path of such a folder. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
#define scratch_test(function) cmocka_unit_test_setup_teardown(function, scratch_setup, scratch_teardown)

/* Joins a folder and a name; the result is valid until the sixteenth call after this. */
const char *scratch_path(const char *dir, const char *name);

/* Writes, or overwrites, a whole file. */
void scratch_write(const char *path, const void *bytes, size_t length);

/* Reads a whole file into a new allocation. */
unsigned char *scratch_read(const char *path, size_t *length);

bool scratch_exists(const char *path);

/* Number of entries in a folder. */
size_t scratch_count(const char *dir);

/* Path of a folder's only entry; valid as long as a scratch_path. */
const char *scratch_only_file(const char *dir);

#endif
