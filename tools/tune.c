/* Searches the knobs of an operation, one after the other from the library's own choice on, and keeps what is faster. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "check_cases.h"
#include "commands.h"
#include "config_text.h"
#include "options.h"
#include "report.h"
#include "samples.h"
#include "stopwatch.h"
#include "tuning_file.h"

/* What is tried: knobs that go together, 0 being the library's choice. All others stay as they are. Ended by NULL. */
static const char *const gpu_moves[] = {
    "keep=registers,weights=early,shelved=0",
    "keep=registers,weights=late,shelved=0",
    "keep=reread,weights=late,shelved=0",
    "keep=reread,weights=kept,shelved=0",
    "keep=local,weights=kept,segments=1",
    "keep=local,weights=late,segments=1",
    "registers=64",
    "registers=0",
    "shelved=4",
    "shelved=6",
    "shelved=8",
    "prefetch=next,asked=0,segments=1",
    "prefetch=next,asked=2,segments=1",
    "prefetch=none,asked=0",
    "lanes=16,segments=16",
    "lanes=32,segments=4",
    "lanes=32,segments=8",
    "lanes=64,segments=2",
    "lanes=64,segments=4",
    "lanes=128,segments=1",
    "lanes=128,segments=2",
    "lanes=256,segments=1",
    "lanes=512,segments=1",
    "lanes=1024,segments=1",
    "unroll=1",
    "unroll=2",
    "unroll=4",
    "unroll=8",
    "vec=4",
    "vec=8",
    NULL,
};
static const char *const cpu_moves[] = {
    "vec=8",    "vec=16",   "unroll=1",  "unroll=2",  "unroll=4",         "unroll=8",
    "rounds=1", "rounds=4", "rounds=16", "rounds=64", "stores=streaming", NULL,
};
static const char *const gpu_backward_moves[] = {
    "keep=registers,gather=registers,fetch=in_turn",
    "keep=registers,gather=registers,fetch=ahead",
    "keep=registers,gather=split,fetch=ahead",
    "keep=registers,gather=local,fetch=ahead",
    "keep=registers,gather=local,fetch=in_turn",
    "keep=reread,gather=local,fetch=in_turn,segments=1",
    "keep=registers,tile=8192,gather=registers,fetch=far,sums=exchanged,segments=1,rounds=0,walkers=0",
    "keep=registers,tile=8192,gather=split,fetch=ahead,sums=exchanged,segments=1,rounds=0,walkers=0",
    "keep=registers,tile=16384,gather=registers,fetch=ahead,weights=late,sums=exchanged,segments=1,rounds=0,walkers=0",
    "keep=registers,tile=4096,lanes=256,gather=registers,fetch=ahead,sums=exchanged,segments=1,rounds=4,walkers=0",
    "sums=before,chunks=0,rounds=0,walkers=0",
    "prefetch=next",
    "prefetch=none",
    "weights=early",
    "weights=late",
    "rounds=1",
    "rounds=2",
    "lanes=32,segments=4",
    "lanes=32,segments=8",
    "lanes=64,segments=4",
    "lanes=64,segments=8",
    "lanes=128,segments=2",
    "lanes=128,segments=4",
    "lanes=256,segments=1",
    "lanes=256,segments=2",
    "lanes=512,segments=1",
    "lanes=1024,segments=1",
    NULL,
};
static const char *const cpu_backward_moves[] = {
    "vec=8",    "vec=16",    "unroll=1",  "unroll=2",   "unroll=4",     "rounds=4",
    "rounds=0", "walkers=1", "walkers=2", "walkers=16", "gather=local", NULL,
};

static const double least_gain = 0.02;               /* of the time, for a row to be worth keeping */
static const double trial_us = 20e3, final_us = 2e5; /* of runs: while searching, and before a row is kept */
enum { PASSES = 2, LEAST_RUNS = 7, CHECK_ROWS = 5, TEAM_ROWS = 6 };

/* One operation, dtype and shape on the device. */
struct search {
    const struct stopwatch *stopwatch;
    const struct bench_operation *operation;
    struct bench_shape shape;
    clnorm_dtype dtype;
    struct job job;
    struct launch launch;
    clnorm_config own, best;  /* the library's choice, the fastest one so far */
    double best_us, deadline; /* microseconds; of clock_us */
    unsigned tried, refused, wrong;
};

static const char *const *moves_of(const struct search *search) {
    const bool backward = strstr(search->operation->name, "backward") != NULL;
    if (search->stopwatch->cpu)
        return backward ? cpu_backward_moves : cpu_moves;
    return backward ? gpu_backward_moves : gpu_moves;
}

/* ------------------------------------------------------------------------------------------------------ one config */

/* The plan of a config; false where the device or the shape refuses it, or the driver cannot build it. */
static bool use_config(struct search *search, const clnorm_config *config) {
    struct fault refusal = {0};
    char text[CONFIG_TEXT];
    clnorm_config_text(config, text, sizeof text);
    job_free(&search->job);
    return bench_job(&search->job, search->operation, search->shape, search->dtype, text, &refusal) &&
           launch_replan(&search->launch, &search->stopwatch->session, &search->job, &refusal);
}

/* Of runs for so long: the least time on CPUs, the median elsewhere, as clnorm bench has them. */
static bool time_plan(const struct search *search, double long_us, double *us, struct fault *fault) {
    struct samples samples = {0};
    const double start = clock_us();
    bool done = true;
    for (int i = -1; done && (i < LEAST_RUNS || clock_us() - start < long_us); i++) {
        struct lap lap;
        done = stopwatch_time(search->stopwatch, &search->launch, &lap, fault) &&
               (i < 0 || samples_add(&samples, stopwatch_us(search->stopwatch, &lap), fault));
    }
    if (done)
        *us = stopwatch_of_many(search->stopwatch, &samples);
    samples_free(&samples);
    return done;
}

/* Of the backward's work-groups, teams of one for each tile of a row. */
static uint64_t count_teams(const struct search *search, const clnorm_config *plan) {
    const uint64_t tiles = (search->shape.cols + plan->tile - 1) / plan->tile;
    const uint64_t teams = (uint64_t)plan->walkers * search->stopwatch->session.device.compute_units / tiles;
    return teams ? teams : 1;
}

/* A few; where teams exchange sums, so many that every place in memory for a sum is taken again, and where work-groups take
 * short runs of rows in turn, so many that they do. */
static uint64_t rows_to_check(const struct search *search, const clnorm_config *plan) {
    if (plan->sums == CLNORM_SUMS_EXCHANGED)
        return TEAM_ROWS * count_teams(search, plan);
    const bool in_turn = plan->walkers && plan->rounds < TEAM_ROWS;
    return in_turn ? (plan->rounds + 1) * (uint64_t)plan->segments * count_teams(search, plan) : CHECK_ROWS;
}

/* Whether some rows come out as a double reference has them. config: as it was wished for. */
static bool is_right(const struct search *search, const clnorm_config *config) {
    clnorm_config plan, checked = *config;
    clnorm_plan_config(search->launch.plan, &plan);
    if (plan.sums == CLNORM_SUMS_EXCHANGED && plan.rounds > TEAM_ROWS) /* else one team would have the rows of many */
        checked.rounds = TEAM_ROWS;
    char text[CONFIG_TEXT];
    clnorm_config_text(&checked, text, sizeof text);
    struct check_case check_case = {.operation = search->operation->operation,
                                    .rows = rows_to_check(search, &plan),
                                    .cols = search->shape.cols,
                                    .options = bench_options(search->operation, text)};
    for (int i = 0; search->operation->inputs[i]; i++)
        check_case_add_input(&check_case, search->operation->inputs[i], search->dtype);
    struct fault fault = {0};
    return check_case_try(&search->stopwatch->session, &check_case, 1, &fault) == OUTCOME_RIGHT;
}

/* ------------------------------------------------------------------------------------------------------ the search */

/* The best config with a move's knobs in place of its own. */
static bool moved(const clnorm_config *best, const char *move, clnorm_config *config, struct fault *fault) {
    char text[2 * CONFIG_TEXT];
    const size_t length = clnorm_config_text(best, text, sizeof text);
    (void)snprintf(text + length, sizeof text - length, ",%s", move); /* what comes last counts */
    return config_parse(text, config, fault);
}

static bool try_move(struct search *search, const char *move, bool *improved, struct fault *fault) {
    clnorm_config config;
    double us;
    if (!moved(&search->best, move, &config, fault))
        return false;
    if (!memcmp(&config, &search->best, sizeof config))
        return true;
    progress("%s %" PRIu64 "x%" PRIu64 " %s: %u tried, %.2f us; %s", search->operation->name, search->shape.rows,
             search->shape.cols, clnorm_dtype_name(search->dtype), search->tried, search->best_us, move);
    search->tried++;
    if (!use_config(search, &config)) {
        search->refused++;
        return true;
    }
    if (!time_plan(search, trial_us, &us, fault))
        return false;
    if (us >= search->best_us)
        return true;
    if (!is_right(search, &config)) {
        search->wrong++;
        return true;
    }
    search->best = config;
    search->best_us = us;
    *improved = true;
    return true;
}

static bool start(struct search *search, struct fault *fault) {
    if (!bench_job(&search->job, search->operation, search->shape, search->dtype, NULL, fault) ||
        !launch_prepare(&search->launch, &search->stopwatch->session, &search->job, fault) ||
        !stopwatch_fill(search->stopwatch, &search->launch, &search->job, fault))
        return false;
    clnorm_plan_config(search->launch.plan, &search->own);
    search->best = search->own;
    return time_plan(search, trial_us, &search->best_us, fault);
}

static bool descend(struct search *search, struct fault *fault) {
    const char *const *const moves = moves_of(search);
    bool improved = true;
    for (int pass = 0; pass < PASSES && improved; pass++) {
        improved = false;
        for (size_t i = 0; moves[i] && clock_us() < search->deadline; i++)
            if (!try_move(search, moves[i], &improved, fault))
                return false;
    }
    return true;
}

static bool time_config(struct search *search, const clnorm_config *config, double *least_us, struct fault *fault) {
    double us;
    if (!use_config(search, config))
        return fault_set(fault, EXIT_FAILED, "%s: a config that ran is refused now", search->operation->name);
    if (!time_plan(search, final_us, &us, fault))
        return false;
    *least_us = us < *least_us ? us : *least_us;
    return true;
}

/* Both again and for longer, in turn: what won by chance is found out. */
static bool compare(struct search *search, double *own_us, double *best_us, struct fault *fault) {
    *own_us = *best_us = HUGE_VAL;
    for (int turn = 0; turn < 2; turn++)
        if (!time_config(search, &search->own, own_us, fault) || !time_config(search, &search->best, best_us, fault))
            return false;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- the command */

static void report(const struct search *search, double own_us, double best_us, bool kept) {
    char shape[48];
    char text[CONFIG_TEXT];
    (void)snprintf(shape, sizeof shape, "%" PRIu64 "x%" PRIu64, search->shape.rows, search->shape.cols);
    clnorm_config_text(&search->best, text, sizeof text);
    printf("%-23s %-12s %-5s %9.2f %9.2f %5u %7u %5u  %s\n", search->operation->name, shape,
           clnorm_dtype_name(search->dtype), own_us, best_us, search->tried, search->refused, search->wrong,
           kept ? text : "as it is");
    fflush(stdout);
}

static bool tune_one(const struct stopwatch *stopwatch, const struct bench_operation *operation, struct bench_shape shape,
                     clnorm_dtype dtype, double seconds, struct tuning_file *file, struct fault *fault) {
    struct search search = {.stopwatch = stopwatch,
                            .operation = operation,
                            .shape = shape,
                            .dtype = dtype,
                            .deadline = clock_us() + seconds * 1e6};
    double own_us = 0;
    double best_us = 0;
    char key[TUNING_KEY] = "";
    bool done = start(&search, fault);
    if (done)
        clnorm_plan_tuning_key(search.launch.plan, key, sizeof key);
    if (!*key)
        search.deadline = 0; /* such a plan takes no row of a file */
    done = done && descend(&search, fault) && compare(&search, &own_us, &best_us, fault);
    progress_end();
    if (done) {
        const bool kept = *key && best_us < own_us * (1 - least_gain);
        report(&search, own_us, best_us, kept);
        done = tuning_file_put(file, key, kept ? &search.best : NULL, best_us / own_us, fault);
    }
    launch_free(&search.launch);
    job_free(&search.job);
    return done;
}

static bool tune_all(const struct stopwatch *stopwatch, const struct bench_request *request, double seconds,
                     struct tuning_file *file, struct fault *fault) {
    printf("%-23s %-12s %-5s %9s %9s %5s %7s %5s  %s\n", "operation", "shape", "dtype", "us", "tuned_us", "tried",
           "refused", "wrong", "config");
    for (size_t d = 0; d < request->dtype_count; d++)
        for (size_t s = 0; s < request->shape_count; s++)
            for (size_t o = 0; o < request->operation_count; o++)
                if (!tune_one(stopwatch, request->operations[o], request->shapes[s], request->dtypes[d], seconds, file,
                              fault))
                    return false;
    return true;
}

static bool tune_device(struct bench_request *request, double seconds, struct tuning_file *file, struct fault *fault) {
    struct stopwatch stopwatch;
    bool done = stopwatch_open(&stopwatch, request->device, NULL, fault);
    if (done) {
        printf("device ");
        device_print_line(&stopwatch.session.device);
        bench_complete(request, stopwatch.cpu);
        done = tune_all(&stopwatch, request, seconds, file, fault);
    }
    stopwatch_close(&stopwatch);
    return done;
}

static bool run_tune(struct bench_request *request, double seconds, const char *path, struct fault *fault) {
    struct tuning_file file;
    clnorm_device_info device;
    if (!(seconds > 0))
        return fault_set(fault, EXIT_REQUEST, "--seconds %g: expected more than 0", seconds);
    const clnorm_status status = clnorm_device_select(request->device, &device);
    if (status)
        return fault_library(fault, status, "device");
    bool done = tuning_file_read(&file, path, &device, fault);
    if (done && setenv("CLNORM_TUNING", "0", 1)) /* the search starts from the library's own choice */
        done = fault_set(fault, EXIT_FAILED, "CLNORM_TUNING cannot be set");
    done = done && tune_device(request, seconds, &file, fault) && tuning_file_write(&file, fault);
    if (done)
        printf("%s: %zu rows\n", file.path, file.count);
    tuning_file_free(&file);
    return done;
}

static const char epilogue[] =
    "Operations, shapes and dtypes are those of `clnorm bench`. The rows of a shape are what is measured with; the result\n"
    "is for its columns. Each faster config is compared with a double reference before it counts. What is kept goes to a\n"
    "text file of the device, which programs read when they make a context; CLNORM_TUNING=0 has them not do so.\n";

int tune_command(int argc, const char **argv, struct fault *fault) {
    struct bench_request request = {0};
    char *shapes = NULL;
    char *dtypes = NULL;
    char *out = NULL;
    double seconds = 20;
    const struct poptOption table[] = {
        {"shapes", '\0', POPT_ARG_STRING, &shapes, 0, "Rows and columns (usual ones for the device)", "MxN,..."},
        {"dtypes", '\0', POPT_ARG_STRING, &dtypes, 0, "Element types (bf16,f32; on CPUs f32)", "DT,..."},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Tune this device; see clnorm select --help", "SELECTOR"},
        {"seconds", '\0', POPT_ARG_DOUBLE, &seconds, 0, "Search so long for each at most (20)", "S"},
        {"out", '\0', POPT_ARG_STRING, &out, 0, "Write this file, not the one that is read", "FILE"},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OP...] [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done =
        line.help || (bench_read(&request, &line, shapes, dtypes, fault) && run_tune(&request, seconds, out, fault));
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
