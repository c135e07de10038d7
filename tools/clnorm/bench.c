#include <stdio.h>
#include <string.h>

#include "bench_device.h"
#include "bench_host.h"
#include "commands.h"

static const char moved_and_timed[] =
    "MB and GB/s count the least traffic. Forward reads x and writes y; backward reads x (softmax: y) and dy, and writes "
    "dx. A gate adds z, and backward dz. A residual adds itself and the sum; backward, the sum's gradient. 8-bit operations "
    "count every tensor once.\n"
    "us is the time of the kernels: on GPUs the median of many runs, with the caches flushed before each; on CPUs the "
    "least time from an enqueue to its end. limit_us is the time of a copy of the same bytes in the same process: the "
    "faster of clEnqueueCopyBuffer and a copy kernel; on CPUs memcpy on one thread.\n";

enum { RUNS = 30, WARM_UP = 3 };
static const double usual_seconds = 0.3;

/* The arguments of --sweep and --bytes; NULL: not given. */
struct sweep_words {
    char *widths, *bytes;
};

static bool read_sweep(struct bench_request *request, const struct sweep_words *words, const char *shapes, bool host,
                       struct fault *fault) {
    size_t count;
    if (words->bytes && !words->widths)
        return fault_set(fault, EXIT_REQUEST, "--bytes: expected --sweep too");
    if (!words->widths)
        return true;
    if (shapes || host)
        return fault_set(fault, EXIT_REQUEST, "--sweep: expected no --%s", shapes ? "shapes" : "host");
    return widths_read(words->widths, "sweep", &request->sweep, fault) &&
           numbers_read(words->bytes ? words->bytes : "64M", "bytes", &request->sweep_bytes, 1, &count, fault);
}

/* Refuses an option beside one with which it has no effect. */
static bool check_pairs(const struct command_line *line, const struct bench_request *request, bool host,
                        struct fault *fault) {
    const bool sweep = request->sweep.count > 0;
    const struct {
        const char *option, *other;
        bool given, beside;
    } pairs[] = {
        {"packed", "host", request->packed, host},
        {"packed", "sweep", request->packed, sweep},
        {"packed", "unfused", request->packed, request->unfused},
        {"weight-rows", "host", request->weight_rows, host},
        {"weight-rows", "sweep", request->weight_rows, sweep},
        {"svg", "host", request->svg, host},
        {"median", "host", request->median, host},
        {"runs", "host", command_line_has(line, "runs"), host},
        {"warm-up", "host", command_line_has(line, "warm-up"), host},
        {"seconds", "host", command_line_has(line, "seconds"), host},
        {"unfused", "host", request->unfused, host},
        {"in-place", "host", request->in_place, host},
        {"in-place", "unfused", request->in_place, request->unfused},
        {"unfused", "sweep with --svg, which draws one line for each operation", request->unfused, sweep && request->svg},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].given && pairs[i].beside)
            return fault_set(fault, EXIT_REQUEST, "--%s: expected no --%s", pairs[i].option, pairs[i].other);
    return true;
}

static bool run_bench(struct command_line *line, struct bench_request *request, const char *shapes, const char *dtypes,
                      bool host, struct fault *fault) {
    if (!bench_read(request, line, shapes, dtypes, fault) || !check_pairs(line, request, host, fault))
        return false;
    if (!(request->seconds >= 0 && request->seconds <= BENCH_MOST_SECONDS))
        return fault_set(fault, EXIT_REQUEST, "--seconds %g: expected 0 to %d", request->seconds, BENCH_MOST_SECONDS);
    if (request->enqueues && !host)
        return fault_set(fault, EXIT_REQUEST, "--enqueues %d: expected --host too", request->enqueues);
    if (request->weight_repeat && !request->weight_rows)
        return fault_set(fault, EXIT_REQUEST, "--weight-repeat %lld: expected --weight-rows too", request->weight_repeat);
    if (request->svg && !*request->svg)
        return fault_set(fault, EXIT_REQUEST, "--svg '': expected the name of a file");
    if (request->svg && !strcmp(request->svg, "-"))
        return fault_set(fault, EXIT_REQUEST, "--svg -: expected a file; standard output has the table or the JSON lines");
    return host ? bench_host(request, fault) : bench_device(request, fault);
}

/* The text of --help below the options. */
static void describe(char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "Operations (all by default): ");
    for (const struct bench_operation *row = bench_operations(); row->name; row++)
        length +=
            (size_t)snprintf(text + length, capacity - length, "%s%s", row == bench_operations() ? "" : ", ", row->name);
    (void)snprintf(text + length, capacity - length, ".\n%s", moved_and_timed);
}

int bench_command(int argc, const char **argv, struct fault *fault) {
    struct bench_request request = {.runs = RUNS, .warm_up = WARM_UP, .seconds = usual_seconds};
    char *shapes = NULL;
    char *dtypes = NULL;
    struct sweep_words sweep = {NULL, NULL};
    int host = 0;
    const struct poptOption table[] = {
        {"shapes", '\0', POPT_ARG_STRING, &shapes, 0,
         "Rows and columns, or NxCxHxW[/GROUPS] of images (usual ones for the device)", "MxN,..."},
        {"dtypes", '\0', POPT_ARG_STRING, &dtypes, 0, "Element types (bf16,f32; on CPUs f32)", "DT,..."},
        {"sweep", '\0', POPT_ARG_STRING, &sweep.widths, 0, "Measure many widths; --svg draws the ratio to the copy",
         "grid|N,..."},
        {"bytes", '\0', POPT_ARG_STRING, &sweep.bytes, 0, "--sweep: bytes of x at each width (64M)", "N"},
        {"packed", '\0', POPT_ARG_LONGLONG, &request.packed, 1,
         "Rows are the heads of one third of a packed [rows / H, 3, H, columns]", "H"},
        {"weight-rows", '\0', POPT_ARG_LONGLONG, &request.weight_rows, 1, "Norms: a weight and bias of [N, columns]", "N"},
        {"weight-repeat", '\0', POPT_ARG_LONGLONG, &request.weight_repeat, 1,
         "--weight-rows: consecutive rows that share a row of them (1)", "N"},
        {"json", '\0', POPT_ARG_STRING, &request.json, 0, "Write JSON lines; - prints them instead of the table", "FILE"},
        {"svg", '\0', POPT_ARG_STRING, &request.svg, 0, "Draw GB/s over shapes, against the copy", "FILE"},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Run on this device; see clnorm select --help", "SELECTOR"},
        {"config", '\0', POPT_ARG_STRING, &request.config, 0, "Force knobs: vec=8,lanes=128,...", "KNOB=N,..."},
        {"runs", '\0', POPT_ARG_INT, &request.runs, 1, "Minimum runs of each, within 20 s (30)", "N"},
        {"seconds", '\0', POPT_ARG_DOUBLE, &request.seconds, 0, "Minimum time of the runs of each, within 2000 (0.3)", "S"},
        {"warm-up", '\0', POPT_ARG_INT, &request.warm_up, 0, "Runs of each before the timed ones (3)", "N"},
        {"median", '\0', POPT_ARG_NONE, &request.median, 0, "Print medians on CPUs too, not the least times", NULL},
        {"unfused", '\0', POPT_ARG_NONE, &request.unfused, 0, "Measure fused operations as separate calls too", NULL},
        {"in-place", '\0', POPT_ARG_NONE, &request.in_place, 0, "Write y over x, dx over x or dy and so on", NULL},
        {"host", '\0', POPT_ARG_NONE, &host, 0, "Measure the host: enqueue, and plan creation", NULL},
        {"enqueues", '\0', POPT_ARG_INT, &request.enqueues, 1, "--host: print the memory in use after N more enqueues",
         "N"},
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
