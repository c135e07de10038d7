#include "kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* -1: errno says why not. */
static int open_or_make(const char *path, int flags, bool *made) {
    const int made_now = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *made = made_now >= 0;
    return *made || errno != EEXIST ? made_now : open(path, flags | O_CREAT | O_CLOEXEC, 0666);
}

/* Where a file system has no locks, nobody is known to write. */
static bool is_taken(int descriptor) {
    struct stat facts;
    return !fstat(descriptor, &facts) && S_ISREG(facts.st_mode) && flock(descriptor, LOCK_EX | LOCK_NB) &&
           errno == EWOULDBLOCK;
}

FILE *kept_file_open(const char *path, int flags, const char *mode, bool *made, struct fault *fault) {
    const int descriptor = open_or_make(path, flags, made);
    const bool taken = descriptor >= 0 && is_taken(descriptor);
    FILE *const stream = descriptor < 0 || taken ? NULL : fdopen(descriptor, mode);
    if (stream)
        return stream;
    if (taken)
        fault_set(fault, EXIT_REQUEST, "%s: another clnorm writes it", path);
    else
        fault_set(fault, EXIT_REQUEST, "%s: cannot be written: %s", path, strerror(errno));
    if (descriptor >= 0)
        (void)close(descriptor);
    return NULL;
}
