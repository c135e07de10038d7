/* Command lines, read with popt, and the words in them. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <popt.h>

#include "fault.h"

enum { MOST_OPTIONS = 128 }; /* of a command */

struct command_line {
    poptContext context;
    const struct poptOption *table; /* its strings and lists are freed with the command line */
    bool help;                      /* --help was given, and printed */
    bool given[MOST_OPTIONS];       /* by the index in the table: options with a number */
};

/* The help of a command. */
struct command_help {
    const char *usage;
    const char *epilogue; /* may be NULL */
    const struct poptOption *table;
};

/* Makes command_line_read pass help to `take` instead of printing it. NULL: it prints help again. */
void command_help_to(void (*take)(const struct command_help *help, void *user), void *user);

/* argv[0] is the command as help shows it, "clnorm run"; usage: what may follow it besides options. epilogue: text below
 * the options in help, may be NULL. table: the val of an option with a whole number is the least number. On failure the
 * command line is closed. */
bool command_line_read(struct command_line *line, int argc, const char **argv, const char *usage, const char *epilogue,
                       const struct poptOption *table, struct fault *fault);

/* Whether an option with a number was given, also with its default value. name: as in the table. */
bool command_line_has(const struct command_line *line, const char *name);

/* The next argument that is not an option; NULL after the last. */
const char *command_line_next(struct command_line *line);

/* Fails if there is another one. */
bool command_line_end(struct command_line *line, struct fault *fault);

void command_line_close(struct command_line *line);

/* Reads 0 to 2^64 - 1 in decimal digits. option: the name for the error. */
bool parse_seed(const char *option, const char *word, uint64_t *seed, struct fault *fault);

/* The place of a word, from 1, in "neox|interleaved", as help has the words of an option. 0: it is none of them. option:
 * the name for the error message. */
unsigned parse_word(const char *option, const char *word, const char *words, struct fault *fault);

/* Reads f32, f16, bf16 or f64. option: the name for the error message. */
bool parse_dtype(const char *option, const char *word, clnorm_dtype *dtype, struct fault *fault);

/* Called for each word of "a,b,c". */
typedef bool (*word_fn)(const char *word, void *user, struct fault *fault);

/* Stops at the first failure. what: the option's name, for the error of an empty or repeated word. */
bool each_word(const char *list, const char *what, word_fn call, void *user, struct fault *fault);

#endif
