/* Prints the time of each kernel of an operation beside that of the copy, and its registers and memory. All caches of
 * compiled programs are in a new temporary folder, so that every kernel is built and the driver writes a log of it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_request.h"
#include "build_report.h"
#include "commands.h"
#include "config_text.h"
#include "copies.h"
#include "report.h"
#include "temporary.h"

struct request {
    char *device;
    char *config;
    char *shape_text;
    char *dtype_text;
    int runs, warm_up, json;
    const struct bench_operation *operation;
    struct bench_shape shape;
    clnorm_dtype dtype;
};

/* One of the plan's kernels. */
struct kernel {
    clnorm_kernel_info info;
    struct samples us;
    struct build_report build;
    long local, private_memory; /* bytes, from clGetKernelWorkGroupInfo; may be NOT_REPORTED */
};

/* The context's log. */
struct text {
    char *text; /* NULL: nothing yet, or no memory for it */
    size_t length;
};

struct profile {
    const struct request *request;
    struct text log;
    struct stopwatch stopwatch;
    struct job job;
    struct launch launch;
    struct copies copies;
    uint64_t least_bytes;
    struct kernel *kernels; /* [launch.kernels] */
    cl_event *events;       /* likewise */
    struct samples us;      /* from the start of the first kernel to the end of the last; on CPUs the host's time */
};

static void take_line(const char *line, void *user) {
    struct text *const log = user;
    const size_t length = strlen(line);
    char *const grown = realloc(log->text, log->length + length + 2);
    if (!grown)
        return;
    (void)snprintf(grown + log->length, length + 2, "%s\n", line);
    log->text = grown;
    log->length += length + 1;
}

/* ------------------------------------------------------------------------------------------------------------ the times */

/* The time in us from the start of one event's command to the end of another's; 0 where the driver's clock does not
 * advance. */
static bool time_between(cl_event from, cl_event to, double *us, struct fault *fault) {
    cl_ulong start = 0;
    cl_ulong end = 0;
    cl_int code = clGetEventProfilingInfo(from, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    if (!code)
        code = clGetEventProfilingInfo(to, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    *us = end > start ? (double)(end - start) * 1e-3 : 0;
    return !code || fault_opencl(fault, code, "clGetEventProfilingInfo", "time");
}

static bool keep_times(struct profile *profile, double host_us, struct fault *fault) {
    double us;
    const cl_uint count = profile->launch.kernels;
    for (cl_uint i = 0; i < count; i++)
        if (!time_between(profile->events[i], profile->events[i], &us, fault) ||
            !samples_add(&profile->kernels[i].us, us, fault))
            return false;
    return time_between(profile->events[0], profile->events[count - 1], &us, fault) &&
           samples_add(&profile->us, profile->stopwatch.cpu || us == 0 ? host_us : us, fault);
}

static bool time_kernels(struct profile *profile, bool warm, struct fault *fault) {
    const struct launch *const launch = &profile->launch;
    const cl_command_queue queue = profile->stopwatch.session.queue;
    if (!stopwatch_flush(&profile->stopwatch, fault))
        return false;
    const double start = clock_us();
    const clnorm_status status = clnorm_plan_enqueue_kernels(launch->plan, queue, &launch->args, 0, NULL, profile->events);
    if (status)
        return fault_library(fault, status, "enqueue");
    const cl_int code = clFinish(queue);
    const double host_us = clock_us() - start;
    const bool done = code ? fault_opencl(fault, code, "clFinish", "time") : !warm || keep_times(profile, host_us, fault);
    for (cl_uint i = 0; i < launch->kernels; i++)
        clReleaseEvent(profile->events[i]);
    return done;
}

static bool time_copies(struct profile *profile, bool warm, struct fault *fault) {
    return copies_time(&profile->copies, &profile->stopwatch, warm, fault);
}

static bool time_both(struct profile *profile, bool warm, struct fault *fault) {
    return time_kernels(profile, warm, fault) && time_copies(profile, warm, fault);
}

static bool repeat(struct profile *profile, bool (*timed)(struct profile *profile, bool warm, struct fault *fault),
                   struct fault *fault) {
    for (int i = -profile->request->warm_up; i < profile->request->runs; i++)
        if (!timed(profile, i >= 0, fault))
            return false;
    return true;
}

/* On GPUs kernels and copies run in turn, on CPUs one after the other, as in `clnorm bench`. */
static bool time_all(struct profile *profile, struct fault *fault) {
    if (!profile->stopwatch.cpu)
        return repeat(profile, time_both, fault);
    return repeat(profile, time_kernels, fault) && repeat(profile, time_copies, fault);
}

/* ---------------------------------------------------------------------------------------------------------- the kernels */

/* The private bytes that PoCL reports are made up, the same for every kernel. */
static long query(const struct profile *profile, cl_kernel kernel, cl_kernel_work_group_info what) {
    cl_ulong bytes = 0;
    if (what == CL_KERNEL_PRIVATE_MEM_SIZE && profile->stopwatch.session.device.family == CLNORM_PLATFORM_POCL)
        return NOT_REPORTED;
    const cl_int code =
        clGetKernelWorkGroupInfo(kernel, profile->stopwatch.session.device.device, what, sizeof bytes, &bytes, NULL);
    return code ? NOT_REPORTED : (long)bytes;
}

static bool read_kernels(struct profile *profile, struct fault *fault) {
    const cl_uint count = profile->launch.kernels;
    profile->kernels = calloc(count, sizeof *profile->kernels);
    profile->events = calloc(count, sizeof *profile->events);
    if (!profile->kernels || !profile->events)
        return fault_set(fault, EXIT_FAILED, "out of memory for %u kernels", count);
    for (cl_uint i = 0; i < count; i++) {
        struct kernel *const kernel = &profile->kernels[i];
        kernel->info = (clnorm_kernel_info)CLNORM_KERNEL_INFO_INIT;
        const clnorm_status status = clnorm_plan_kernel(profile->launch.plan, i, &kernel->info);
        if (status)
            return fault_library(fault, status, "kernel");
        kernel->build = build_report_read(profile->log.text ? profile->log.text : "", kernel->info.name);
        kernel->local = query(profile, kernel->info.kernel, CL_KERNEL_LOCAL_MEM_SIZE);
        kernel->private_memory = query(profile, kernel->info.kernel, CL_KERNEL_PRIVATE_MEM_SIZE);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ reports */

/* GB/s; 0 where the time is unknown. */
static double speed(uint64_t bytes, double us) {
    return us > 0 ? (double)bytes / us * 1e-3 : 0;
}

enum { NUMBER_TEXT = 24 };

/* The number, or "unknown". */
static const char *number_text(long number, char text[NUMBER_TEXT]) {
    (void)snprintf(text, NUMBER_TEXT, number == NOT_REPORTED ? "unknown" : "%ld", number);
    return text;
}

/* print_wrapped of a formatted text. */
__attribute__((format(printf, 2, 3))) static void print_line(const char *label, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_wrapped(label, text);
}

static void print_kernel(struct kernel *kernel, double copy_speed) {
    char registers[NUMBER_TEXT];
    char spilled[NUMBER_TEXT];
    char stack[NUMBER_TEXT];
    char local[NUMBER_TEXT];
    char private_memory[NUMBER_TEXT];
    char bytes[SIZE_TEXT];
    const double us = samples_median(&kernel->us);
    const double gb_s = speed(kernel->info.bytes, us);
    printf("kernel   %s, %zu work-groups x %zu\n", kernel->info.name, kernel->info.groups, kernel->info.items);
    if (us > 0)
        print_line("  time   ", "%.2f us (least %.2f): %.1f GB/s of its %s, %.1f%% of the copy's", us,
                   samples_least(&kernel->us), gb_s, size_text(kernel->info.bytes, bytes), 100 * gb_s / copy_speed);
    else
        printf("  time   unknown: the driver's clock does not advance\n");
    print_line("  uses   ", "registers %s, bytes spilled %s, on the stack %s; local memory %s, private %s",
               number_text(kernel->build.registers, registers), number_text(kernel->build.spill_stores, spilled),
               number_text(kernel->build.stack, stack), number_text(kernel->local, local),
               number_text(kernel->private_memory, private_memory));
}

static void print_text(struct profile *profile) {
    const struct request *const request = profile->request;
    const struct copy_times copy = copies_times(&profile->copies, &profile->stopwatch);
    const double us = samples_median(&profile->us);
    const double copy_speed = speed(profile->least_bytes, copy.limit_us);
    clnorm_config config;
    char text[CONFIG_TEXT];
    char bytes[SIZE_TEXT];
    char shape[BENCH_SHAPE_TEXT];
    clnorm_plan_config(profile->launch.plan, &config);
    clnorm_config_text(&config, text, sizeof text);
    device_print_line("device   ", &profile->stopwatch.session.device);
    print_line("subject  ", "%s %s %s, medians of %d runs after %d to warm up", request->operation->name,
               bench_shape_text(&request->shape, shape), clnorm_dtype_name(request->dtype), request->runs,
               request->warm_up);
    print_wrapped("config   ", text);
    print_line("build    ", "%.1f ms for the plan, without any cache; %.1f ms for the first launch",
               profile->launch.plan_us * 1e-3, profile->launch.warm_up_us * 1e-3);
    print_line("time     ", "%.2f us (least %.2f): %.1f GB/s of the least traffic, %s", us, samples_least(&profile->us),
               speed(profile->least_bytes, us), size_text(profile->least_bytes, bytes));
    print_line("copy     ", "%.2f us for as many bytes: %.1f GB/s; the operation takes %.2f times that", copy.limit_us,
               copy_speed, us / copy.limit_us);
    for (cl_uint i = 0; i < profile->launch.kernels; i++)
        print_kernel(&profile->kernels[i], copy_speed);
}

/* null: the driver does not report the number. */
static json_t *number_json(long number) {
    return number == NOT_REPORTED ? json_null() : json_integer(number);
}

static json_t *kernel_json(struct kernel *kernel, double copy_speed) {
    const double us = samples_median(&kernel->us);
    const double gb_s = speed(kernel->info.bytes, us);
    return json_pack("{s:s, s:I, s:I, s:f, s:f, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "name", kernel->info.name,
                     "groups", (json_int_t)kernel->info.groups, "items", (json_int_t)kernel->info.items, "us", us,
                     "least_us", samples_least(&kernel->us), "bytes", (json_int_t)kernel->info.bytes, "gb_s", gb_s,
                     "copy_share", gb_s / copy_speed, "registers", number_json(kernel->build.registers), "spill_stores",
                     number_json(kernel->build.spill_stores), "spill_loads", number_json(kernel->build.spill_loads),
                     "stack", number_json(kernel->build.stack), "local", number_json(kernel->local), "private",
                     number_json(kernel->private_memory));
}

static bool print_json(struct profile *profile, struct fault *fault) {
    const struct request *const request = profile->request;
    const clnorm_device_info *const device = &profile->stopwatch.session.device;
    const struct copy_times copy = copies_times(&profile->copies, &profile->stopwatch);
    const double us = samples_median(&profile->us);
    const double copy_speed = speed(profile->least_bytes, copy.limit_us);
    clnorm_config config;
    clnorm_plan_config(profile->launch.plan, &config);
    json_t *const kernels = json_array();
    for (cl_uint i = 0; i < profile->launch.kernels; i++)
        json_array_append_new(kernels, kernel_json(&profile->kernels[i], copy_speed));
    json_t *const object =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:o, s:o}", "op",
                  request->operation->name, "device", device->name, "driver", device->driver, "rows",
                  (json_int_t)request->shape.rows, "cols", (json_int_t)request->shape.cols, "dtype",
                  clnorm_dtype_name(request->dtype), "runs", request->runs, "warm_up", request->warm_up, "build_us",
                  profile->launch.plan_us, "first_launch_us", profile->launch.warm_up_us, "us", us, "least_us",
                  samples_least(&profile->us), "limit_us", copy.limit_us, "bytes", (json_int_t)profile->least_bytes, "gb_s",
                  speed(profile->least_bytes, us), "config", config_json(&config), "kernels", kernels);
    bench_shape_json(&request->shape, object);
    return json_print(object, fault);
}

/* --------------------------------------------------------------------------------------------------------- the command */

/* Sets the usual shape and dtype of the device where none was given. */
static void complete(struct request *request, bool cpu) {
    if (!request->shape_text)
        request->shape = (struct bench_shape){.rows = cpu ? 4096 : 16384, .cols = cpu ? 1024 : 4096};
    if (!request->dtype_text)
        request->dtype = cpu ? CLNORM_F32 : CLNORM_BF16;
}

static bool measure(struct profile *profile, struct request *request, struct fault *fault) {
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.log = take_line;
    options.log_user = &profile->log;
    options.build_report = 1;
    if (!stopwatch_open(&profile->stopwatch, request->device, &options, fault))
        return false;
    profile->stopwatch.median = true;
    complete(request, profile->stopwatch.cpu);
    progress("building");
    if (!bench_job(&profile->job, request->operation, request->shape, request->dtype, request->config, fault) ||
        !launch_prepare(&profile->launch, &profile->stopwatch.session, &profile->job, fault))
        return false;
    profile->least_bytes = bench_bytes(request->operation, &profile->job);
    progress("running");
    return read_kernels(profile, fault) && stopwatch_fill(&profile->stopwatch, &profile->launch, &profile->job, fault) &&
           copies_make(&profile->copies, &profile->stopwatch, profile->least_bytes, fault) && time_all(profile, fault);
}

static void free_profile(struct profile *profile) {
    for (cl_uint i = 0; profile->kernels && i < profile->launch.kernels; i++)
        samples_free(&profile->kernels[i].us);
    free(profile->kernels);
    free(profile->events);
    samples_free(&profile->us);
    copies_free(&profile->copies);
    launch_free(&profile->launch);
    job_free(&profile->job);
    stopwatch_close(&profile->stopwatch);
    free(profile->log.text);
}

static bool report(struct profile *profile, struct fault *fault) {
    if (profile->request->json)
        return print_json(profile, fault);
    print_text(profile);
    return true;
}

static bool run_profile(struct command_line *line, struct request *request, struct fault *fault) {
    const char *const word = command_line_next(line);
    if (!word)
        return fault_set(fault, EXIT_REQUEST, "expected an operation, such as rms_norm_backward");
    if (!bench_find_operation(word, &request->operation, fault) || !command_line_end(line, fault) ||
        (request->shape_text && !bench_parse_shape(request->shape_text, "--shape", &request->shape, fault)) ||
        (request->dtype_text && !parse_dtype("--dtype", request->dtype_text, &request->dtype, fault)))
        return false;
    char dir[TEMPORARY_PATH];
    if (!temporary_make(dir, fault))
        return false;
    struct profile profile = {.request = request};
    const bool measured = temporary_caches(dir, fault) && measure(&profile, request, fault);
    progress_end();
    const bool done = measured && report(&profile, fault);
    free_profile(&profile);
    temporary_remove(dir);
    return done;
}

static const char epilogue[] =
    "Operations are those of `clnorm bench`. A kernel's bytes are those of the tensors that it reads or writes, each "
    "counted once, and of its parts of the workspace. Registers, spills and stack come from NVIDIA's build log; other "
    "drivers do not report them. On a GPU the caches are flushed before each run.\n";

int profile_command(int argc, const char **argv, struct fault *fault) {
    struct request request = {.runs = 30, .warm_up = 3};
    const struct poptOption table[] = {
        {"shape", '\0', POPT_ARG_STRING, &request.shape_text, 0, "Rows and columns (a usual one for the device)", "MxN"},
        {"dtype", '\0', POPT_ARG_STRING, &request.dtype_text, 0, "Element type (bf16; on CPUs f32)", "DT"},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Run on this device; see clnorm select --help", "SELECTOR"},
        {"config", '\0', POPT_ARG_STRING, &request.config, 0, "Force knobs: vec=8,lanes=128,...", "KNOB=N,..."},
        {"warm-up", '\0', POPT_ARG_INT, &request.warm_up, 0, "Runs before the timed ones (3)", "N"},
        {"runs", '\0', POPT_ARG_INT, &request.runs, 1, "Print medians of N runs (30)", "N"},
        {"json", '\0', POPT_ARG_NONE, &request.json, 0, "Print a JSON object", NULL},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "OP [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || run_profile(&line, &request, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
