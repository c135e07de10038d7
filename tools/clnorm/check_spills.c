#include "check_spills.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_job.h"
#include "build_report.h"
#include "report.h"
#include "session.h"

enum { MOST_JOBS = 64, LOG = 1 << 18, KERNEL = 64 };

/* A message from a process that builds. A point is an operation, a dtype and a width. */
struct finding {
    enum { KERNEL_BUILT, POINT_DONE, POINT_ABSENT, POINT_FAILED, JOB_FAILED, JOB_DONE } kind;
    size_t operation; /* of the request */
    clnorm_dtype dtype;
    uint64_t cols;
    char kernel[KERNEL];
    struct build_report build;
    struct fault fault;
};

_Static_assert(sizeof(struct finding) <= PIPE_BUF, "longer writes of several processes to a pipe may be interleaved");

/* The context's log of one plan; a longer one is cut. */
struct log {
    char text[LOG];
    size_t length;
};

/* ----------------------------------------------------------------------------------------------- a process that builds */

static void take_line(const char *line, void *user) {
    struct log *const log = user;
    const size_t room = sizeof log->text - log->length;
    const int length = snprintf(log->text + log->length, room, "%s\n", line);
    log->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void send_finding(int findings, const struct finding *finding) {
    if (write(findings, finding, sizeof *finding) != (ssize_t)sizeof *finding)
        _exit(EXIT_FAILED); /* the process that reads them has ended */
}

/* Creates the plan of a point. On failure finding->kind is POINT_ABSENT where the operation or the device has no such plan,
 * else POINT_FAILED. */
static clnorm_plan *plan_point(const struct session *session, const struct bench_request *request,
                               struct finding *finding) {
    const struct bench_operation *const operation = request->operations[finding->operation];
    const struct bench_shape shape = bench_shape_of_bytes(operation, request->sweep_bytes, finding->cols, finding->dtype);
    clnorm_plan *plan;
    const clnorm_status status =
        bench_plan(session, operation, shape, finding->dtype, request->config, &plan, &finding->fault);
    const bool absent = status == CLNORM_UNSUPPORTED || finding->fault.code == EXIT_REQUEST;
    finding->kind = !status ? POINT_DONE : absent ? POINT_ABSENT : POINT_FAILED;
    return plan;
}

/* Sends the build report of the kernel whose name is `name` and `end` together. */
static void send_kernel(const struct log *log, const char *name, const char *end, struct finding finding, int findings) {
    finding.kind = KERNEL_BUILT;
    (void)snprintf(finding.kernel, sizeof finding.kernel, "%s%s", name, end);
    finding.build = build_report_read(log->text, finding.kernel);
    send_finding(findings, &finding);
}

static void build_point(const struct session *session, struct log *log, const struct bench_request *request,
                        struct finding *finding, int findings) {
    log->length = 0;
    log->text[0] = '\0';
    clnorm_plan *const plan = plan_point(session, request, finding);
    for (cl_uint i = 0; plan && i < clnorm_plan_kernel_count(plan); i++) {
        clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
        if (clnorm_plan_kernel(plan, i, &info))
            break;
        send_kernel(log, info.name, "", *finding, findings);
        send_kernel(log, info.name, "_unaligned", *finding, findings);
    }
    clnorm_plan_destroy(plan);
    send_finding(findings, finding);
}

/* Builds every jobs-th point, beginning with number `job`. */
static void build_points(const struct bench_request *request, size_t job, size_t jobs, int findings) {
    static struct log log;
    struct session session;
    struct finding finding = {.kind = JOB_FAILED};
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = ""; /* a cached program has no build report; NVIDIA's driver has a cache of its own */
    (void)setenv("CUDA_CACHE_DISABLE", "1", 1);
    options.log = take_line;
    options.log_user = &log;
    options.build_report = 1;
    if (!session_open(&session, request->device, 0, &options, &finding.fault)) {
        send_finding(findings, &finding);
        return;
    }
    size_t point = 0;
    for (finding.operation = 0; finding.operation < request->operation_count; finding.operation++)
        for (size_t d = 0; d < request->dtype_count; d++)
            for (size_t w = 0; w < request->sweep.count; w++, point++) {
                finding.dtype = request->dtypes[d];
                finding.cols = request->sweep.width[w];
                finding.fault = (struct fault){0};
                if (point % jobs == job)
                    build_point(&session, &log, request, &finding, findings);
            }
    finding.kind = JOB_DONE;
    send_finding(findings, &finding);
    session_close(&session);
}

/* Returns the number of processes that it could start. */
static size_t start_jobs(const struct bench_request *request, size_t jobs, int findings[2], pid_t *processes) {
    size_t count = 0;
    (void)fflush(stdout); /* otherwise the child prints the buffer too */
    for (size_t i = 0; i < jobs; i++) {
        const pid_t process = fork();
        if (process == 0) {
            (void)close(findings[0]);
            build_points(request, i, jobs, findings[1]);
            _exit(EXIT_DONE);
        }
        if (process > 0)
            processes[count++] = process;
    }
    (void)close(findings[1]);
    return count;
}

/* ---------------------------------------------------------------------------------------------------------- the report */

struct spill_tally {
    size_t points, absent, failed, kernels, spills, done;
};

/* Prints a line about the finding's point. */
__attribute__((format(printf, 3, 4))) static void print_point(const struct bench_request *request,
                                                              const struct finding *finding, const char *format, ...) {
    va_list arguments;
    progress_end();
    printf("%s %s %" PRIu64 ": ", request->operations[finding->operation]->name, clnorm_dtype_name(finding->dtype),
           finding->cols);
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)putchar('\n');
}

/* A kernel that is not in the log does not count: not every one has an unaligned form. */
static void take_kernel(struct spill_tally *tally, const struct bench_request *request, const struct finding *finding) {
    const struct build_report *const build = &finding->build;
    if (build->registers != NOT_REPORTED || build->spill_stores != NOT_REPORTED)
        tally->kernels++;
    if (build->spill_stores <= 0 && build->spill_loads <= 0)
        return;
    tally->spills++;
    print_point(request, finding, "%s spills %ld bytes, and loads %ld", finding->kernel, build->spill_stores,
                build->spill_loads);
}

static void take_point(struct spill_tally *tally, const struct bench_request *request, const struct finding *finding,
                       size_t points) {
    tally->absent += finding->kind == POINT_ABSENT;
    tally->failed += finding->kind == POINT_FAILED;
    if (finding->kind != POINT_DONE)
        print_point(request, finding, "%s: %s", finding->kind == POINT_ABSENT ? "no plan" : "FAILED", finding->fault.text);
    progress("%zu of %zu", ++tally->points, points);
}

static bool follow(struct spill_tally *tally, const struct bench_request *request, int findings, struct fault *fault) {
    const size_t points = request->operation_count * request->dtype_count * request->sweep.count;
    struct finding finding;
    ssize_t got;
    while ((got = read(findings, &finding, sizeof finding)) == (ssize_t)sizeof finding || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        if (finding.kind == JOB_FAILED)
            *fault = finding.fault;
        else if (finding.kind == KERNEL_BUILT)
            take_kernel(tally, request, &finding);
        else if (finding.kind == JOB_DONE)
            tally->done++;
        else
            take_point(tally, request, &finding, points);
    }
    progress_end();
    return !*fault->text;
}

static bool report(const struct spill_tally *tally, size_t jobs, struct fault *fault) {
    const size_t built = tally->points - tally->absent - tally->failed;
    if (tally->done < jobs)
        return fault_set(fault, EXIT_FAILED, "check --spills: the driver ended %zu of %zu processes", jobs - tally->done,
                         jobs);
    printf("check: %zu point%s built, %zu without a plan, %zu failed\n", built, plural(built), tally->absent,
           tally->failed);
    if (tally->kernels)
        printf("check: %zu of %zu kernel%s spill\n", tally->spills, tally->kernels, plural(tally->kernels));
    else if (built)
        printf("check: this driver does not report spills\n");
    if (tally->failed)
        return fault_set(fault, EXIT_FAILED, "check: %zu of %zu point%s failed", tally->failed, tally->points,
                         plural(tally->points));
    return !tally->spills || fault_set(fault, EXIT_FAILED, "check: %zu of %zu kernel%s spill registers", tally->spills,
                                       tally->kernels, plural(tally->kernels));
}

static void complete(struct bench_request *request) {
    if (!request->sweep.count)
        request->sweep = widths_usual();
    if (!request->sweep_bytes)
        request->sweep_bytes = 64 << 20;
    bench_complete(request, false);
}

bool check_spills(const struct bench_request *request, int jobs, struct fault *fault) {
    struct bench_request whole = *request;
    struct spill_tally tally = {0};
    pid_t processes[MOST_JOBS];
    int findings[2];
    if (jobs > MOST_JOBS)
        return fault_set(fault, EXIT_REQUEST, "--jobs %d: expected 1 to %d", jobs, MOST_JOBS);
    complete(&whole);
    if (pipe(findings))
        return fault_set(fault, EXIT_FAILED, "pipe: %s", strerror(errno));
    const size_t count = start_jobs(&whole, (size_t)jobs, findings, processes);
    const bool followed = follow(&tally, &whole, findings[0], fault);
    (void)close(findings[0]);
    for (size_t i = 0; i < count; i++)
        (void)waitpid(processes[i], NULL, 0);
    return followed && report(&tally, (size_t)jobs, fault);
}
