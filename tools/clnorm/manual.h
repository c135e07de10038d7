/* The manual page, and the completion of command lines in shells: both made from what the commands themselves tell
 * command_line_read. `clnorm manual WORD` prints them when the tool is built; it is not in the list of commands. */
#ifndef MANUAL_H
#define MANUAL_H

#include "commands.h"
#include "options.h"

/* Prints one of them, to standard output: begin, each command with its help, end. */
struct manual_writer {
    const char *word;
    void (*begin)(const struct command *commands);
    void (*command)(const struct command *command, const struct command_help *help);
    void (*end)(void);
};

extern const struct manual_writer manual_page;                                      /* for man */
extern const struct manual_writer bash_completion, zsh_completion, fish_completion; /* completion.c */

#endif
