#include <stdio.h>
#include <string.h>

#include "bench_device.h"
#include "bench_host.h"
#include "commands.h"

static const char moved_and_timed[] =
    "What is moved is the least: forward x in and y out, with a gate z in; backward x (of softmax y) and dy in and dx out, "
    "with a gate z in and dz out; with a residual, that in and the sum out, backward likewise; of 8-bit operations every "
    "tensor once.\n"
    "Each time is that of the kernels: on GPUs the median of many runs, the caches flushed before each; on CPUs the least "
    "time of an enqueue and its finish. limit_us is the time of a copy of the same bytes in the same process: the faster of "
    "clEnqueueCopyBuffer and a copy kernel; on CPUs memcpy on one thread.\n";

/* The words of --sweep and --bytes; NULL: not given. */
struct sweep_words {
    char *widths, *bytes;
};

static bool read_sweep(struct bench_request *request, const struct sweep_words *words, const char *shapes, bool host,
                       struct fault *fault) {
    size_t count;
    if (words->bytes && !words->widths)
        return fault_set(fault, EXIT_REQUEST, "--bytes: expected --sweep");
    if (!words->widths)
        return true;
    if (shapes || host)
        return fault_set(fault, EXIT_REQUEST, "--sweep: expected no --%s", shapes ? "shapes" : "host");
    return widths_read(words->widths, "sweep", &request->sweep, fault) &&
           numbers_read(words->bytes ? words->bytes : "64M", "bytes", &request->sweep_bytes, 1, &count, fault);
}

static bool run_bench(struct command_line *line, struct bench_request *request, const char *shapes, const char *dtypes,
                      bool host, struct fault *fault) {
    if (!bench_read(request, line, shapes, dtypes, fault))
        return false;
    if (request->runs < 1)
        return fault_set(fault, EXIT_REQUEST, "--runs %d: expected 1 or more", request->runs);
    if (request->warm_up < 0)
        return fault_set(fault, EXIT_REQUEST, "--warm-up %d: expected 0 or more", request->warm_up);
    if (request->enqueues < 0 || (request->enqueues && !host))
        return fault_set(fault, EXIT_REQUEST, "--enqueues %d: expected 0 or more, with --host", request->enqueues);
    if (request->weight_rows < 0 || request->weight_repeat < 0 || (request->weight_repeat && !request->weight_rows))
        return fault_set(fault, EXIT_REQUEST,
                         "--weight-rows %lld, --weight-repeat %lld: expected 0 or more, and the second with the first",
                         request->weight_rows, request->weight_repeat);
    if (request->packed && (host || request->sweep.count))
        return fault_set(fault, EXIT_REQUEST, "--packed: expected no --%s", host ? "host" : "sweep");
    if (request->weight_rows && (host || request->sweep.count))
        return fault_set(fault, EXIT_REQUEST, "--weight-rows: expected no --%s", host ? "host" : "sweep");
    if (host && request->svg)
        return fault_set(fault, EXIT_REQUEST, "--svg: expected no --host");
    if (request->svg && !strcmp(request->svg, "-"))
        return fault_set(fault, EXIT_REQUEST, "--svg -: expected a file, standard output has the table or the JSON lines");
    return host ? bench_host(request, fault) : bench_device(request, fault);
}

/* What --help says below the options. */
static void describe(char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "Operations: ");
    for (const struct bench_operation *row = bench_operations(); row->name; row++)
        length +=
            (size_t)snprintf(text + length, capacity - length, "%s%s", row == bench_operations() ? "" : ", ", row->name);
    (void)snprintf(text + length, capacity - length, "; all of them without a word.\n%s", moved_and_timed);
}

int bench_command(int argc, const char **argv, struct fault *fault) {
    struct bench_request request = {.runs = 30, .warm_up = 3};
    char *shapes = NULL;
    char *dtypes = NULL;
    struct sweep_words sweep = {NULL, NULL};
    int host = 0;
    const struct poptOption table[] = {
        {"shapes", '\0', POPT_ARG_STRING, &shapes, 0,
         "Rows and columns (usual ones for the device), or images' NxCxHxW[/GROUPS]", "MxN,..."},
        {"dtypes", '\0', POPT_ARG_STRING, &dtypes, 0, "Element types (bf16,f32; on CPUs f32)", "DT,..."},
        {"sweep", '\0', POPT_ARG_STRING, &sweep.widths, 0, "Time many widths; --svg draws time over the copy's",
         "grid|N,..."},
        {"bytes", '\0', POPT_ARG_STRING, &sweep.bytes, 0, "--sweep: bytes of x at each width (64M)", "N"},
        {"packed", '\0', POPT_ARG_LONGLONG, &request.packed, 0,
         "Rows are H heads in a third of a [rows / H, 3, H, columns]", "H"},
        {"weight-rows", '\0', POPT_ARG_LONGLONG, &request.weight_rows, 0, "Norms: a weight and bias of [N, columns]", "N"},
        {"weight-repeat", '\0', POPT_ARG_LONGLONG, &request.weight_repeat, 0,
         "--weight-rows: so many neighbouring rows take one of them, in turn (1)", "N"},
        {"json", '\0', POPT_ARG_STRING, &request.json, 0, "Write a JSON line each; - for just these", "FILE"},
        {"svg", '\0', POPT_ARG_STRING, &request.svg, 0, "Draw GB/s over shapes, against the copy", "FILE"},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Run on this device; see clnorm select --help", "SELECTOR"},
        {"config", '\0', POPT_ARG_STRING, &request.config, 0, "Force knobs: vec=8,lanes=128,...", "KNOB=N,..."},
        {"runs", '\0', POPT_ARG_INT, &request.runs, 0, "Take so many runs of each, or more; for 20 s at most (30)", "N"},
        {"warm-up", '\0', POPT_ARG_INT, &request.warm_up, 0, "Take so many before those that count (3)", "N"},
        {"median", '\0', POPT_ARG_NONE, &request.median, 0, "The median counts on CPUs too, not the least", NULL},
        {"unfused", '\0', POPT_ARG_NONE, &request.unfused, 0, "What is fused beside the same in separate calls", NULL},
        {"host", '\0', POPT_ARG_NONE, &host, 0, "Measure the host: enqueue, and plan creation", NULL},
        {"enqueues", '\0', POPT_ARG_INT, &request.enqueues, 0, "--host: watch the memory over N more enqueues", "N"},
        POPT_TABLEEND,
    };
    char epilogue[4096];
    describe(epilogue, sizeof epilogue);
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OP...] [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || (read_sweep(&request, &sweep, shapes, host, fault) &&
                                    run_bench(&line, &request, shapes, dtypes, host, fault));
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
