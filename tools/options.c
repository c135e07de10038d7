#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(poptContext context, const char *epilogue) {
    poptPrintHelp(context, stdout, 0);
    if (epilogue)
        printf("\n%s", epilogue);
}

/* popt names a value that it cannot read: this is the option that the value is of. "" where bad is an option. */
static const char *option_before(int argc, const char **argv, const char *bad) {
    for (int i = 2; i < argc && *bad != '-'; i++)
        if (!strcmp(argv[i], bad) && *argv[i - 1] == '-')
            return argv[i - 1];
    return "";
}

bool command_line_read(struct command_line *line, int argc, const char **argv, const char *usage, const char *epilogue,
                       const struct poptOption *table, struct fault *fault) {
    int help = 0;
    const struct poptOption all[] = {
        {NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)table, 0, "Options:", NULL},
        {"help", 'h', POPT_ARG_NONE, &help, 0, "Say this and stop", NULL},
        POPT_TABLEEND,
    };
    *line = (struct command_line){.table = table};
    line->context = poptGetContext(NULL, argc, argv, all, 0);
    if (!line->context)
        return fault_set(fault, EXIT_FAILED, "out of memory for the command line");
    poptSetOtherOptionHelp(line->context, usage);
    const int code = poptGetNextOpt(line->context);
    if (code < -1) {
        const char *const bad = poptBadOption(line->context, POPT_BADOPTION_NOALIAS);
        const char *const before = option_before(argc, argv, bad);
        fault_set(fault, EXIT_REQUEST, "%s%s%s: %s", before, *before ? " " : "", bad, poptStrerror(code));
        command_line_close(line);
        return false;
    }
    line->help = help;
    if (help)
        print_help(line->context, epilogue);
    return true;
}

const char *command_line_next(struct command_line *line) {
    return poptGetArg(line->context);
}

bool command_line_end(struct command_line *line, struct fault *fault) {
    const char *const word = poptGetArg(line->context);
    return !word || fault_set(fault, EXIT_REQUEST, "'%s': no such argument is expected; see --help", word);
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

bool parse_dtype(const char *word, clnorm_dtype *dtype, struct fault *fault) {
    static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(word, clnorm_dtype_name(dtypes[i]))) {
            *dtype = dtypes[i];
            return true;
        }
    return fault_set(fault, EXIT_REQUEST, "'%s' is no dtype; they are f32, f16, bf16 and f64", word);
}

bool each_word(const char *list, const char *what, word_fn call, void *user, struct fault *fault) {
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        char word[128];
        if (length == 0 || length >= sizeof word)
            return fault_set(fault, EXIT_REQUEST, "%s '%s': expected words with commas between them", what, list);
        memcpy(word, at, length);
        word[length] = '\0';
        if (!call(word, user, fault))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}
