#include "manual.h"

#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- manual page */

/* Prints a line for roff: escapes its special characters, and keeps it from beginning with a request. */
static void put_text(const char *text, size_t length) {
    if (length && *text == '.')
        fputs("\\&", stdout);
    for (const char *at = text; at < text + length; at++) {
        if (*at == '\\')
            fputs("\\e", stdout);
        else if (*at == '-')
            fputs("\\-", stdout);
        else if (*at == '`')
            fputs("\\(ga", stdout);
        else if (*at == '\'')
            fputs("\\(aq", stdout);
        else if (*at == '~')
            fputs("\\(ti", stdout);
        else
            putchar(*at);
    }
}

static void put_word(const char *text) {
    put_text(text, strlen(text));
}

static void page_begin(const struct command *commands) {
    (void)commands;
    printf(".TH CLNORM 1 \"\" \"clnorm %s\" \"User Commands\"\n.nh\n.ad l\n", clnorm_version()); /* names stay whole */
    printf(
        ".SH NAME\nclnorm \\- normalise tensors on OpenCL devices\n"
        ".SH SYNOPSIS\n.B clnorm\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n"
        ".SH DESCRIPTION\nclnorm computes layer, RMS, group and L2 norms, softmax, GELU and 8-bit quantisation of tensors in\n"
        ".I .safetensors\nand\n.I .npy\nfiles, on GPUs, CPUs and other OpenCL devices. It measures these operations, and\n"
        "compares their results with a computation in double.\n"
        ".PP\nEvery command has\n.B \\-h\nand\n.BR \\-\\-help .\n"
        ".SH COMMANDS\n");
}

static void put_option(const struct poptOption *option) {
    printf(".TP\n");
    if (option->shortName)
        printf("\\fB\\-%c\\fR, ", option->shortName);
    printf("\\fB\\-\\-");
    put_word(option->longName);
    printf("\\fR");
    if (option->argDescrip) {
        printf("=\\fI");
        put_word(option->argDescrip);
        printf("\\fR");
    }
    putchar('\n');
    put_word(option->descrip);
    putchar('\n');
}

/* Prints lines as they are, but fills a long one, which is a paragraph, at its own indentation. */
static void put_epilogue(const char *text) {
    enum { WIDTH = 72 }; /* of a page, without its margin */
    printf(".PP\n.nf\n");
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n"), indent = strspn(line, " ");
        const bool fill = length > WIDTH;
        if (fill)
            printf(".fi\n.in +%zun\n", indent);
        put_text(line + (fill ? indent : 0), length - (fill ? indent : 0));
        printf(fill ? "\n.br\n.in\n.nf\n" : "\n");
        line += length + (line[length] == '\n');
    }
    printf(".fi\n");
}

static void page_command(const struct command *command, const struct command_help *help) {
    printf(".SS clnorm %s ", command->name);
    put_word(help->usage);
    putchar('\n');
    put_word(command->summary);
    putchar('\n');
    for (const struct poptOption *option = help->table; option->longName; option++)
        put_option(option);
    if (help->epilogue)
        put_epilogue(help->epilogue);
}

static void page_end(void) {
    printf(".SH EXIT STATUS\n"
           ".TP\n0\ndone\n"
           ".TP\n1\nit ran and failed: build, device, verification\n"
           ".TP\n2\nthe request is wrong: unknown word, missing or misshaped tensor, unreadable file\n"
           ".SH ENVIRONMENT\n"
           ".TP\n.B CLNORM_DEVICE\nthe selector for commands without one; see\n.B clnorm select\n"
           ".TP\n.B CLNORM_CACHE_DIR\nthe folder of compiled programs\n"
           ".TP\n.B CLNORM_CACHE\n0: nothing is kept on disk\n"
           ".TP\n.B CLNORM_TUNING\nthe file of measured configs; 0: none\n");
}

const struct manual_writer manual_page = {"page", page_begin, page_command, page_end};

/* ------------------------------------------------------------------------------------------------------------ command */

struct walk {
    const struct manual_writer *writer;
    const struct command *command;
};

static void take_help(const struct command_help *help, void *user) {
    const struct walk *const walk = user;
    walk->writer->command(walk->command, help);
}

/* Runs each command with --help, and writes the help that it passes to command_line_read. */
static int write_manual(const struct manual_writer *writer, const struct command *commands, struct fault *fault) {
    writer->begin(commands);
    for (const struct command *command = commands; command->name; command++) {
        struct walk walk = {writer, command};
        const char *argv[] = {command->name, "--help", NULL};
        command_help_to(take_help, &walk);
        const int code = command->run(2, argv, fault);
        command_help_to(NULL, NULL);
        if (code != EXIT_DONE)
            return code;
    }
    writer->end();
    return EXIT_DONE;
}

int manual_command(const struct command *commands, int argc, const char **argv, struct fault *fault) {
    static const struct manual_writer *const writers[] = {&manual_page, &bash_completion, &zsh_completion,
                                                          &fish_completion};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (argc == 2 && !strcmp(argv[1], writers[i]->word))
            return write_manual(writers[i], commands, fault);
    fault_set(fault, EXIT_REQUEST, "manual: expected page, bash, zsh or fish");
    return EXIT_REQUEST;
}
