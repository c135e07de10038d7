#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ----------------------------------------------------------------------------------------------------------- signals */

/* The temporary file that a signal removes before it ends the program; NULL: none. */
static _Atomic(const char *) unfinished;

static const int caught[] = {SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
enum { CAUGHT = sizeof caught / sizeof *caught };

static struct sigaction earlier[CAUGHT];

/* Whether the program's caller ignores it, as nohup does with SIGHUP. */
static bool ignored[CAUGHT];

void output_file_start(void) {
    for (size_t i = 0; i < CAUGHT; i++) {
        struct sigaction now;
        ignored[i] = !sigaction(caught[i], NULL, &now) && now.sa_handler == SIG_IGN;
    }
}

/* The signal that this raises arrives when the function returns: at the handler that was there earlier, such as one of a
 * driver's LLVM, or with the default effect. An earlier handler may raise the signal again, so it is put back only once. */
static void remove_unfinished(int number) {
    const char *const name = atomic_load(&unfinished);
    if (name)
        (void)unlink(name);
    for (size_t i = 0; i < CAUGHT; i++)
        if (caught[i] == number) {
            (void)sigaction(number, &earlier[i], NULL);
            earlier[i] = (struct sigaction){0}; /* SIG_DFL */
        }
    (void)raise(number);
}

/* A signal that the program's caller ignores stays ignored, though a driver may have given it a handler since. */
static void catch_signals(void) {
    struct sigaction action = {.sa_flags = (int)SA_RESETHAND};
    action.sa_handler = remove_unfinished;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CAUGHT; i++) {
        struct sigaction now;
        if (ignored[i])
            (void)signal(caught[i], SIG_IGN);
        if (sigaction(caught[i], NULL, &now) || now.sa_handler == SIG_IGN || now.sa_handler == remove_unfinished)
            continue;
        earlier[i] = now;
        (void)sigaction(caught[i], &action, NULL);
    }
}

/* ------------------------------------------------------------------------------------------------------------- paths */

/* The target of a path; the caller frees it. status: of the regular file there; st_mode is 0 where there is none. */
static char *follow(const char *path, struct stat *status, struct fault *fault) {
    *status = (struct stat){0};
    if (!*path) {
        fault_set(fault, EXIT_REQUEST, "'': expected the name of a file");
        return NULL;
    }
    char *const target = realpath(path, NULL);
    if (!target && errno == ENOENT) {
        if (!lstat(path, status)) {
            fault_set(fault, EXIT_REQUEST, "%s: a symbolic link to a file that does not exist", path);
            return NULL;
        }
        char *const itself = strdup(path);
        if (!itself)
            fault_set(fault, EXIT_FAILED, "%s: out of memory", path);
        return itself;
    }
    if (!target || stat(target, status))
        fault_set(fault, EXIT_REQUEST, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(status->st_mode))
        fault_set(fault, EXIT_REQUEST, "%s: not a regular file; it is not replaced", path);
    else
        return target;
    free(target);
    return NULL;
}

/* A name beside the target for a temporary file; the caller frees it. NULL: out of memory. A process that was killed may
 * have left a file, and another may write one, under the same process number: the time tells them apart. */
static char *name_temporary(const char *target) {
    const size_t capacity = strlen(target) + 64;
    char *const name = malloc(capacity);
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (name)
        (void)snprintf(name, capacity, "%s.%lld.%09ld-%ld.tmp", target, (long long)now.tv_sec, now.tv_nsec, (long)getpid());
    return name;
}

/* Creates a file to find out: access() allows the superuser every folder, but /proc takes no files. */
static bool takes_files(const char *target) {
    char *const name = name_temporary(target);
    const int descriptor = name ? open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR) : -1;
    const int code = errno;
    if (descriptor >= 0) {
        (void)close(descriptor);
        (void)unlink(name);
    }
    free(name);
    errno = code;
    return descriptor >= 0;
}

bool output_file_check(const char *path, struct fault *fault) {
    struct stat status;
    char *const target = follow(path, &status, fault);
    const bool done = target && (takes_files(target) ||
                                 fault_set(fault, EXIT_REQUEST, "%s: cannot be written: %s", path, strerror(errno)));
    free(target);
    return done;
}

bool output_file_is(const char *path, const char *other) {
    struct stat a;
    struct stat b;
    return !stat(path, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* ----------------------------------------------------------------------------------------------------------- writing */

/* A new file gets the permissions of the user's mask. A replaced file's are kept, and its owner where that is allowed. */
static bool keep_permissions(int descriptor, const struct stat *replaced) {
    if (!replaced->st_mode)
        return true;
    if (fchown(descriptor, replaced->st_uid, replaced->st_gid))
        errno = 0; /* only the superuser gives files away */
    return !fchmod(descriptor, replaced->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
}

static FILE *create(const char *name, const struct stat *replaced) {
    const mode_t mode = replaced->st_mode ? S_IRUSR | S_IWUSR : 0666;
    const int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0)
        return NULL;
    FILE *const stream = keep_permissions(descriptor, replaced) ? fdopen(descriptor, "wb") : NULL;
    if (!stream) {
        (void)unlink(name);
        (void)close(descriptor);
    }
    return stream;
}

static void forget(struct output_file *file) {
    atomic_store(&unfinished, NULL);
    free(file->temporary);
    free(file->path);
    *file = (struct output_file){0};
}

bool output_file_open(struct output_file *file, const char *path, struct fault *fault) {
    struct stat replaced;
    *file = (struct output_file){.path = follow(path, &replaced, fault)};
    if (!file->path)
        return false;
    file->temporary = name_temporary(file->path);
    if (file->temporary) {
        catch_signals();
        atomic_store(&unfinished, file->temporary);
        file->stream = create(file->temporary, &replaced);
    }
    if (!file->stream) {
        fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", path, strerror(errno));
        forget(file);
        return false;
    }
    errno = 0;
    return true;
}

bool output_file_close(struct output_file *file, bool good, struct fault *fault) {
    bool done = good && !fflush(file->stream) && !ferror(file->stream) && !fsync(fileno(file->stream));
    const int reason = errno;
    done = !fclose(file->stream) && done;
    done = done && !rename(file->temporary, file->path);
    if (!done) {
        const int code = reason ? reason : errno;
        fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", file->path, strerror(code ? code : ENOMEM));
        (void)unlink(file->temporary);
    }
    forget(file);
    return done;
}
