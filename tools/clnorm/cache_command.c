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
                               "  list    print the number and size of the files of each kernel source and\n"
                               "          device, the last used first (the default)\n"
                               "  clear   remove all files\n"
                               "CLNORM_CACHE=0 in the environment turns the cache off.\n";

/* The path of the folder; the caller frees it. NULL: there is none, or no memory. */
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

/* Files of one source on one device. */
struct group {
    char *source, *device;
    uint64_t files, bytes;
    int64_t last_used;
};

struct listing {
    struct group *groups;
    size_t count, capacity;
    uint64_t files, bytes;
    bool out_of_memory;
};

enum { DATE_TEXT = 32 };

static const char *date_text(int64_t used, char text[DATE_TEXT]) {
    const time_t seconds = (time_t)used;
    struct tm when;
    if (!localtime_r(&seconds, &when) || !strftime(text, DATE_TEXT, "%Y-%m-%d %H:%M", &when))
        *text = '\0';
    return text;
}

static const char *source_of(const clnorm_cache_entry *entry) {
    return *entry->source ? entry->source : "(unfinished)";
}

static void print_each(const clnorm_cache_entry *entry, void *user) {
    struct listing *const listing = user;
    char size[SIZE_TEXT];
    char date[DATE_TEXT];
    char label[DATE_TEXT + SIZE_TEXT + 8];
    char text[512];
    listing->files++;
    listing->bytes += entry->size;
    (void)snprintf(label, sizeof label, "%s  %8s  ", date_text(entry->last_used, date), size_text(entry->size, size));
    (void)snprintf(text, sizeof text, "%s, %s", source_of(entry), entry->device);
    print_wrapped(label, text);
    print_wrapped("    ", entry->options);
}

static struct group *group_of(struct listing *listing, const clnorm_cache_entry *entry) {
    for (size_t i = 0; i < listing->count; i++)
        if (!strcmp(listing->groups[i].source, source_of(entry)) && !strcmp(listing->groups[i].device, entry->device))
            return &listing->groups[i];
    if (listing->count == listing->capacity) {
        const size_t capacity = listing->capacity ? 2 * listing->capacity : 16;
        struct group *const groups = realloc(listing->groups, capacity * sizeof *groups);
        if (!groups)
            return NULL;
        listing->groups = groups;
        listing->capacity = capacity;
    }
    struct group *const group = &listing->groups[listing->count++];
    *group = (struct group){.source = strdup(source_of(entry)),
                            .device = strdup(entry->device),
                            .last_used = entry->last_used}; /* entries come in order, the last used first */
    return group->source && group->device ? group : NULL;
}

static void add_to_group(const clnorm_cache_entry *entry, void *user) {
    struct listing *const listing = user;
    struct group *const group = listing->out_of_memory ? NULL : group_of(listing, entry);
    listing->out_of_memory = !group;
    if (!group)
        return;
    group->files++;
    group->bytes += entry->size;
    listing->files++;
    listing->bytes += entry->size;
}

/* A device's name stands over its groups, and again where those of another device come between them. */
static void print_groups(const struct listing *listing) {
    char size[SIZE_TEXT];
    char date[DATE_TEXT];
    const char *device = NULL;
    for (size_t i = 0; i < listing->count; i++) {
        const struct group *const group = &listing->groups[i];
        if (!device || strcmp(device, group->device) != 0)
            print_wrapped("", *group->device ? group->device : "(unknown device)");
        device = group->device;
        printf("  %s  %4" PRIu64 " x %-28s %8s\n", date_text(group->last_used, date), group->files, group->source,
               size_text(group->bytes, size));
    }
}

static bool list(const char *path, bool each, struct fault *fault) {
    struct listing listing = {0};
    char size[SIZE_TEXT];
    const clnorm_status status = clnorm_cache_list(NULL, each ? print_each : add_to_group, &listing);
    const bool done = !status && !listing.out_of_memory;
    if (status)
        fault_library(fault, status, path);
    else if (!done)
        fault_set(fault, EXIT_FAILED, "out of memory for a list of the cache");
    print_groups(&listing);
    if (done)
        printf("%" PRIu64 " file%s, %s, in %s\n", listing.files, plural(listing.files), size_text(listing.bytes, size),
               path);
    for (size_t i = 0; i < listing.count; i++) {
        free(listing.groups[i].source);
        free(listing.groups[i].device);
    }
    free(listing.groups);
    return done;
}

static bool clear(const char *path, struct fault *fault) {
    size_t removed = 0;
    const clnorm_status status = clnorm_cache_clear(NULL, &removed);
    if (status)
        return fault_library(fault, status, path);
    printf("%zu file%s removed from %s\n", removed, plural(removed), path);
    return true;
}

static bool run_cache(struct command_line *line, bool verbose, struct fault *fault) {
    const char *const given = command_line_next(line);
    const char *const word = given ? given : "list";
    enum { PATH = 1, LIST, CLEAR };
    if (!command_line_end(line, fault))
        return false;
    const unsigned wanted = parse_word("cache", word, "path|list|clear", fault);
    if (!wanted)
        return false;
    if (verbose && wanted != LIST)
        return fault_set(fault, EXIT_REQUEST, "--verbose: expected no %s", word);
    char *const path = cache_path(fault);
    if (!path)
        return false;
    bool done = true;
    if (wanted == LIST)
        done = list(path, verbose, fault);
    else if (wanted == CLEAR)
        done = clear(path, fault);
    else
        printf("%s\n", path);
    free(path);
    return done;
}

int cache_command(int argc, const char **argv, struct fault *fault) {
    int verbose = 0;
    const struct poptOption table[] = {
        {"verbose", 'v', POPT_ARG_NONE, &verbose, 0, "list: print every file, with its build options", NULL},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[path | list | clear] [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || run_cache(&line, verbose, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
