/* A new file replaces the old one only when it is complete. Otherwise the old file stays, and no temporary file is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output_file.h"
#include "scratch.h"

static bool put(const char *path, const char *text, struct fault *fault) {
    struct output_file file;
    return output_file_check(path, fault) && output_file_open(&file, path, fault) &&
           output_file_close(&file, fputs(text, file.stream) >= 0, fault);
}

static void assert_put(const char *path, const char *text) {
    struct fault fault = {0};
    if (!put(path, text, &fault))
        fail_msg("%s", fault.text);
}

static void assert_holds(const char *path, const char *text) {
    size_t length;
    unsigned char *const bytes = scratch_read(path, &length);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(bytes, text, length);
    free(bytes);
}

static struct stat facts_of(const char *path) {
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return facts;
}

static void test_new_and_replaced_files(void **state) {
    const char *const path = scratch_path(*state, "file");
    const mode_t kept = umask(027);
    assert_put(path, "one");
    assert_int_equal(facts_of(path).st_mode & 07777, 0640);
    static const mode_t modes[] = {0600, 0666, 0400, 0755};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        if (geteuid() == 0)
            assert_int_equal(chown(path, 12345, 12345), 0);
        assert_put(path, "another one");
        assert_int_equal(facts_of(path).st_mode & 07777, modes[i]);
        if (geteuid() == 0)
            assert_int_equal(facts_of(path).st_uid, 12345);
    }
    umask(kept);
    assert_holds(path, "another one");
    assert_int_equal(scratch_count(*state), 1);
}

static void test_links_are_followed(void **state) {
    const char *const target = scratch_path(*state, "target");
    const char *const link = scratch_path(*state, "link");
    const char *const chain = scratch_path(*state, "chain");
    scratch_write(target, "before", 6);
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(symlink(link, chain), 0);
    assert_true(output_file_is(chain, target));
    assert_put(chain, "after");
    assert_holds(target, "after");
    assert_true(S_ISLNK(facts_of(link).st_mode) && S_ISLNK(facts_of(chain).st_mode));
    assert_int_equal(scratch_count(*state), 3);

    struct fault fault = {0};
    assert_int_equal(unlink(target), 0);
    assert_false(put(chain, "lost", &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    assert_non_null(strstr(fault.text, "a symbolic link to a file that does not exist"));
    assert_int_equal(scratch_count(*state), 2);
}

static void test_other_kinds_are_refused(void **state) {
    const char *const fifo = scratch_path(*state, "fifo");
    const char *const folder = scratch_path(*state, "folder");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    const char *const paths[] = {fifo, folder, "/dev/null"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const mode_t before = facts_of(paths[i]).st_mode;
        struct fault fault = {0};
        struct output_file file;
        assert_false(output_file_check(paths[i], &fault));
        assert_int_equal(fault.code, EXIT_REQUEST);
        assert_non_null(strstr(fault.text, "not a regular file"));
        assert_false(output_file_open(&file, paths[i], &fault));
        assert_int_equal(facts_of(paths[i]).st_mode, before);
    }
    struct fault fault = {0};
    assert_false(output_file_check(scratch_path(*state, "no/file"), &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    assert_non_null(strstr(fault.text, "No such file"));
    assert_int_equal(scratch_count(*state), 2);
}

/* The writer gives up, or the disk is full; a limit on the size of files stands for the latter. */
static void test_failed_writes_leave_the_old_file(void **state) {
    const char *const path = scratch_path(*state, "file");
    assert_put(path, "before");
    struct output_file file;
    struct fault fault = {0};
    assert_true(output_file_open(&file, path, &fault));
    assert_true(fputs("half", file.stream) >= 0);
    assert_false(output_file_close(&file, false, &fault));
    assert_int_equal(fault.code, EXIT_FAILED);

    struct rlimit usual;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    const struct rlimit small = {4096, usual.rlim_max};
    assert_ptr_not_equal(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_true(output_file_open(&file, path, &fault));
    for (int i = 0; i < 10000; i++)
        (void)fputs("more ", file.stream);
    const bool done = output_file_close(&file, true, &fault);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_ptr_not_equal(signal(SIGXFSZ, SIG_DFL), SIG_ERR);
    assert_false(done);
    assert_non_null(strstr(fault.text, "File too large"));
    assert_holds(path, "before");
    assert_int_equal(scratch_count(*state), 1);
}

enum { DRIVER_ENDED = 3 };

/* Stands for LLVM's handler, which PoCL installs. */
static void end_as_driver(int number) {
    (void)number;
    _exit(DRIVER_ENDED);
}

/* The exit status of a process that gets a signal while it writes, and had this handler before. */
static int end_by_signal(const char *path, int number, void (*handler)(int)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct output_file file;
        struct fault fault = {0};
        (void)signal(number, handler);
        if (!output_file_open(&file, path, &fault) || fputs("half", file.stream) < 0 || fflush(file.stream))
            _exit(1);
        (void)raise(number);
        _exit(output_file_close(&file, true, &fault) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_signals_leave_the_old_file(void **state) {
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    const char *const path = scratch_path(*state, "file");
    assert_put(path, "before");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int status = end_by_signal(path, numbers[i], SIG_DFL);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
        status = end_by_signal(path, numbers[i], end_as_driver);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == DRIVER_ENDED);
        assert_holds(path, "before");
        assert_int_equal(scratch_count(*state), 1);
    }
    assert_int_equal(end_by_signal(path, SIGHUP, SIG_IGN), 0);
    assert_holds(path, "half");
}

static void pass_on(int number) {
    (void)signal(number, SIG_IGN);
    (void)raise(number);
}

/* The driver's handler came after the program's start, where the caller ignored the signal. */
static void test_ignored_signals_leave_the_new_file(void **state) {
    const char *const path = scratch_path(*state, "file");
    void (*const handlers[])(int) = {pass_on, end_as_driver};
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        assert_put(path, "before");
        assert_ptr_not_equal(signal(SIGHUP, SIG_IGN), SIG_ERR);
        output_file_start();
        const int status = end_by_signal(path, SIGHUP, handlers[i]);
        assert_ptr_not_equal(signal(SIGHUP, SIG_DFL), SIG_ERR);
        output_file_start();
        assert_int_equal(status, 0);
        assert_holds(path, "half");
        assert_int_equal(scratch_count(*state), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(test_new_and_replaced_files),     scratch_test(test_links_are_followed),
        scratch_test(test_other_kinds_are_refused),    scratch_test(test_failed_writes_leave_the_old_file),
        scratch_test(test_signals_leave_the_old_file), scratch_test(test_ignored_signals_leave_the_new_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
