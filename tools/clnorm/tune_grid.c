#include "tune_grid.h"

#include <errno.h>
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
#include "report.h"
#include "trial.h"
#include "widths.h"

enum { MOST_SIZES = 4, MOST_CANDIDATES = 32, USUAL_CANDIDATES = 12, MOST_JOBS = 64, KEY = 96, LINE = 512 };

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
    FILE *file;
    char *rows; /* the rows of the file, each after a newline; of a new row only its key */
    double start;
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

/* ------------------------------------------------------------------------------------------------------------ the file */

/* The line of a database file whose terms match the device. */
static const char *match_line(const clnorm_device_info *device, char text[LINE]) {
    const char *const platform = device->family == CLNORM_PLATFORM_NVIDIA ? "nvidia"
                                 : device->family == CLNORM_PLATFORM_POCL ? "pocl"
                                 : device->family == CLNORM_PLATFORM_MESA ? "mesa"
                                                                          : "other";
    const bool nvidia = device->compute_capability != 0;
    (void)snprintf(text, LINE, "match platform=%s %s=%u", platform, nvidia ? "capability" : "vector",
                   nvidia ? device->compute_capability : device->native_vector_float);
    return text;
}

static void write_head(FILE *file, const clnorm_device_info *device) {
    char match[LINE];
    (void)fprintf(file, "# %s, driver %s, measured by clnorm tune --grid\nclnorm database 1\n%s\n", device->name,
                  device->driver, match_line(device, match));
}

/* Reads the rows of the file, and opens it for appending. */
static bool read_rows(struct grid *grid, const char *path, struct fault *fault) {
    grid->file = fopen(path, "a+e");
    if (!grid->file)
        return fault_set(fault, EXIT_REQUEST, "%s: cannot be written: %s", path, strerror(errno));
    (void)fseek(grid->file, 0, SEEK_END);
    const long size = ftell(grid->file);
    if (size < 0)
        return fault_set(fault, EXIT_REQUEST, "%s: expected a file whose rows can be read again: %s", path,
                         strerror(errno));
    grid->rows = calloc((size_t)size + 2, 1);
    if (!grid->rows)
        return fault_set(fault, EXIT_FAILED, "%s: out of memory", path);
    rewind(grid->file);
    grid->rows[0] = '\n';
    if (fread(grid->rows + 1, 1, (size_t)size, grid->file) != (size_t)size)
        return fault_set(fault, EXIT_FAILED, "%s: cannot be read", path);
    (void)fseek(grid->file, 0, SEEK_END); /* C wants it between reading and writing */
    return true;
}

/* Whether the rows of the file are of this device. */
static bool check_head(const struct grid *grid, const char *path, const clnorm_device_info *device, struct fault *fault) {
    static const char version[] = "\nclnorm database 1\n";
    char own[LINE];
    const char *const head = strstr(grid->rows, version);
    const char *const match = head ? head + sizeof version - 1 : "";
    const size_t length = strcspn(match, "\n");
    if (strncmp(match, "match ", 6) != 0 || !match[length])
        return fault_set(fault, EXIT_REQUEST, "%s: expected a file of clnorm tune --grid; --force replaces it", path);
    match_line(device, own);
    return (length == strlen(own) && !strncmp(match, own, length)) ||
           fault_set(fault, EXIT_REQUEST, "%s: '%.*s'; expected '%s', of this device; --force replaces the file", path,
                     (int)length, match, own);
}

/* Drops the contents after the first `size` bytes. */
static bool cut_file(struct grid *grid, size_t size, const char *path, struct fault *fault) {
    grid->rows[1 + size] = '\0';
    return !ftruncate(fileno(grid->file), (off_t)size) ||
           fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

/* force: a file of another device is replaced. A grid that was killed may have left a row without its end; the point is
 * measured again. */
static bool open_file(struct grid *grid, const char *path, const clnorm_device_info *device, bool force,
                      struct fault *fault) {
    if (!read_rows(grid, path, fault) || !grid->rows) /* the second is for the analyser */
        return false;
    if (grid->rows[1] && !check_head(grid, path, device, fault)) {
        if (!force || !cut_file(grid, 0, path, fault))
            return false;
        *fault = (struct fault){0};
    }
    if (!grid->rows[1])
        write_head(grid->file, device);
    const char *const end = strrchr(grid->rows, '\n');
    return !end[1] || cut_file(grid, (size_t)(end - grid->rows), path, fault);
}

static bool remember_row(struct grid *grid, const char *key, struct fault *fault) {
    const size_t length = strlen(grid->rows);
    char *const grown = realloc(grid->rows, length + strlen(key) + 3);
    if (!grown)
        return fault_set(fault, EXIT_FAILED, "out of memory for the grid's rows");
    (void)sprintf(grown + length, "\n%s:", key);
    grid->rows = grown;
    return true;
}

static bool has_row(const struct grid *grid, const char *key) {
    char start[KEY + 3];
    (void)snprintf(start, sizeof start, "\n%s:", key);
    return strstr(grid->rows, start) != NULL;
}

/* Whether a knob follows from the others, or from the number of rows, so that a row of the database leaves it out. */
static bool is_derived(const clnorm_config *config, const char *knob, uint64_t cols) {
    static const char *const always[] = {"isa", "reduce", "stores", "iterations", "chunks", NULL};
    for (int i = 0; always[i]; i++)
        if (!strcmp(knob, always[i]))
            return true;
    const bool backward = config_number(config, "groups_per_cu") != 0;
    const uint64_t tile = config_number(config, "tile"); /* group norm has none */
    if (!strcmp(knob, "tile") || !strcmp(knob, "row_split"))
        return !tile || tile == cols;
    if (!strcmp(knob, "unroll"))
        return backward || config_has(config, "keep", "registers");
    return !strcmp(knob, "run_length") && /* a long run is all rows of a work-group */
           (config_number(config, knob) > 64 || config_has(config, "accumulator", "columns") ||
            config_has(config, "accumulator", "memory"));
}

static bool write_row(struct grid *grid, const char *key, const clnorm_config *config, uint64_t cols, double us,
                      struct fault *fault) {
    char text[CONFIG_TEXT];
    char row[LINE];
    char *rest;
    int length = snprintf(row, sizeof row, "%s: ", key);
    const char *comma = "";
    clnorm_config_text(config, text, sizeof text);
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char knob[32];
        (void)snprintf(knob, sizeof knob, "%.*s", (int)strcspn(word, "="), word);
        if (is_derived(config, knob, cols))
            continue;
        length += snprintf(row + length, sizeof row - (size_t)length, "%s%s", comma, word);
        comma = ",";
    }
    char time[US_TEXT];
    if (fprintf(grid->file, "%s # %s us\n", row, us_text(us, time)) < 0 || fflush(grid->file))
        return fault_set(fault, EXIT_FAILED, "the grid's file cannot be written: %s", strerror(errno));
    return remember_row(grid, key, fault);
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
    const double each = grid->measured ? (clock_us() - grid->start) * 1e-6 / (double)grid->measured : 2;
    progress("%zu of %zu, %s: %s %" PRIu64 "x%" PRIu64 " %s", i + 1, grid->count,
             left_text(each * (double)(grid->count - i), left), grid->points[i].operation->name, grid->points[i].shape.rows,
             grid->points[i].shape.cols, clnorm_dtype_name(grid->points[i].dtype));
}

static bool measure_point(struct grid *grid, const struct stopwatch *stopwatch, size_t i, struct fault *fault) {
    const struct point *const point = &grid->points[i];
    struct trial trial = {
        .stopwatch = stopwatch, .operation = point->operation, .shape = point->shape, .dtype = point->dtype};
    struct timed timed[MOST_CANDIDATES + 1];
    char key[KEY] = "";
    bool found = false;
    show_progress(grid, i);
    bool done = trial_start(&trial, fault);
    if (done)
        clnorm_plan_tuning_key(trial.launch.plan, key, sizeof key);
    if (done && *key && !has_row(grid, key)) {
        const size_t count = candidates_of(grid, trial.launch.plan, timed);
        done = time_candidates(&trial, timed, count, fault) && settle(&trial, timed, count, &found, fault) &&
               (!found || write_row(grid, key, &timed[0].config, point->shape.cols, timed[0].us, fault));
        grid->measured++;
    } else {
        grid->skipped++;
    }
    trial_free(&trial);
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
        struct job description = {0};
        clnorm_plan *plan = NULL;
        struct timed timed[MOST_CANDIDATES + 1];
        size_t count = 0;
        if (bench_job(&description, point->operation, point->shape, point->dtype, NULL, &fault) &&
            !description.operation->plan(session.context, &description, &plan))
            count = candidates_of(grid, plan, timed);
        clnorm_plan_destroy(plan);
        for (size_t k = 1; k < count; k++) {
            char text[CONFIG_TEXT];
            clnorm_config_text(&timed[k].config, text, sizeof text);
            job_free(&description);
            plan = NULL;
            if (bench_job(&description, point->operation, point->shape, point->dtype, text, &fault))
                (void)description.operation->plan(session.context, &description, &plan);
            clnorm_plan_destroy(plan);
        }
        job_free(&description);
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
    if (!path)
        return fault_set(fault, EXIT_REQUEST, "--grid: expected --out FILE too");
    if (options->candidates < 0 || options->candidates > MOST_CANDIDATES || options->jobs < 1 || options->jobs > MOST_JOBS)
        return fault_set(fault, EXIT_REQUEST, "--candidates %d, --jobs %d: expected 0 to %d, and 1 to %d",
                         options->candidates, options->jobs, MOST_CANDIDATES, MOST_JOBS);
    grid->candidates = options->candidates ? (size_t)options->candidates : USUAL_CANDIDATES;
    bench_complete(request, false); /* the dtypes of GPUs, on any device */
    return widths_read(options->widths ? options->widths : "grid", "widths", &request->sweep, fault) &&
           numbers_read(options->bytes ? options->bytes : "64M,8M", "bytes", grid->sizes, MOST_SIZES, &grid->size_count,
                        fault);
}

static bool measure_all(struct grid *grid, const char *device, const char *path, bool force, struct fault *fault) {
    struct stopwatch stopwatch;
    bool done =
        stopwatch_open(&stopwatch, device, NULL, fault) && open_file(grid, path, &stopwatch.session.device, force, fault);
    grid->start = clock_us();
    for (size_t i = 0; done && i < grid->count; i++)
        done = measure_point(grid, &stopwatch, i, fault);
    progress_end();
    if (done)
        printf("%s: %zu points measured, %zu skipped that had a row or have no knobs\n", path, grid->measured,
               grid->skipped);
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
    done = done && measure_all(&grid, request->device, path, options->force, fault);
    if (done)
        bench_note_skipped(&whole);
    stop_compilers(processes, jobs);
    if (grid.file && fclose(grid.file) && done)
        done = fault_set(fault, EXIT_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    free(grid.points);
    free(grid.rows);
    return done;
}
