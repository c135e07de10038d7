/* The subcommands, a file each. argv[0] is "clnorm NAME". They return an exit code; where it is not EXIT_DONE, fault says
 * why. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "fault.h"

struct command {
    const char *name; /* NULL after the last one of a list */
    const char *summary;
    int (*run)(int argc, const char **argv, struct fault *fault);
};

/* Prints the manual of these commands in one form; argv[1]: page, bash, zsh or fish. */
int manual_command(const struct command *commands, int argc, const char **argv, struct fault *fault);

int devices_command(int argc, const char **argv, struct fault *fault);
int select_command(int argc, const char **argv, struct fault *fault);
int run_command(int argc, const char **argv, struct fault *fault);
int bench_command(int argc, const char **argv, struct fault *fault);
int profile_command(int argc, const char **argv, struct fault *fault);
int check_command(int argc, const char **argv, struct fault *fault);
int tune_command(int argc, const char **argv, struct fault *fault);
int tensors_command(int argc, const char **argv, struct fault *fault);
int cache_command(int argc, const char **argv, struct fault *fault);

#endif
