/* clnorm: normalisation on OpenCL devices, from the command line. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "options.h"

static const struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, const char **argv, struct fault *fault);
} commands[] = {
    {"devices", "list every OpenCL device, best first", devices_command},
    {"select", "say which device a selector means, and why", select_command},
    {"run", "normalise tensors of a file on a device", run_command},
    {"bench", "measure operations against a copy of the same bytes", bench_command},
    {"profile", "say where the time of one operation goes, kernel by kernel", profile_command},
    {"check", "build every kernel on a device and compare with a double reference", check_command},
    {"tune", "measure configs on a device and keep the best for later runs", tune_command},
    {"cache", "look at or clear the compiled programs kept on disk", cache_command},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *stream) {
    fprintf(stream, "Usage: clnorm COMMAND [ARGUMENT ...]\n\nCommands:\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n`clnorm COMMAND --help` says more; `clnorm --version` prints the version.\n"
                    "CLNORM_DEVICE in the environment selects a device for every command.\n");
}

static int run(int argc, const char **argv, struct fault *fault) {
    const char *const word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(word, "--version")) {
        printf("clnorm %s\n", clnorm_version());
        return EXIT_DONE;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(word, commands[i].name)) {
            char title[32];
            (void)snprintf(title, sizeof title, "clnorm %s", word);
            argv[1] = title;
            return commands[i].run(argc - 1, argv + 1, fault);
        }
    if (!*word)
        print_usage(stderr);
    else
        fault_set(fault, EXIT_REQUEST, "'%s' is no command; see clnorm --help", word);
    return EXIT_REQUEST;
}

int main(int argc, char **argv) {
    struct fault fault = {0};
    int code = run(argc, (const char **)argv, &fault);
    if (fflush(stdout) && code == EXIT_DONE) {
        fault_set(&fault, EXIT_FAILED, "standard output cannot be written");
        code = EXIT_FAILED;
    }
    if (*fault.text)
        fprintf(stderr, "clnorm: %s\n", fault.text);
    return code;
}
