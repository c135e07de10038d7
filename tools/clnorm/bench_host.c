/* The library's time on the host. Plans are created in child processes, because drivers keep built programs in memory. All
 * caches on disk, the drivers' included, are in a temporary folder. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_host.h"
#include "bench_output.h"
#include "program/program_build.h"
#include "report.h"
#include "samples.h"
#include "session.h"
#include "temporary.h"

static const struct bench_shape usual_shape = {.rows = 64, .cols = 1024};
static const double most_time = 5e6; /* us, of the enqueues */
enum { ENQUEUES = 2000, WARM_UPS = 20, MORE_PLANS = 101 };

/* The operation, shape and dtype that are measured. */
struct subject {
    const struct bench_operation *operation;
    struct bench_shape shape;
    clnorm_dtype dtype;
};

/* Microseconds of a plan's creation and of its first launch; of later plans in the same context, the median. */
struct plan_times {
    double create, warm_up, again;
};

/* ---------------------------------------------------------------------------------------------------------- the plans */

/* Times plans whose programs the context has built already. */
static clnorm_status time_more_plans(const struct session *session, const struct job *job, struct samples *samples,
                                     struct fault *fault) {
    clnorm_status status = CLNORM_SUCCESS;
    bool kept = true;
    for (int i = 0; i < MORE_PLANS && kept && !status; i++) {
        clnorm_plan *plan = NULL;
        const double start = clock_us();
        status = job->operation->plan(session->context, job, &plan);
        kept = samples_add(samples, clock_us() - start, fault);
        clnorm_plan_destroy(plan);
    }
    return kept ? status : CLNORM_OUT_OF_HOST_MEMORY;
}

static bool time_plans(const struct session *session, const struct job *job, struct plan_times *times,
                       struct fault *fault) {
    clnorm_plan *first = NULL;
    struct samples more = {0};
    const double start = clock_us();
    clnorm_status status = job->operation->plan(session->context, job, &first);
    const double created = clock_us();
    if (!status)
        status = clnorm_plan_warm_up(first, session->queue);
    const double warm = clock_us();
    if (!status)
        status = time_more_plans(session, job, &more, fault);
    if (!status)
        *times = (struct plan_times){created - start, warm - created, samples_median(&more)};
    clnorm_plan_destroy(first);
    samples_free(&more);
    return !status || fault_library(fault, status, job->operation->name);
}

static bool time_plans_on_device(const struct bench_request *request, const struct subject *subject,
                                 struct plan_times *times, struct fault *fault) {
    struct job job = {0};
    struct session session = {0};
    const bool done = bench_job(&job, subject->operation, subject->shape, subject->dtype, request->config, fault) &&
                      session_open(&session, request->device, 0, NULL, fault) && time_plans(&session, &job, times, fault);
    session_close(&session);
    job_free(&job);
    return done;
}

/* The result that a child process writes to the pipe. */
struct message {
    bool done;
    struct plan_times times;
    struct fault fault;
};

/* Runs time_plans_on_device in a child process. The parent must not have called OpenCL yet. */
static bool time_plans_in_child(const struct bench_request *request, const struct subject *subject,
                                struct plan_times *times, struct fault *fault) {
    int ends[2];
    if (pipe(ends))
        return fault_set(fault, EXIT_FAILED, "pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        struct message message = {0};
        message.done = time_plans_on_device(request, subject, &message.times, &message.fault);
        _exit(write(ends[1], &message, sizeof message) == sizeof message ? EXIT_DONE : EXIT_FAILED);
    }
    close(ends[1]);
    struct message message = {0};
    const bool received = child > 0 && read(ends[0], &message, sizeof message) == sizeof message;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    if (!received)
        return fault_set(fault, EXIT_FAILED, "a process that creates a plan ended early");
    *times = message.times;
    if (!message.done)
        *fault = message.fault;
    return message.done;
}

/* -------------------------------------------------------------------------------------------------------- the enqueues */

/* The OpenCL calls of an enqueue without the library. For each kernel of the plan they set as many arguments, but of a
 * kernel of their own, and launch the plan's kernel with the arguments of the plan's last enqueue. */
struct bare {
    cl_program program;
    cl_kernel arguments;   /* has `pairs` buffers, each with an offset; two numbers, as of a seed, count as a pair */
    cl_mem mem[ROLES + 2]; /* the launch's buffers, set in turn */
    cl_uint mems, pairs;
    const struct launch *launch;
};

static bool kernel_of(const struct launch *launch, cl_uint index, clnorm_kernel_info *kernel, struct fault *fault) {
    *kernel = (clnorm_kernel_info)CLNORM_KERNEL_INFO_INIT;
    const clnorm_status status = clnorm_plan_kernel(launch->plan, index, kernel);
    return !status || fault_library(fault, status, "kernel");
}

/* Sets `pairs` to the largest number that a kernel of the plan has. */
static bool count_pairs(struct bare *bare, struct fault *fault) {
    for (cl_uint i = 0; i < bare->launch->kernels; i++) {
        clnorm_kernel_info kernel;
        if (!kernel_of(bare->launch, i, &kernel, fault))
            return false;
        bare->pairs = kernel.arguments / 2 > bare->pairs ? kernel.arguments / 2 : bare->pairs;
    }
    return true;
}

static void list_buffers(struct bare *bare) {
    for (int i = 0; i < ROLES; i++)
        if (bare->launch->mem[i])
            bare->mem[bare->mems++] = bare->launch->mem[i];
    if (bare->launch->workspace)
        bare->mem[bare->mems++] = bare->launch->workspace;
    if (bare->launch->fault)
        bare->mem[bare->mems++] = bare->launch->fault;
}

/* The caller frees it; NULL: out of memory. */
static char *bare_source(cl_uint pairs) {
    enum { PAIR_TEXT = 64, FRAME_TEXT = 64 };
    const size_t capacity = FRAME_TEXT + (size_t)pairs * PAIR_TEXT;
    char *const source = malloc(capacity);
    if (!source)
        return NULL;
    size_t length = (size_t)snprintf(source, capacity, "kernel void bare(");
    for (cl_uint i = 0; i < pairs; i++)
        length +=
            (size_t)snprintf(source + length, capacity - length, "%sglobal uint *m%u, ulong o%u", i ? ", " : "", i, i);
    (void)snprintf(source + length, capacity - length, ") { if (o0 == ~0UL) *m0 = 0; }");
    return source;
}

static bool build_bare(struct bare *bare, const struct session *session, struct fault *fault) {
    char *const source = bare_source(bare->pairs);
    if (!source)
        return fault_set(fault, EXIT_FAILED, "out of memory for a kernel of %u arguments", 2 * bare->pairs);
    const struct cln_source program = {.name = "arguments.cl", .text = source, .length = strlen(source)};
    const clnorm_status status = cln_program_build(session->context, &program, "", &bare->program);
    free(source);
    if (status)
        return fault_library(fault, status, "kernel");
    cl_int code;
    bare->arguments = clCreateKernel(bare->program, "bare", &code);
    return !code || fault_opencl(fault, code, "clCreateKernel", "a kernel that has arguments");
}

static bool make_bare(struct bare *bare, const struct session *session, const struct launch *launch, struct fault *fault) {
    bare->launch = launch;
    list_buffers(bare);
    return count_pairs(bare, fault) && build_bare(bare, session, fault);
}

static void free_bare(struct bare *bare) {
    if (bare->arguments)
        clReleaseKernel(bare->arguments);
    if (bare->program)
        clReleaseProgram(bare->program);
}

static cl_int launch_bare(const struct bare *bare, const struct session *session, const clnorm_kernel_info *kernel) {
    const cl_ulong offset = 0;
    const size_t global = kernel->groups * kernel->items;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < kernel->arguments / 2 && !code; i++) {
        code = clSetKernelArg(bare->arguments, 2 * i, sizeof(cl_mem), &bare->mem[i % bare->mems]);
        if (!code)
            code = clSetKernelArg(bare->arguments, 2 * i + 1, sizeof offset, &offset);
    }
    if (!code)
        code = clEnqueueNDRangeKernel(session->queue, kernel->kernel, 1, NULL, &global, &kernel->items, 0, NULL, NULL);
    return code;
}

static bool enqueue_bare(const struct bare *bare, const struct session *session, struct fault *fault) {
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < bare->launch->kernels && !code; i++) {
        clnorm_kernel_info kernel;
        if (!kernel_of(bare->launch, i, &kernel, fault))
            return false;
        code = launch_bare(bare, session, &kernel);
    }
    return !code || fault_opencl(fault, code, "clEnqueueNDRangeKernel", "the OpenCL calls alone");
}

static bool enqueue_plan(const struct launch *launch, const struct session *session, struct fault *fault) {
    const clnorm_status status = clnorm_plan_enqueue(launch->plan, session->queue, &launch->args, 0, NULL, NULL);
    return !status || fault_library(fault, status, "enqueue");
}

/* Medians over enqueues into an empty queue, by the plan and by the bare calls in turn. Where the warm-ups alone take
 * most_time, a single enqueue of each counts. */
struct enqueue_times {
    double plan, bare;
    size_t count;
};

static bool time_enqueues(const struct session *session, const struct launch *launch, const struct bare *bare,
                          struct enqueue_times *times, struct fault *fault) {
    struct samples plan_samples = {0};
    struct samples bare_samples = {0};
    const double start = clock_us();
    bool done = true;
    for (int i = -WARM_UPS; done && i < ENQUEUES; i++) {
        const bool late = clock_us() - start > most_time;
        if (late && plan_samples.count)
            break;
        const double before_plan = clock_us();
        done = enqueue_plan(launch, session, fault);
        const double after_plan = clock_us();
        clFinish(session->queue);
        const double before_bare = clock_us();
        done = done && enqueue_bare(bare, session, fault);
        const double after_bare = clock_us();
        clFinish(session->queue);
        if (i >= 0 || late)
            done = done && samples_add(&plan_samples, after_plan - before_plan, fault) &&
                   samples_add(&bare_samples, after_bare - before_bare, fault);
    }
    if (done)
        *times = (struct enqueue_times){samples_median(&plan_samples), samples_median(&bare_samples), plan_samples.count};
    samples_free(&plan_samples);
    samples_free(&bare_samples);
    return done;
}

/* --------------------------------------------------------------------------------------------------------- the memory */

/* Resident bytes of the process before and after the enqueues. */
struct memory_use {
    int enqueues;
    uint64_t before, after;
};

/* Resident bytes of the process; 0: unknown. */
static uint64_t resident_bytes(void) {
    unsigned long long pages = 0;
    FILE *const stream = fopen("/proc/self/statm", "r");
    if (!stream)
        return 0;
    if (fscanf(stream, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(stream);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool enqueue_often(const struct session *session, const struct launch *launch, int enqueues, struct fault *fault) {
    enum { BATCH = 1000 }; /* enqueues between two waits for the queue */
    for (int i = 1; i <= enqueues; i++) {
        if (!enqueue_plan(launch, session, fault))
            return false;
        if (i % BATCH && i < enqueues)
            continue;
        progress("enqueue %d of %d", i, enqueues);
        const cl_int code = clFinish(session->queue);
        if (code)
            return fault_opencl(fault, code, "clFinish", "enqueues");
    }
    return true;
}

/* A tenth of the enqueues goes first: the driver makes its lasting allocations then. */
static bool watch_memory(const struct session *session, const struct launch *launch, int enqueues, struct memory_use *use,
                         struct fault *fault) {
    use->enqueues = enqueues;
    if (!enqueue_often(session, launch, enqueues / 10, fault))
        return false;
    use->before = resident_bytes();
    const bool done = enqueue_often(session, launch, enqueues, fault);
    use->after = resident_bytes();
    return done;
}

static bool time_enqueues_on_device(const struct bench_request *request, const struct subject *subject,
                                    struct enqueue_times *times, struct memory_use *memory, clnorm_device_info *device,
                                    struct fault *fault) {
    struct job job = {0};
    struct session session = {0};
    struct launch launch = {0};
    struct bare bare = {0};
    const bool done = bench_job(&job, subject->operation, subject->shape, subject->dtype, request->config, fault) &&
                      session_open(&session, request->device, 0, NULL, fault) &&
                      launch_prepare(&launch, &session, &job, fault) && make_bare(&bare, &session, &launch, fault) &&
                      time_enqueues(&session, &launch, &bare, times, fault) &&
                      watch_memory(&session, &launch, request->enqueues, memory, fault);
    *device = session.device;
    free_bare(&bare);
    launch_free(&launch);
    session_close(&session);
    job_free(&job);
    return done;
}

/* ------------------------------------------------------------------------------------------------------------- reports */

struct host_times {
    struct plan_times cold, disk;
    struct enqueue_times enqueue;
    struct memory_use memory;
};

static void print_text(const struct subject *subject, const struct host_times *times, const clnorm_device_info *device) {
    char shape[BENCH_SHAPE_TEXT];
    device_print_line("device   ", device);
    printf("subject  %s %s %s\n", subject->operation->name, bench_shape_text(&subject->shape, shape),
           clnorm_dtype_name(subject->dtype));
    printf("enqueue  %.2f us; the OpenCL calls alone %.2f us: %.2f times (medians of %zu)\n", times->enqueue.plan,
           times->enqueue.bare, times->enqueue.plan / times->enqueue.bare, times->enqueue.count);
    printf("plan     %.2f ms cold, %.2f ms from disk (%.1f%%), %.3f ms from memory\n", times->cold.create * 1e-3,
           times->disk.create * 1e-3, 100 * times->disk.create / times->cold.create, times->disk.again * 1e-3);
    printf("warm-up  %.2f ms cold, %.2f ms from disk\n", times->cold.warm_up * 1e-3, times->disk.warm_up * 1e-3);
    if (times->memory.enqueues)
        printf("memory   %.1f KiB in use, %+.1f KiB after %d more enqueues\n", (double)times->memory.before / 1024,
               ((double)times->memory.after - (double)times->memory.before) / 1024, times->memory.enqueues);
}

static bool print_json(struct bench_output *json, const struct subject *subject, const struct host_times *times,
                       const clnorm_device_info *device, struct fault *fault) {
    json_t *const line =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "op", subject->operation->name,
                  "provider", "clnorm", "measure", "host", "rows", (json_int_t)subject->shape.rows, "cols",
                  (json_int_t)subject->shape.cols, "dtype", clnorm_dtype_name(subject->dtype), "device", device->name,
                  "enqueue_us", times->enqueue.plan, "bare_us", times->enqueue.bare, "plan_cold_us", times->cold.create,
                  "plan_disk_us", times->disk.create, "plan_memory_us", times->disk.again, "warm_up_cold_us",
                  times->cold.warm_up, "warm_up_disk_us", times->disk.warm_up);
    if (times->memory.enqueues)
        json_object_update_new(line, json_pack("{s:i, s:I, s:I}", "enqueues", times->memory.enqueues, "memory_before",
                                               (json_int_t)times->memory.before, "memory_after",
                                               (json_int_t)times->memory.after));
    return bench_output_line(json, line, JSON_REAL_PRECISION(6), fault);
}

static bool measure(const struct bench_request *request, const struct subject *subject, struct bench_output *json,
                    struct fault *fault) {
    char dir[TEMPORARY_PATH];
    if (!temporary_make(dir, fault))
        return false;
    struct host_times times = {0};
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    progress("making plans");
    const bool done = temporary_caches(dir, fault) && time_plans_in_child(request, subject, &times.cold, fault) &&
                      time_plans_in_child(request, subject, &times.disk, fault) &&
                      time_enqueues_on_device(request, subject, &times.enqueue, &times.memory, &device, fault);
    progress_end();
    temporary_remove(dir);
    if (!done)
        return false;
    if (json->stream != stdout)
        print_text(subject, &times, &device);
    return !json->stream || print_json(json, subject, &times, &device, fault);
}

bool bench_host(const struct bench_request *request, struct fault *fault) {
    const struct subject subject = {request->operation_count ? request->operations[0] : bench_operations(),
                                    request->shape_count ? request->shapes[0] : usual_shape,
                                    request->dtype_count ? request->dtypes[0] : CLNORM_F32};
    if (request->operation_count > 1 || request->shape_count > 1 || request->dtype_count > 1)
        return fault_set(fault, EXIT_REQUEST, "--host: expected at most one operation, shape and dtype");
    struct bench_output json;
    const bool done = bench_output_open(&json, request->json, fault) && measure(request, &subject, &json, fault);
    return bench_output_close(&json, done, fault) && done;
}
