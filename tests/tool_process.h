/* Runs the program clnorm by a shell in a scratch folder, and makes tensor files for it. CLNORM_TOOL and CLNORM_SAMPLE in
 * the environment are the program and the sample tensors. */
#ifndef TOOL_PROCESS_H
#define TOOL_PROCESS_H

#include <jansson.h>

#include "tensor_file.h"

enum { MOST_TEXT = 1 << 17 };

/* Exit code and output of the last run. */
struct result {
    int code;
    char out[MOST_TEXT], err[MOST_TEXT];
};
extern struct result result;

/* Runs the program by a shell: words may be quoted. environment: variables to set, as in a shell command. */
__attribute__((format(printf, 2, 3))) void run_in(const char *environment, const char *format, ...);

#define run(...) run_in("", __VA_ARGS__)

/* Checks that the last run succeeded and wrote nothing to stderr, which is no terminal. */
void assert_done(void);

/* Checks that it failed with this code and one line that contains part. */
void assert_failed(int code, const char *part);

/* Words of a command line, and a part of the error message that it gets. */
struct refused_words {
    const char *words, *part;
};

/* Runs the program with each line of a table after the same command, and checks that each is a refused request. */
void assert_each_refused(const char *command, const struct refused_words *table, size_t count);

/* Checks that its output contains part. */
void assert_says(const char *part);

/* Checks that every line of its output fits 80 columns. */
void assert_narrow(void);

/* A file's text, of less than MOST_TEXT bytes. */
void read_text(const char *path, char *text);

/* Number of times that part occurs in text. */
size_t count_of(const char *text, const char *part);

/* Parses JSON; the caller releases the value. */
json_t *json_of(const char *text);

/* Checks that an object has all keys of a NULL-terminated list. */
void assert_has_keys(const json_t *object, const char *const *keys);

void open_file(struct tensor_file *file, const char *path);

/* The tensor of a name; ends the test where it is absent or has another dtype or rank. */
const struct tensor *find(const struct tensor_file *file, const char *name, clnorm_dtype dtype, unsigned rank);

double at(const struct tensor *tensor, uint64_t i);

/* Writes a file with one tensor of the numbers i % 17. */
void put_tensor(const char *path, const char *name, const char *element, unsigned rank, uint64_t rows, uint64_t cols);

/* Setup and teardown of a group of tests: the working folder is a scratch folder. */
int make_folder(void **state);
int remove_folder(void **state);

#endif
