#include "bench_output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a file of any kind, and keeps its contents. -1: errno says why not. */
static int open_kept(const char *path, bool *made) {
    const int made_now = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *made = made_now >= 0;
    return *made || errno != EEXIST ? made_now : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}

bool bench_output_open(struct bench_output *output, const char *path, struct fault *fault) {
    *output = (struct bench_output){.path = path};
    if (!path)
        return true;
    if (!strcmp(path, "-")) {
        output->stream = stdout;
        output->begun = true;
        return true;
    }
    if (!*path)
        return fault_set(fault, EXIT_REQUEST, "--json '': expected the name of a file");
    const int descriptor = open_kept(path, &output->made);
    output->stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!output->stream)
        return fault_set(fault, EXIT_REQUEST, "%s: cannot be written: %s", path, strerror(errno));
    struct stat facts;
    const bool shared =
        fstat(descriptor, &facts) || !S_ISREG(facts.st_mode); /* a device or a pipe, of any number of runs */
    return shared || !flock(descriptor, LOCK_EX | LOCK_NB) ||
           fault_set(fault, EXIT_REQUEST, "%s: another clnorm writes it", path);
}

static bool fail(const struct bench_output *output, struct fault *fault) {
    return !strcmp(output->path, "-")
               ? fault_set(fault, EXIT_FAILED, "standard output cannot be written")
               : fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", output->path, strerror(errno));
}

/* Empties the file, the first time. Other kinds than regular files have no length. */
static bool begin(struct bench_output *output) {
    struct stat status;
    const int descriptor = fileno(output->stream);
    const bool earlier = output->begun;
    output->begun = true;
    return earlier || (!fstat(descriptor, &status) && (!S_ISREG(status.st_mode) || !ftruncate(descriptor, 0)));
}

bool bench_output_line(struct bench_output *output, json_t *line, size_t flags, struct fault *fault) {
    const bool done = line && begin(output) && !json_dumpf(line, output->stream, flags) &&
                      fputc('\n', output->stream) != EOF && !fflush(output->stream);
    json_decref(line);
    return done || fail(output, fault);
}

bool bench_output_close(struct bench_output *output, bool good, struct fault *fault) {
    if (!output->stream || output->stream == stdout)
        return true;
    bool done = (!good || begin(output)) && !ferror(output->stream);
    done = !fclose(output->stream) && done;
    if (output->made && !output->begun)
        (void)unlink(output->path);
    return done || fail(output, fault);
}
