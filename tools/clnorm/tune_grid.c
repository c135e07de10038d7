#include "tune_grid.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "config_text.h"
#include "grid_file.h"
#include "report.h"
#include "trial.h"
#include "tuning_file.h"
#include "widths.h"

enum { MOST_SIZES = 4, MOST_CANDIDATES = 32, USUAL_CANDIDATES = 12, MOST_JOBS = 64 };

static const double trial_us = 10e3, final_us = 40e3; /* durations of a first and of a second measurement */
static const double close_enough = 1.04;              /* times the best time: such candidates are measured again */

/* A point of the grid, which gets a row of the file. */
struct point {
    const struct bench_operation *operation;
    clnorm_dtype dtype;
    struct bench_shape shape;
};

struct grid {
    uint64_t sizes[MOST_SIZES];
    size_t size_count;
    struct point *points;
    size_t count, measured, skipped;
    size_t candidates;
    struct grid_file file;
    double spent_us; /* on measured points */
    struct bench_left_out noted;
};

/* ---------------------------------------------------------------------------------------------------------- the points */

/* Without the points that their operation skips. */
static bool make_points(struct grid *grid, const struct bench_request *request, struct fault *fault) {
    const size_t most = bench_count(request) * grid->size_count;
    grid->points = calloc(most + 1, sizeof *grid->points); /* calloc of 0 bytes may return NULL */
    if (!grid->points)
        return fault_set(fault, EXIT_FAILED, "out of memory for the grid");
    for (size_t b = 0; b < grid->size_count; b++)
        for (size_t o = 0; o < request->operation_count; o++)
            for (size_t d = 0; d < request->dtype_count; d++)
                for (size_t w = 0; w < request->sweep.count; w++) {
                    const uint64_t width = request->sweep.width[w];
                    if (bench_columns_needed(request->operations[o], width))
                        continue;
                    grid->points[grid->count++] = (struct point){
                        request->operations[o], request->dtypes[d],
                        bench_shape_of_bytes(request->operations[o], grid->sizes[b], width, request->dtypes[d])};
                }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- one point */

/* A candidate's time; HUGE_VAL where it does not run. */
struct timed {
    clnorm_config config;
    double us;
};

static int faster_first(const void *a, const void *b) {
    const double left = ((const struct timed *)a)->us;
    const double right = ((const struct timed *)b)->us;
    return (left > right) - (left < right);
}

static bool time_candidates(struct trial *trial, struct timed *timed, size_t count, struct fault *fault) {
    for (size_t i = 0; i < count; i++) {
        timed[i].us = HUGE_VAL;
        if (trial_use(trial, &timed[i].config) && !trial_time(trial, trial_us, &timed[i].us, fault))
            return false;
    }
    qsort(timed, count, sizeof *timed, faster_first);
    return true;
}

/* Measures the fastest candidates again, for longer. *found: timed[0] is then the fastest one that agrees with the
 * reference. */
static bool settle(struct trial *trial, struct timed *timed, size_t count, bool *found, struct fault *fault) {
    size_t near = 0;
    while (near < count && timed[near].us <= close_enough * timed[0].us && timed[near].us < HUGE_VAL)
        near++;
    for (size_t i = 0; i < near; i++)
        if (trial_use(trial, &timed[i].config) && !trial_time(trial, final_us, &timed[i].us, fault))
            return false;
    qsort(timed, near, sizeof *timed, faster_first);
    for (size_t i = 0; i < count && timed[i].us < HUGE_VAL; i++)
        if (trial_use(trial, &timed[i].config) && trial_is_right(trial, &timed[i].config)) {
            timed[0] = timed[i];
            *found = true;
            return true;
        }
    return true;
}

/* Lists the library's choice and the configs that the model ranks first. Returns their number. */
static size_t candidates_of(const struct grid *grid, const clnorm_plan *plan, struct timed timed[MOST_CANDIDATES + 1]) {
    clnorm_config ranked[MOST_CANDIDATES];
    size_t count = clnorm_plan_candidates(plan, ranked, MOST_CANDIDATES);
    count = count < grid->candidates ? count : grid->candidates;
    clnorm_plan_config(plan, &timed[0].config);
    for (size_t i = 0; i < count; i++)
        timed[i + 1].config = ranked[i];
    return count + 1;
}

static void show_progress(const struct grid *grid, size_t i) {
    char left[LEFT_TEXT];
    const double each = grid->measured ? grid->spent_us * 1e-6 / (double)grid->measured : 2;
    progress("%zu of %zu, %s: %s %" PRIu64 "x%" PRIu64 " %s", i + 1, grid->count,
             left_text(each * (double)(grid->count - i), left), grid->points[i].operation->name, grid->points[i].shape.rows,
             grid->points[i].shape.cols, clnorm_dtype_name(grid->points[i].dtype));
}

/* Whether a plan of the point has a key, of which the file has no row. That takes no tensors. */
static bool needs_row(const struct grid *grid, const struct session *session, const struct point *point,
                      char key[TUNING_KEY], struct fault *fault) {
    clnorm_plan *plan;
    (void)bench_plan(session, point->operation, point->shape, point->dtype, NULL, &plan, fault);
    clnorm_plan_tuning_key(plan, key, TUNING_KEY);
    clnorm_plan_destroy(plan);
    return *key && !grid_file_has(&grid->file, key);
}

static bool measure_point(struct grid *grid, const struct bench_request *request, const struct stopwatch *stopwatch,
                          size_t i, struct fault *fault) {
    const struct point *const point = &grid->points[i];
    struct trial trial = {
        .stopwatch = stopwatch, .operation = point->operation, .shape = point->shape, .dtype = point->dtype};
    struct timed timed[MOST_CANDIDATES + 1];
    char key[TUNING_KEY];
    bool found = false;
    show_progress(grid, i);
    if (!needs_row(grid, &stopwatch->session, point, key, fault)) {
        grid->skipped++;
        return !fault->code ||
               bench_leave_out(request, (struct bench_left_out){point->operation, point->dtype}, &grid->noted, fault);
    }
    const double start = clock_us();
    bool done = trial_start(&trial, fault);
    const size_t count = done ? candidates_of(grid, trial.launch.plan, timed) : 0;
    done = done && time_candidates(&trial, timed, count, fault) && settle(&trial, timed, count, &found, fault) &&
           (!found || grid_file_add(&grid->file, key, &timed[0].config, point->shape.cols, timed[0].us, fault));
    trial_free(&trial);
    grid->measured++;
    grid->spent_us += clock_us() - start;
    return done;
}

/* ------------------------------------------------------------------------------------------------------ compiling ahead */

/* Compiles the candidates of every jobs-th point, beginning with number `job`, into the caches of the library and of the
 * driver. */
static void compile_points(const struct grid *grid, const char *device, size_t job, size_t jobs) {
    struct session session;
    struct fault fault = {0};
    if (!session_open(&session, device, 0, NULL, &fault))
        return;
    for (size_t i = job; i < grid->count; i += jobs) {
        const struct point *const point = &grid->points[i];
        clnorm_plan *plan;
        struct timed timed[MOST_CANDIDATES + 1];
        const bool planned = !bench_plan(&session, point->operation, point->shape, point->dtype, NULL, &plan, &fault);
        const size_t count = planned ? candidates_of(grid, plan, timed) : 0;
        clnorm_plan_destroy(plan);
        for (size_t k = 1; k < count; k++) {
            char text[CONFIG_TEXT];
            clnorm_config_text(&timed[k].config, text, sizeof text);
            (void)bench_plan(&session, point->operation, point->shape, point->dtype, text, &plan, &fault);
            clnorm_plan_destroy(plan);
        }
    }
    session_close(&session);
}

/* Ends this process too when its parent ends, and when that has ended already. */
static void end_with(pid_t parent) {
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (getppid() != parent)
        _exit(EXIT_FAILED);
}

/* Must come before any call of OpenCL, which does not survive a fork. Returns the number of processes. */
static size_t start_compilers(const struct grid *grid, const char *device, size_t jobs, pid_t processes[MOST_JOBS]) {
    const pid_t parent = getpid();
    size_t count = 0;
    for (size_t i = 0; jobs > 1 && i < jobs; i++) {
        const pid_t process = fork();
        if (process == 0) {
            end_with(parent);
            compile_points(grid, device, i, jobs);
            _exit(0);
        }
        if (process > 0)
            processes[count++] = process;
    }
    return count;
}

static void stop_compilers(const pid_t *processes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)kill(processes[i], SIGTERM);
        (void)waitpid(processes[i], NULL, 0);
    }
}

/* --------------------------------------------------------------------------------------------------------- the command */

/* Adds the usual operations and dtypes, and the widths, to the request. */
static bool read_options(struct grid *grid, struct bench_request *request, const struct grid_request *options,
                         const char *path, struct fault *fault) {
    if (!path || !*path)
        return fault_set(fault, EXIT_REQUEST, "--grid: expected --out FILE too");
    if (options->candidates > MOST_CANDIDATES)
        return fault_set(fault, EXIT_REQUEST, "--candidates %d: expected 0 to %d; 0: the usual %d", options->candidates,
                         MOST_CANDIDATES, USUAL_CANDIDATES);
    if (options->jobs > MOST_JOBS)
        return fault_set(fault, EXIT_REQUEST, "--jobs %d: expected 1 to %d", options->jobs, MOST_JOBS);
    grid->candidates = options->candidates ? (size_t)options->candidates : USUAL_CANDIDATES;
    bench_complete(request, false); /* the dtypes of GPUs, on any device */
    return widths_read(options->widths ? options->widths : "grid", "widths", &request->sweep, fault) &&
           numbers_read(options->bytes ? options->bytes : "64M,8M", "bytes", grid->sizes, MOST_SIZES, &grid->size_count,
                        fault);
}

static bool measure_all(struct grid *grid, const struct bench_request *request, const char *path, bool force,
                        struct fault *fault) {
    struct stopwatch stopwatch;
    bool done = stopwatch_open(&stopwatch, request->device, NULL, fault) &&
                grid_file_open(&grid->file, path, &stopwatch.session.device, force, fault);
    for (size_t i = 0; done && i < grid->count; i++)
        done = measure_point(grid, request, &stopwatch, i, fault);
    progress_end();
    done = grid_file_close(&grid->file, done, fault) && done;
    if (done)
        printf("%s: %zu point%s measured, %zu skipped that had a row or have no knobs\n", path, grid->measured,
               plural(grid->measured), grid->skipped);
    stopwatch_close(&stopwatch);
    return done;
}

bool tune_grid(const struct bench_request *request, const struct grid_request *options, const char *path,
               struct fault *fault) {
    struct bench_request whole = *request;
    struct grid grid = {0};
    pid_t processes[MOST_JOBS];
    bool done = read_options(&grid, &whole, options, path, fault) && make_points(&grid, &whole, fault);
    const size_t jobs = done ? start_compilers(&grid, request->device, (size_t)options->jobs, processes) : 0;
    done = done && measure_all(&grid, &whole, path, options->force, fault);
    if (done)
        bench_note_skipped(&whole);
    stop_compilers(processes, jobs);
    free(grid.points);
    return done;
}
