/* clnorm: normalisation on OpenCL devices, from the command line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "closest.h"
#include "commands.h"
#include "options.h"
#include "output_file.h"

static const struct command commands[] = {
    {"devices", "list every OpenCL device, best first", devices_command},
    {"select", "print the device that a selector matches, and why", select_command},
    {"run", "normalise tensors of a file on a device", run_command},
    {"bench", "measure operations against a copy of the same bytes", bench_command},
    {"profile", "print the time of each kernel of an operation", profile_command},
    {"check", "build every kernel on a device and compare with a double reference", check_command},
    {"tune", "measure configs on a device and keep the best for later runs", tune_command},
    {"tensors", "list a file's tensors: names, dtypes and shapes", tensors_command},
    {"cache", "list or clear the compiled programs kept on disk", cache_command},
    {.name = NULL},
};
enum { COMMANDS = sizeof commands / sizeof *commands - 1 };

static void print_usage(FILE *stream) {
    fprintf(stream, "Usage: clnorm COMMAND [ARGUMENT ...]\n\nCommands:\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n`clnorm help COMMAND` describes a command; `clnorm --version` prints the version.\n"
                    "CLNORM_DEVICE in the environment selects a device for every command.\n");
}

static void refuse_command(const char *word, struct fault *fault) {
    struct closest closest = closest_to(word);
    char text[CLOSEST_TEXT];
    for (int i = 0; i < COMMANDS; i++)
        closest_offer(&closest, commands[i].name);
    fault_set(fault, EXIT_REQUEST, "'%s' is not a command; %s", word,
              closest.name ? closest_text(&closest, text) : "see clnorm --help");
}

static int run(int argc, const char **argv, struct fault *fault) {
    const char *const first = argc > 1 ? argv[1] : "";
    const bool help = !strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help");
    if (help && argc == 2) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    const int most = !strcmp(first, "--version") ? 2 : help ? 3 : argc;
    if (argc > most) {
        fault_set(fault, EXIT_REQUEST, "'%s': unexpected argument; see --help", argv[most]);
        return fault->code;
    }
    const char *help_of[] = {NULL, argc > 2 ? argv[2] : "", "--help", NULL}; /* `clnorm help run` is `clnorm run --help` */
    if (help) {
        argv = help_of;
        argc = 3;
    }
    const char *const word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--version")) {
        printf("clnorm %s\n", clnorm_version());
        return EXIT_DONE;
    }
    if (!strcmp(word, "manual")) /* the build of the tool uses it; the list of commands does not have it */
        return manual_command(commands, argc - 1, argv + 1, fault);
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
        refuse_command(word, fault);
    return EXIT_REQUEST;
}

/* Opens each standard descriptor that the caller has closed, so that no file of the program gets its number, and the
 * output. It is for reading alone: writing to it fails, as it did while it was closed. */
static bool open_standard_descriptors(struct fault *fault) {
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != i) /* NOLINT: programs inherit it */
            return fault_set(fault, EXIT_FAILED, "/dev/null: cannot be opened in place of a closed descriptor: %s",
                             strerror(errno));
    return true;
}

int main(int argc, char **argv) {
    struct fault fault = {0};
    output_file_start();
    int code = open_standard_descriptors(&fault) ? run(argc, (const char **)argv, &fault) : fault.code;
    if ((fflush(stdout) || ferror(stdout)) && code == EXIT_DONE) { /* an earlier flush that failed shows in ferror alone */
        fault_set(&fault, EXIT_FAILED, "standard output cannot be written");
        code = EXIT_FAILED;
    }
    if (*fault.text)
        fprintf(stderr, "clnorm: %s\n", fault.text);
    return code;
}
