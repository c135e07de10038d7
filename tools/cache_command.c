#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "options.h"
#include "report.h"

static const char epilogue[] = "  path    print the folder: $CLNORM_CACHE_DIR, else $XDG_CACHE_HOME/clnorm, else\n"
                               "          ~/.cache/clnorm\n"
                               "  list    print what is in it, the latest used first (also without a word)\n"
                               "  clear   remove it all\n"
                               "CLNORM_CACHE=0 in the environment turns the cache off.\n";

/* The folder, newly allocated. Fails where there is none. */
static char *cache_path(struct fault *fault) {
    const size_t length = clnorm_cache_dir(NULL, 0);
    char *const path = calloc(1, length + 1);
    if (!path) {
        fault_set(fault, EXIT_FAILED, "out of memory");
        return NULL;
    }
    clnorm_cache_dir(path, length + 1);
    if (!*path) {
        fault_set(fault, EXIT_FAILED, "there is no cache: CLNORM_CACHE is 0, or the environment names no home");
        free(path);
        return NULL;
    }
    return path;
}

struct total {
    uint64_t files, bytes;
};

static void print_entry(const clnorm_cache_entry *entry, void *user) {
    struct total *const total = user;
    total->files++;
    total->bytes += entry->size;
    const time_t seconds = (time_t)entry->last_used;
    struct tm when;
    char date[32] = "";
    if (localtime_r(&seconds, &when))
        (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M", &when);
    char size[SIZE_TEXT];
    printf("%s  %8s  %-16s  %.34s\n", date, size_text(entry->size, size), *entry->source ? entry->source : "(unfinished)",
           entry->device);
}

static bool list(const char *path, struct fault *fault) {
    struct total total = {0, 0};
    const clnorm_status status = clnorm_cache_list(NULL, print_entry, &total);
    if (status)
        return fault_library(fault, status, path);
    char size[SIZE_TEXT];
    printf("%" PRIu64 " files, %s, in %s\n", total.files, size_text(total.bytes, size), path);
    return true;
}

static bool clear(const char *path, struct fault *fault) {
    size_t removed = 0;
    const clnorm_status status = clnorm_cache_clear(NULL, &removed);
    if (status)
        return fault_library(fault, status, path);
    printf("%zu files removed from %s\n", removed, path);
    return true;
}

static bool run_cache(struct command_line *line, struct fault *fault) {
    const char *const given = command_line_next(line);
    const char *const word = given ? given : "list";
    if (!command_line_end(line, fault))
        return false;
    const bool wants_list = !strcmp(word, "list");
    const bool wants_clear = !strcmp(word, "clear");
    if (!wants_list && !wants_clear && strcmp(word, "path") != 0)
        return fault_set(fault, EXIT_REQUEST, "'%s': expected path, list or clear", word);
    char *const path = cache_path(fault);
    if (!path)
        return false;
    bool done = true;
    if (wants_list)
        done = list(path, fault);
    else if (wants_clear)
        done = clear(path, fault);
    else
        printf("%s\n", path);
    free(path);
    return done;
}

int cache_command(int argc, const char **argv, struct fault *fault) {
    const struct poptOption table[] = {POPT_TABLEEND};
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[path | list | clear]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || run_cache(&line, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
