/* The program clnorm, run as a script would run it in a scratch folder, and tensor files for it. CLNORM_TOOL and
 * CLNORM_SAMPLE in the environment are the program and the sample tensors. */
#ifndef TOOL_PROCESS_H
#define TOOL_PROCESS_H

#include <jansson.h>

#include "tensor_file.h"

enum { MOST_TEXT = 1 << 17 };

/* What a run of the program left. */
struct result {
    int code;
    char out[MOST_TEXT], err[MOST_TEXT];
};
extern struct result result;

/* Runs the program in the scratch folder, as a shell would: words may be quoted, variables may stand before. */
__attribute__((format(printf, 2, 3))) void run_in(const char *environment, const char *format, ...);

#define run(...) run_in("", __VA_ARGS__)

/* It did what it was asked to, and had nothing to say on stderr, which is no terminal. */
void assert_done(void);

/* It failed with this code and one line that has part in it. */
void assert_failed(int code, const char *part);

/* The last run printed this. */
void assert_says(const char *part);

/* Every line that it printed fits 80 columns. */
void assert_narrow(void);

/* A file's text, of less than MOST_TEXT bytes. */
void read_text(const char *path, char *text);

/* How often part is in text. */
size_t count_of(const char *text, const char *part);

/* The JSON that text is; the caller's to release. */
json_t *json_of(const char *text);

/* keys: ended by NULL. */
void assert_has_keys(const json_t *object, const char *const *keys);

void open_file(struct tensor_file *file, const char *path);

/* A tensor that must be there. */
const struct tensor *find(const struct tensor_file *file, const char *name, clnorm_dtype dtype, unsigned rank);

double at(const struct tensor *tensor, uint64_t i);

/* Writes a file with one tensor of numbers that count. */
void put_tensor(const char *path, const char *name, const char *element, unsigned rank, uint64_t rows, uint64_t cols);

/* Set-up and tear-down of a group of tests: a scratch folder to be in. */
int make_folder(void **state);
int remove_folder(void **state);

#endif
