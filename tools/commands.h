/* The subcommands, a file each. argv[0] is "clnorm NAME". They return an exit code; where it is not EXIT_DONE, fault says
 * why. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "fault.h"

int devices_command(int argc, const char **argv, struct fault *fault);
int select_command(int argc, const char **argv, struct fault *fault);
int run_command(int argc, const char **argv, struct fault *fault);
int bench_command(int argc, const char **argv, struct fault *fault);
int profile_command(int argc, const char **argv, struct fault *fault);
int check_command(int argc, const char **argv, struct fault *fault);
int tune_command(int argc, const char **argv, struct fault *fault);
int cache_command(int argc, const char **argv, struct fault *fault);

#endif
