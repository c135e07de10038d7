#include "check_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_cases.h"

static void send_event(int events, const struct check_event *event) {
    if (write(events, event, sizeof *event) != (ssize_t)sizeof *event)
        _exit(EXIT_FAILED); /* the process that reads them has ended */
}

static void run_cases(int events, const char *selector, int first, int every) {
    struct session session;
    struct check_event event = {.kind = CHECK_OPENED};
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = ""; /* every kernel is built here */
    if (!session_open(&session, selector, CL_QUEUE_PROFILING_ENABLE, &options, &event.fault)) {
        event.kind = CHECK_FAILED;
        send_event(events, &event);
        return;
    }
    event.device = session.device;
    send_event(events, &event);
    const int count = check_case_count();
    for (int i = first; i < count; i += every) {
        const struct check_case check_case = check_case_of(i);
        event = (struct check_event){.kind = CHECK_ENDS, .index = i};
        event.outcome = check_case_try(&session, &check_case, (uint64_t)i, &event.fault);
        send_event(events, &event);
    }
    session_close(&session);
}

bool check_worker_start(struct check_worker *worker, const char *selector, int first, int every, struct fault *fault) {
    int ends[2];
    if (pipe(ends))
        return fault_set(fault, EXIT_FAILED, "pipe: %s", strerror(errno));
    (void)fflush(stdout); /* otherwise the child prints the buffer too */
    worker->process = fork();
    if (worker->process == 0) {
        (void)close(ends[0]);
        run_cases(ends[1], selector, first, every);
        exit(EXIT_DONE);
    }
    const int reason = errno;
    (void)close(ends[1]);
    worker->events = ends[0];
    if (worker->process < 0) {
        (void)close(ends[0]);
        return fault_set(fault, EXIT_FAILED, "fork: %s", strerror(reason));
    }
    return true;
}

bool check_worker_next(const struct check_worker *worker, struct check_event *event) {
    char *const bytes = (char *)event;
    for (size_t length = 0; length < sizeof *event;) {
        const ssize_t got = read(worker->events, bytes + length, sizeof *event - length);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        length += got > 0 ? (size_t)got : 0;
    }
    return true;
}

void check_worker_end(struct check_worker *worker, char ending[ENDING_TEXT]) {
    int status = 0;
    (void)close(worker->events);
    while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR)
        continue;
    *ending = '\0';
    if (WIFSIGNALED(status))
        (void)snprintf(ending, ENDING_TEXT, "signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        (void)snprintf(ending, ENDING_TEXT, "exit code %d", WEXITSTATUS(status));
}
