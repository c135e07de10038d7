/* Searches the knobs of an operation: changes one after the other, beginning with the library's choice, and keeps faster
 * configs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_request.h"
#include "commands.h"
#include "config_text.h"
#include "options.h"
#include "report.h"
#include "samples.h"
#include "stopwatch.h"
#include "trial.h"
#include "tune_grid.h"
#include "tuning_file.h"

/* The moves of the search. A move sets some knobs, where 0 is the library's choice, and keeps all others. Ended by NULL. */
static const char *const gpu_moves[] = {
    "keep=registers,weights=early,local_vectors=0",
    "keep=registers,weights=late,local_vectors=0",
    "keep=reread,weights=late,local_vectors=0",
    "keep=reread,weights=kept,local_vectors=0",
    "keep=local,weights=kept,segments=1",
    "keep=local,weights=late,segments=1",
    "local_vectors=4",
    "local_vectors=6",
    "local_vectors=8",
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
    "vec=8",        "vec=16",        "unroll=1",      "unroll=2",         "unroll=4",      "unroll=8", "iterations=1",
    "iterations=4", "iterations=16", "iterations=64", "stores=streaming", "stores=cached", NULL,
};
static const char *const gpu_backward_moves[] = {
    "keep=registers,accumulator=registers,pipeline=1",
    "keep=registers,accumulator=registers,pipeline=2",
    "keep=registers,accumulator=split,pipeline=2",
    "keep=registers,accumulator=local,pipeline=2",
    "keep=registers,accumulator=local,pipeline=1",
    "keep=reread,accumulator=local,pipeline=1,segments=1",
    "keep=registers,tile=8192,accumulator=registers,pipeline=3,row_split=exchange,segments=1,run_length=0,groups_per_cu=0",
    "keep=registers,tile=8192,accumulator=split,pipeline=2,row_split=exchange,segments=1,run_length=0,groups_per_cu=0",
    "keep=registers,tile=16384,accumulator=registers,pipeline=2,weights=late,row_split=exchange,segments=1,run_length=0,groups_per_cu=0",
    "keep=registers,tile=4096,lanes=256,accumulator=registers,pipeline=2,row_split=exchange,segments=1,run_length=4,groups_per_cu=0",
    "row_split=two_passes,chunks=0,run_length=0,groups_per_cu=0",
    "prefetch=next",
    "prefetch=none",
    "weights=early",
    "weights=late",
    "run_length=1",
    "run_length=2",
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
    "vec=8",
    "vec=16",
    "unroll=1",
    "unroll=2",
    "unroll=4",
    "run_length=4",
    "run_length=0",
    "groups_per_cu=1",
    "groups_per_cu=2",
    "groups_per_cu=16",
    "accumulator=local",
    "stores=streaming",
    "stores=cached",
    NULL,
};

static const double least_gain = 0.02;               /* the share of the time that a config must save to be kept */
static const double trial_us = 20e3, final_us = 2e5; /* durations of a measurement: in the search, and at its end */
static const double usual_seconds = 20;              /* of a search */
enum { PASSES = 2 };

/* One operation, dtype and shape on the device. */
struct search {
    struct trial trial;
    clnorm_config own, best;  /* the library's choice, the fastest one so far */
    double best_us, deadline; /* microseconds; of clock_us */
    unsigned tried, refused, wrong;
    const struct searches *searches;
};

/* The progress of all searches. */
struct searches {
    size_t done, total;
    double seconds; /* the limit of one search, without the final comparison */
    double start;   /* of clock_us */
};

static const char *const *moves_of(const struct search *search) {
    const bool backward = strstr(search->trial.operation->name, "backward") != NULL;
    if (search->trial.stopwatch->cpu)
        return backward ? cpu_backward_moves : cpu_moves;
    return backward ? gpu_backward_moves : gpu_moves;
}

/* ------------------------------------------------------------------------------------------------------ the search */

/* The best config with a move's knobs in place of its own. */
static bool moved(const clnorm_config *best, const char *move, clnorm_config *config, struct fault *fault) {
    char text[2 * CONFIG_TEXT];
    const size_t length = clnorm_config_text(best, text, sizeof text);
    (void)snprintf(text + length, sizeof text - length, ",%s", move); /* a knob's last value counts */
    return config_parse(text, config, fault);
}

/* Estimated by the mean time of the finished searches; before the first one by its limit. */
static double seconds_left(const struct searches *searches) {
    const double elapsed = (clock_us() - searches->start) * 1e-6;
    const double each = searches->done ? elapsed / (double)searches->done : searches->seconds;
    return each * (double)(searches->total - searches->done);
}

/* Shows the best time so far, and the move that is tried now. */
static void show_progress(const struct search *search, const char *move) {
    const struct searches *const searches = search->searches;
    char left[LEFT_TEXT];
    char best[US_TEXT];
    progress("%zu of %zu, %s: %s %" PRIu64 "x%" PRIu64 " %s, %s us; %s", searches->done + 1, searches->total,
             left_text(seconds_left(searches), left), search->trial.operation->name, search->trial.shape.rows,
             search->trial.shape.cols, clnorm_dtype_name(search->trial.dtype), us_text(search->best_us, best), move);
}

static bool try_move(struct search *search, const char *move, bool *improved, struct fault *fault) {
    clnorm_config config;
    double us;
    if (!moved(&search->best, move, &config, fault))
        return false;
    if (!memcmp(&config, &search->best, sizeof config))
        return true;
    show_progress(search, move);
    search->tried++;
    if (!trial_use(&search->trial, &config)) {
        search->refused++;
        return true;
    }
    if (!trial_time(&search->trial, trial_us, &us, fault))
        return false;
    if (us >= search->best_us)
        return true;
    if (!trial_is_right(&search->trial, &config)) {
        search->wrong++;
        return true;
    }
    search->best = config;
    search->best_us = us;
    *improved = true;
    return true;
}

static bool start(struct search *search, struct fault *fault) {
    show_progress(search, "building");
    if (!trial_start(&search->trial, fault))
        return false;
    clnorm_plan_config(search->trial.launch.plan, &search->own);
    search->best = search->own;
    return trial_time(&search->trial, trial_us, &search->best_us, fault);
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
    if (!trial_use(&search->trial, config))
        return fault_set(fault, EXIT_FAILED, "%s: a config that ran before is refused now", search->trial.operation->name);
    if (!trial_time(&search->trial, final_us, &us, fault))
        return false;
    *least_us = us < *least_us ? us : *least_us;
    return true;
}

/* Measures both configs again, longer and in turn, so that a config that won by chance is not kept. */
static bool compare(struct search *search, double *own_us, double *best_us, struct fault *fault) {
    *own_us = *best_us = HUGE_VAL;
    for (int turn = 0; turn < 2; turn++)
        if (!time_config(search, &search->own, own_us, fault) || !time_config(search, &search->best, best_us, fault))
            return false;
    return true;
}

/* -------------------------------------------------------------------------------------------------------- the command */

static void report(const struct search *search, double own_us, double best_us, bool kept) {
    char shape[BENCH_SHAPE_TEXT];
    char text[CONFIG_TEXT];
    char own[US_TEXT];
    char best[US_TEXT];
    clnorm_config_text(&search->best, text, sizeof text);
    print_column(search->trial.operation->name, 23);
    printf("%-11s %-5s %8s %8s %5u %7u %5u\n", bench_shape_text(&search->trial.shape, shape),
           clnorm_dtype_name(search->trial.dtype), us_text(own_us, own), us_text(best_us, best), search->tried,
           search->refused, search->wrong);
    print_wrapped("  ", kept ? text : "unchanged");
    fflush(stdout);
}

/* The row is in the file when this returns. */
static bool tune_one(const struct stopwatch *stopwatch, const struct bench_operation *operation, struct bench_shape shape,
                     clnorm_dtype dtype, const struct searches *searches, struct tuning_file *file, struct fault *fault) {
    struct search search = {.trial = {.stopwatch = stopwatch, .operation = operation, .shape = shape, .dtype = dtype},
                            .deadline = clock_us() + searches->seconds * 1e6,
                            .searches = searches};
    double own_us = 0;
    double best_us = 0;
    char key[TUNING_KEY] = "";
    bool done = start(&search, fault);
    if (done)
        clnorm_plan_tuning_key(search.trial.launch.plan, key, sizeof key);
    if (!*key)
        search.deadline = 0; /* a plan without a key takes no row of a file */
    done = done && descend(&search, fault) && compare(&search, &own_us, &best_us, fault);
    progress_end();
    if (done) {
        const bool kept = *key && best_us < own_us * (1 - least_gain);
        report(&search, own_us, best_us, kept);
        done =
            tuning_file_update(file, &stopwatch->session.device, key, kept ? &search.best : NULL, best_us / own_us, fault);
    }
    trial_free(&search.trial);
    return done;
}

static bool tune_all(const struct stopwatch *stopwatch, const struct bench_request *request, double seconds,
                     struct tuning_file *file, struct fault *fault) {
    struct searches searches = {.total = bench_count(request), .seconds = seconds, .start = clock_us()};
    printf("%-23s %-11s %-5s %8s %8s %5s %7s %5s\n", "operation", "shape", "dtype", "us", "tuned_us", "tried", "refused",
           "wrong");
    for (size_t d = 0; d < request->dtype_count; d++)
        for (size_t s = 0; s < request->shape_count; s++)
            for (size_t o = 0; o < request->operation_count; o++) {
                if (bench_columns_needed(request->operations[o], request->shapes[s].cols))
                    continue;
                if (!tune_one(stopwatch, request->operations[o], request->shapes[s], request->dtypes[d], &searches, file,
                              fault))
                    return false;
                searches.done++;
            }
    return true;
}

static bool tune_device(struct bench_request *request, double seconds, struct tuning_file *file, struct fault *fault) {
    struct stopwatch stopwatch;
    bool done = stopwatch_open(&stopwatch, request->device, NULL, fault);
    if (done) {
        device_print_line("device ", &stopwatch.session.device);
        bench_complete(request, stopwatch.cpu);
        done = tune_all(&stopwatch, request, seconds, file, fault);
        if (done)
            bench_note_skipped(request);
    }
    stopwatch_close(&stopwatch);
    return done;
}

static bool run_tune(struct bench_request *request, double seconds, const char *path, bool force, struct fault *fault) {
    struct tuning_file file;
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    if (!(seconds > 0))
        return fault_set(fault, EXIT_REQUEST, "--seconds %g: expected more than 0", seconds);
    const clnorm_status status = clnorm_device_select(request->device, &device);
    if (status)
        return fault_library(fault, status, "device");
    bool done = tuning_file_read(&file, path, &device, force, fault);
    if (done && setenv("CLNORM_TUNING", "0", 1)) /* the search starts from the library's own choice */
        done = fault_set(fault, EXIT_FAILED, "CLNORM_TUNING cannot be set");
    done = done && tune_device(request, seconds, &file, fault);
    if (done)
        printf("%s: %zu row%s\n", file.path, tuning_file_rows(&file), plural(tuning_file_rows(&file)));
    tuning_file_free(&file);
    return done;
}

static const char epilogue[] =
    "Operations, shapes and dtypes are those of `clnorm bench`. A result is for the columns of its shape, and for "
    "few rows alone where x has at most 64 KiB for each compute unit. A faster config is compared with a double "
    "reference before it counts. It is written at once to a text file of the device, which programs read when they "
    "create a context; CLNORM_TUNING=0 keeps them from reading it.\n"
    "A file of another device or driver, or one that the library does not understand, is refused without --force.\n"
    "--grid measures at each width the configs that the library's model ranks first, and writes rows for "
    "src/config/database as it finds them. It skips rows that the file already has, so that an interrupted grid can "
    "continue; the file's match line must be that of the device.\n";

/* Refuses options that belong to the other mode. */
static bool check_mode(bool dense, const struct grid_request *grid, const char *shapes, const struct command_line *line,
                       struct fault *fault) {
    const char *const of_grid = grid->widths                           ? "widths"
                                : grid->bytes                          ? "bytes"
                                : command_line_has(line, "candidates") ? "candidates"
                                : command_line_has(line, "jobs")       ? "jobs"
                                                                       : NULL;
    const char *const of_search = shapes ? "shapes" : command_line_has(line, "seconds") ? "seconds" : NULL;
    if (dense && of_search)
        return fault_set(fault, EXIT_REQUEST, "--%s: expected no --grid", of_search);
    return dense || !of_grid || fault_set(fault, EXIT_REQUEST, "--%s: expected --grid too", of_grid);
}

int tune_command(int argc, const char **argv, struct fault *fault) {
    struct bench_request request = {0};
    char *shapes = NULL;
    char *dtypes = NULL;
    char *out = NULL;
    double seconds = usual_seconds;
    struct grid_request grid = {.jobs = 1};
    int force = 0;
    int dense = 0;
    const struct poptOption table[] = {
        {"shapes", '\0', POPT_ARG_STRING, &shapes, 0, "Rows and columns (usual ones for the device)", "MxN,..."},
        {"dtypes", '\0', POPT_ARG_STRING, &dtypes, 0, "Element types (bf16,f32; on CPUs f32, but for --grid)", "DT,..."},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Tune this device; see clnorm select --help", "SELECTOR"},
        {"seconds", '\0', POPT_ARG_DOUBLE, &seconds, 0, "Limit of each search (20)", "S"},
        {"out", '\0', POPT_ARG_STRING, &out, 0, "Write this file, not the one that programs read", "FILE"},
        {"force", 'f', POPT_ARG_NONE, &force, 0, "Replace a file that this device would not use", NULL},
        {"grid", '\0', POPT_ARG_NONE, &dense, 0, "Measure many widths, for the library's database, into --out", NULL},
        {"widths", '\0', POPT_ARG_STRING, &grid.widths, 0, "--grid: widths (hidden sizes, powers of two, odd ones)",
         "N,..."},
        {"bytes", '\0', POPT_ARG_STRING, &grid.bytes, 0, "--grid: bytes of x, for many and for few rows (64M,8M)", "N,..."},
        {"candidates", '\0', POPT_ARG_INT, &grid.candidates, 0, "--grid: configs to measure at each width (12)", "N"},
        {"jobs", '\0', POPT_ARG_INT, &grid.jobs, 1, "--grid: compile ahead in N processes (1)", "N"},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OP...] [OPTION...]", epilogue, table, fault))
        return fault->code;
    grid.force = force;
    const bool done =
        line.help ||
        (check_mode(dense, &grid, shapes, &line, fault) && bench_read(&request, &line, shapes, dtypes, fault) &&
         (dense ? tune_grid(&request, &grid, out, fault) : run_tune(&request, seconds, out, force, fault)));
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
