#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closest.h"
#include "report.h"

/* Prints a line of the epilogue, wrapped where it is long. Further lines have its indentation. */
static void print_paragraph(const char *line, int length) {
    char label[32];
    char *const text = strndup(line, (size_t)length);
    const int indent = (int)strspn(line, " ");
    if (!text || length <= 80 || indent >= (int)sizeof label)
        printf("%.*s\n", length, line);
    else {
        (void)snprintf(label, sizeof label, "%*s", indent, "");
        print_wrapped(label, text + indent);
    }
    free(text);
}

static void (*take_help)(const struct command_help *help, void *user); /* NULL: help is printed */
static void *help_user;

void command_help_to(void (*take)(const struct command_help *help, void *user), void *user) {
    take_help = take;
    help_user = user;
}

static void print_help(poptContext context, const struct command_help *help) {
    if (take_help) {
        take_help(help, help_user);
        return;
    }
    poptPrintHelp(context, stdout, 0);
    if (help->epilogue)
        putchar('\n');
    for (const char *line = help->epilogue; line && *line;) {
        const int length = (int)strcspn(line, "\n");
        print_paragraph(line, length);
        line += length + (line[length] == '\n');
    }
}

static bool refuse_option(const char *bad, const struct poptOption *table, struct fault *fault) {
    struct closest closest = closest_to(bad + strspn(bad, "-"));
    for (const struct poptOption *option = table; option->longName; option++)
        closest_offer(&closest, option->longName);
    return closest.name ? fault_set(fault, EXIT_REQUEST, "%s: unknown option; did you mean --%s?", bad, closest.name)
                        : fault_set(fault, EXIT_REQUEST, "%s: unknown option; see --help", bad);
}

static bool is_number(const struct poptOption *option) {
    return option->argInfo == POPT_ARG_INT || option->argInfo == POPT_ARG_LONGLONG || option->argInfo == POPT_ARG_DOUBLE;
}

/* A copy of the table in which numbers are words that read_options gets: popt itself reads 010 as 8, and '' as 0. */
static struct poptOption *with_words(const struct poptOption *table) {
    size_t count = 0;
    while (table[count].longName)
        count++;
    struct poptOption *const copy = malloc((count + 1) * sizeof *copy);
    for (size_t i = 0; copy && i <= count; i++) {
        copy[i] = table[i];
        if (is_number(&table[i])) {
            copy[i].argInfo = POPT_ARG_STRING;
            copy[i].arg = NULL;
            copy[i].val = (int)i + 1;
        }
    }
    return copy;
}

static bool are_digits(const char *word) {
    return *word && !word[strspn(word, "0123456789")];
}

static bool read_whole(const struct poptOption *option, const char *word, struct fault *fault) {
    const bool wide = option->argInfo == POPT_ARG_LONGLONG;
    const long long most = wide ? LLONG_MAX : INT_MAX;
    const long long least = option->val;
    if (!are_digits(word + (*word == '-')))
        return fault_set(fault, EXIT_REQUEST, "--%s '%s': expected a whole number", option->longName, word);
    errno = 0;
    const long long number = strtoll(word, NULL, 10);
    if (number < least)
        return fault_set(fault, EXIT_REQUEST, "--%s %s: expected %lld or more", option->longName, word, least);
    if (errno || number > most)
        return fault_set(fault, EXIT_REQUEST, "--%s %s: expected at most %lld", option->longName, word, most);
    if (wide)
        *(long long *)option->arg = number;
    else
        *(int *)option->arg = (int)number;
    return true;
}

static bool read_real(const struct poptOption *option, const char *word, struct fault *fault) {
    char *end;
    errno = 0;
    const double number = strtod(word, &end);
    if (end == word || *end)
        return fault_set(fault, EXIT_REQUEST, "--%s '%s': expected a number", option->longName, word);
    if (errno)
        return fault_set(fault, EXIT_REQUEST, "--%s %s: expected a number in the range of double", option->longName, word);
    *(double *)option->arg = number;
    return true;
}

static bool read_options(struct command_line *line, struct fault *fault) {
    int code;
    while ((code = poptGetNextOpt(line->context)) > 0) {
        const struct poptOption *const option = &line->table[code - 1];
        char *const word = poptGetOptArg(line->context);
        const bool done =
            option->argInfo == POPT_ARG_DOUBLE ? read_real(option, word, fault) : read_whole(option, word, fault);
        free(word);
        if (!done)
            return false;
        line->given[code - 1] = true;
    }
    if (code == -1)
        return true;
    const char *const bad = poptBadOption(line->context, POPT_BADOPTION_NOALIAS);
    return code == POPT_ERROR_BADOPT ? refuse_option(bad, line->table, fault)
                                     : fault_set(fault, EXIT_REQUEST, "%s: %s", bad, poptStrerror(code));
}

bool command_line_read(struct command_line *line, int argc, const char **argv, const char *usage, const char *epilogue,
                       const struct poptOption *table, struct fault *fault) {
    int help = 0;
    struct poptOption *const words = with_words(table);
    const struct poptOption all[] = {
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, words, 0, "Options:", NULL},
        {"help", 'h', POPT_ARG_NONE, &help, 0, "Print this help", NULL},
        POPT_TABLEEND,
    };
    *line = (struct command_line){.table = table};
    line->context = words ? poptGetContext(NULL, argc, argv, all, 0) : NULL;
    if (line->context)
        poptSetOtherOptionHelp(line->context, usage);
    const bool done =
        line->context ? read_options(line, fault) : fault_set(fault, EXIT_FAILED, "out of memory for the command line");
    line->help = help;
    if (done && help)
        print_help(line->context, &(struct command_help){usage, epilogue, table});
    free(words);
    if (!done)
        command_line_close(line);
    return done;
}

bool command_line_has(const struct command_line *line, const char *name) {
    size_t i = 0;
    while (strcmp(line->table[i].longName, name) != 0)
        i++;
    return line->given[i];
}

const char *command_line_next(struct command_line *line) {
    return poptGetArg(line->context);
}

bool command_line_end(struct command_line *line, struct fault *fault) {
    const char *const word = poptGetArg(line->context);
    return !word || fault_set(fault, EXIT_REQUEST, "'%s': unexpected argument; see --help", word);
}

static void free_list(char **list) {
    for (char **word = list; word && *word; word++)
        free(*word);
    free((void *)list);
}

void command_line_close(struct command_line *line) {
    for (const struct poptOption *option = line->table; option->longName; option++) {
        if (option->argInfo == POPT_ARG_STRING)
            free(*(char **)option->arg);
        else if (option->argInfo == POPT_ARG_ARGV)
            free_list(*(char ***)option->arg);
    }
    poptFreeContext(line->context);
}

bool parse_seed(const char *option, const char *word, uint64_t *seed, struct fault *fault) {
    errno = 0;
    const unsigned long long value = strtoull(word, NULL, 10);
    if (!are_digits(word) || errno || value > UINT64_MAX)
        return fault_set(fault, EXIT_REQUEST, "%s '%s': expected a whole number from 0 to %" PRIu64, option, word,
                         UINT64_MAX);
    *seed = value;
    return true;
}

unsigned parse_word(const char *option, const char *word, const char *words, struct fault *fault) {
    const char *const last = strrchr(words, '|');
    char expected[128];
    size_t length = 0;
    unsigned place = 1;
    for (const char *at = words; length < sizeof expected; place++) {
        const size_t end = strcspn(at, "|");
        if (strlen(word) == end && !memcmp(word, at, end))
            return place;
        const char *const between = !at[end] ? "" : at + end == last ? " or " : ", ";
        length += (size_t)snprintf(expected + length, sizeof expected - length, "%.*s%s", (int)end, at, between);
        if (!at[end])
            break;
        at += end + 1;
    }
    fault_set(fault, EXIT_REQUEST, "%s '%s': expected %s", option, word, expected);
    return 0;
}

bool parse_dtype(const char *option, const char *word, clnorm_dtype *dtype, struct fault *fault) {
    *dtype = (clnorm_dtype)parse_word(option, word, "f32|f16|bf16|f64", fault);
    return *dtype;
}

/* Whether a word of the list is also one before it. */
static bool is_repeated(const char *list, const char *at, size_t length) {
    for (const char *word = list; word < at; word += strcspn(word, ",") + 1)
        if (strcspn(word, ",") == length && !memcmp(word, at, length))
            return true;
    return false;
}

bool each_word(const char *list, const char *what, word_fn call, void *user, struct fault *fault) {
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        char word[128];
        if (length == 0 || length >= sizeof word)
            return fault_set(fault, EXIT_REQUEST, "%s '%s': expected words separated by commas", what, list);
        memcpy(word, at, length);
        word[length] = '\0';
        if (is_repeated(list, at, length))
            return fault_set(fault, EXIT_REQUEST, "%s '%s': %s is given twice", what, list, word);
        if (!call(word, user, fault))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}
