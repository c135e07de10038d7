#include "bench_output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kept_file.h"

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
    output->stream = kept_file_open(path, O_WRONLY, "w", &output->made, fault);
    return output->stream;
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
