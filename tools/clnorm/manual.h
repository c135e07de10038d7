/* The manual page and the completion of shells. Both are made from the options and the help that commands pass to
 * command_line_read. The build prints them with `clnorm manual WORD`, which the list of commands does not have. */
#ifndef MANUAL_H
#define MANUAL_H

#include "commands.h"
#include "options.h"

/* Prints one of them to standard output: calls begin, command for each command, then end. */
struct manual_writer {
    const char *word;
    void (*begin)(const struct command *commands);
    void (*command)(const struct command *command, const struct command_help *help);
    void (*end)(void);
};

extern const struct manual_writer manual_page;                                      /* for man */
extern const struct manual_writer bash_completion, zsh_completion, fish_completion; /* completion.c */

#endif
