/* A folder of a test's own, and small things to do with the files in it. Whatever fails ends the test. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Makes an empty folder, for the user alone; its path is to be given to scratch_remove. */
char *scratch_make(void);
void scratch_remove(char *path);

/* As a test's setup and teardown: such a folder is its state. */
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

/* How many names a folder has. */
size_t scratch_count(const char *dir);

/* The only name that a folder has; valid as a scratch_path. */
const char *scratch_only_file(const char *dir);

#endif
