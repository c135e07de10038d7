/* Completion of command lines in bash, zsh and fish. */
#include <stdio.h>
#include <string.h>

#include "bench_operation.h"
#include "manual.h"
#include "operation.h"

/* -------------------------------------------------------------------------------------------------------------- words */

static const char device_words[] = "gpu cpu accelerator";
static const char dtype_words[] = "f32 f16 bf16 f64"; /* DT: of tensors that are measured */
static const char all_dtype_words[] = "f32 f16 bf16 f64 f8e4m3 f8e5m2";

/* Prints the words of "[path | list | clear] [OPTION...]" before the bracket, or of "silu|sigmoid", with spaces between
 * them. */
static void put_choices(const char *text) {
    bool inside = false, first = true;
    for (const char *at = text; *at && *at != ']'; at++) {
        const bool of_word = !strchr(" |[", *at);
        if (of_word && !inside && !first)
            putchar(' ');
        if (of_word)
            putchar(*at);
        inside = of_word;
        first = first && !of_word;
    }
}

/* Prints the words that a command takes as arguments, besides options. */
static void put_argument_words(const struct command *command, const struct command_help *help) {
    if (!strcmp(command->name, "run")) {
        for (const struct operation *operation = operation_list(); operation->name; operation++)
            printf("%s%s", operation == operation_list() ? "" : " ", operation->name);
    } else if (strstr(help->usage, "OP ") || strstr(help->usage, "OP...")) {
        for (const struct bench_operation *operation = bench_operations(); operation->name; operation++)
            printf("%s%s", operation == bench_operations() ? "" : " ", operation->name);
    } else if (strstr(help->usage, "SELECTOR")) {
        fputs(device_words, stdout);
    } else if (strchr(help->usage, '|')) {
        put_choices(help->usage);
    }
}

/* Whether a command takes files as arguments. */
static bool takes_files(const struct command_help *help) {
    return !strncmp(help->usage, "FILE", 4);
}

enum value { VALUE_NONE, VALUE_ANY, VALUE_FILE, VALUE_WORDS };

static enum value option_value(const struct poptOption *option) {
    const char *const name = option->argDescrip;
    if (!name)
        return VALUE_NONE;
    if (!strcmp(name, "FILE"))
        return VALUE_FILE;
    const bool words = strchr(name, '|') || !strncmp(name, "DT", 2) || !strcmp(name, "SELECTOR");
    return words ? VALUE_WORDS : VALUE_ANY;
}

static void put_value_words(const struct poptOption *option) {
    if (!strcmp(option->argDescrip, "SELECTOR"))
        fputs(device_words, stdout);
    else if (!strncmp(option->argDescrip, "DT", 2))
        fputs(strcmp(option->argDescrip, "DTYPE") ? dtype_words : all_dtype_words, stdout);
    else
        put_choices(option->argDescrip);
}

/* Prints a text with a backslash before each character of a set. */
static void put_escaped(const char *text, const char *set) {
    for (const char *at = text; *at; at++) {
        if (strchr(set, *at))
            putchar('\\');
        putchar(*at);
    }
}

/* --------------------------------------------------------------------------------------------------------------- bash */

static void bash_begin(const struct command *commands) {
    printf("# Completion of clnorm for bash, made by `clnorm manual bash`.\n\n"
           "_clnorm() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= files=\n"
           "    if [[ $word == = ]]; then\n"
           "        word=\n"
           "    elif [[ $before == = ]]; then\n"
           "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    case $COMP_CWORD:${COMP_WORDS[1]}:$before in\n"
           "    1:*) words=\"");
    for (const struct command *command = commands; command->name; command++)
        printf("%s ", command->name);
    printf("help --help --version\" ;;\n");
}

static void bash_option(const struct command *command, const struct poptOption *option) {
    const enum value value = option_value(option);
    if (value == VALUE_NONE)
        return;
    printf("    *:%s:--%s", command->name, option->longName);
    if (option->shortName)
        printf(" | *:%s:-%c", command->name, option->shortName);
    if (value == VALUE_FILE)
        printf(") files=1 ;;\n");
    else if (value == VALUE_ANY)
        printf(") ;;\n");
    else {
        printf(") words=\"");
        put_value_words(option);
        printf("\" ;;\n");
    }
}

static void bash_command(const struct command *command, const struct command_help *help) {
    for (const struct poptOption *option = help->table; option->longName; option++)
        bash_option(command, option);
    printf("    *:%s:*) %swords=\"", command->name, takes_files(help) ? "files=1 " : "");
    put_argument_words(command, help);
    for (const struct poptOption *option = help->table; option->longName; option++)
        printf(" --%s", option->longName);
    printf(" --help\" ;;\n");
}

static void bash_end(void) {
    printf("    esac\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" ${files:+-f} -- \"$word\")\n"
           "}\n"
           "complete -o filenames -F _clnorm clnorm\n");
}

const struct manual_writer bash_completion = {"bash", bash_begin, bash_command, bash_end};

/* ---------------------------------------------------------------------------------------------------------------- zsh */

static const char zsh_special[] = ":[]\\";

/* Prints a text inside single quotes; an apostrophe closes and reopens them. */
static void zsh_quoted(const char *text) {
    for (const char *at = text; *at; at++) {
        if (*at == '\'')
            fputs("'\\''", stdout);
        else {
            const char one[] = {*at, '\0'};
            put_escaped(one, zsh_special);
        }
    }
}

static void zsh_begin(const struct command *commands) {
    printf("#compdef clnorm\n# Completion of clnorm for zsh, made by `clnorm manual zsh`.\n\n"
           "_clnorm() {\n"
           "    if ((CURRENT == 2)); then\n"
           "        local -a commands=(\n");
    for (const struct command *command = commands; command->name; command++) {
        printf("            '%s:", command->name);
        zsh_quoted(command->summary);
        printf("'\n");
    }
    printf("        )\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $words[1] in\n");
}

static void zsh_option(const struct poptOption *option) {
    const enum value value = option_value(option);
    const char *const equals = value == VALUE_NONE ? "" : "=";
    if (option->shortName)
        printf(" \\\n            '*'{-%c,--%s%s}'[", option->shortName, option->longName, equals);
    else
        printf(" \\\n            '--%s%s[", option->longName, equals);
    zsh_quoted(option->descrip);
    putchar(']');
    if (value != VALUE_NONE) {
        putchar(':');
        zsh_quoted(option->argDescrip);
        putchar(':');
    }
    if (value == VALUE_FILE)
        printf("_files");
    else if (value == VALUE_WORDS) {
        putchar('(');
        put_value_words(option);
        putchar(')');
    }
    putchar('\'');
}

static void zsh_command(const struct command *command, const struct command_help *help) {
    printf("    %s)\n        _arguments", command->name);
    for (const struct poptOption *option = help->table; option->longName; option++)
        zsh_option(option);
    printf(" \\\n            '*:");
    zsh_quoted(help->usage);
    if (takes_files(help))
        printf(":_files'\n        ;;\n");
    else {
        printf(":(");
        put_argument_words(command, help);
        printf(")'\n        ;;\n");
    }
}

static void zsh_end(void) {
    printf("    esac\n}\n\n_clnorm \"$@\"\n");
}

const struct manual_writer zsh_completion = {"zsh", zsh_begin, zsh_command, zsh_end};

/* --------------------------------------------------------------------------------------------------------------- fish */

static void fish_described(const char *text) {
    printf(" -d '");
    put_escaped(text, "'\\");
    printf("'\n");
}

static void fish_begin(const struct command *commands) {
    printf("# Completion of clnorm for fish, made by `clnorm manual fish`.\n\ncomplete -c clnorm -f\n");
    for (const struct command *command = commands; command->name; command++) {
        printf("complete -c clnorm -n __fish_use_subcommand -a %s", command->name);
        fish_described(command->summary);
    }
}

static void fish_option(const struct command *command, const struct poptOption *option) {
    printf("complete -c clnorm -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->longName);
    if (option->shortName)
        printf(" -s %c", option->shortName);
    const enum value value = option_value(option);
    if (value == VALUE_FILE)
        printf(" -r -F");
    else if (value != VALUE_NONE)
        printf(" -x");
    if (value == VALUE_WORDS) {
        printf(" -a '");
        put_value_words(option);
        putchar('\'');
    }
    fish_described(option->descrip);
}

static void fish_command(const struct command *command, const struct command_help *help) {
    for (const struct poptOption *option = help->table; option->longName; option++)
        fish_option(command, option);
    printf("complete -c clnorm -n '__fish_seen_subcommand_from %s' %s -a '", command->name,
           takes_files(help) ? "-F" : "-f");
    put_argument_words(command, help);
    printf("'\n");
}

static void fish_end(void) {}

const struct manual_writer fish_completion = {"fish", fish_begin, fish_command, fish_end};
