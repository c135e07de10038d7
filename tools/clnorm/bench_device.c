#include "bench_device.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "bench_output.h"
#include "chain.h"
#include "chart.h"
#include "config_text.h"
#include "copies.h"
#include "output_file.h"
#include "report.h"
#include "sweep_chart.h"

enum { MOST_RUNS = 2000 }; /* of one measurement, unless --runs is larger */

/* The device, and where results go. */
struct bench {
    struct bench_request request; /* complete once the device is known */
    struct bench_output json;
    struct chart chart;
    struct stopwatch stopwatch;
    struct bench_left_out noted;
};

/* One operation, shape and dtype. */
struct measurement {
    const struct bench_operation *operation;
    struct bench_shape shape;
    clnorm_dtype dtype;
    struct job job;
    struct launch launch;
    uint64_t least_bytes;
    struct copies copies; /* of least_bytes */
    struct chain chain;   /* without --unfused it has no steps */
    bool warm;            /* the warm-up is over: times are recorded */
    struct samples event, wall, chain_event, chain_wall;
};

/* The JSON file exists by now, so that two names of it are found out. */
static bool check_svg(const struct bench *bench, struct fault *fault) {
    const struct bench_request *const request = &bench->request;
    const bool file = bench->json.stream && bench->json.stream != stdout;
    if (file && request->svg && output_file_is(request->svg, request->json))
        return fault_set(fault, EXIT_REQUEST, "--json %s, --svg %s: expected two files", request->json, request->svg);
    return !request->svg || output_file_check(request->svg, fault);
}

static bool open_bench(struct bench *bench, const struct bench_request *request, struct fault *fault) {
    *bench = (struct bench){.request = *request};
    if (!bench_output_open(&bench->json, request->json, fault) || !check_svg(bench, fault) ||
        !stopwatch_open(&bench->stopwatch, request->device, NULL, fault))
        return false;
    bench->stopwatch.median |= request->median;
    bench_complete(&bench->request, bench->stopwatch.cpu);
    return true;
}

/* good: every result is there. */
static bool close_bench(struct bench *bench, bool good, struct fault *fault) {
    stopwatch_close(&bench->stopwatch);
    chart_free(&bench->chart);
    return bench_output_close(&bench->json, good, fault) && good;
}

/* ---------------------------------------------------------------------------------------------------- one measurement */

static bool record(const struct measurement *m, struct samples *samples, double us, struct fault *fault) {
    return !m->warm || samples_add(samples, us, fault);
}

static bool time_operation(const struct bench *bench, struct measurement *m, struct fault *fault) {
    struct lap lap;
    return stopwatch_time(&bench->stopwatch, &m->launch, &lap, fault) && record(m, &m->wall, lap.host_us, fault) &&
           record(m, &m->event, lap.device_us, fault);
}

static bool time_chain(const struct bench *bench, struct measurement *m, struct fault *fault) {
    struct lap lap;
    return !m->chain.steps ||
           (chain_time(&m->chain, &bench->stopwatch, &lap, fault) && record(m, &m->chain_wall, lap.host_us, fault) &&
            record(m, &m->chain_event, lap.device_us, fault));
}

static bool time_copies(const struct bench *bench, struct measurement *m, struct fault *fault) {
    return copies_time(&m->copies, &bench->stopwatch, m->warm, fault);
}

static bool time_each(const struct bench *bench, struct measurement *m, struct fault *fault) {
    return time_operation(bench, m, fault) && time_copies(bench, m, fault) && time_chain(bench, m, fault);
}

typedef bool (*timed_fn)(const struct bench *bench, struct measurement *m, struct fault *fault);

/* Repeats until there are --runs runs that took --seconds. Stops earlier after BENCH_MOST_SECONDS, and after MOST_RUNS
 * unless --runs is larger. */
static bool repeat(const struct bench *bench, struct measurement *m, timed_fn timed, struct fault *fault) {
    m->warm = false;
    for (int i = 0; i < bench->request.warm_up; i++)
        if (!timed(bench, m, fault))
            return false;
    m->warm = true;
    const int runs = bench->request.runs;
    const double start = clock_us(), least_time = bench->request.seconds * 1e6, most_time = BENCH_MOST_SECONDS * 1e6;
    for (int i = 0; i < runs || i < MOST_RUNS; i++) {
        const double elapsed = clock_us() - start;
        if (i > 0 && ((i >= runs && elapsed > least_time) || elapsed > most_time))
            break;
        if (!timed(bench, m, fault))
            return false;
    }
    return true;
}

/* On GPUs the operation, the copies and the separate calls run in turn, so that a disturbance affects all of them. On CPUs
 * each is repeated alone: its tensors stay in the caches, as in a program that runs nothing else. */
static bool time_all(const struct bench *bench, struct measurement *m, struct fault *fault) {
    if (!bench->stopwatch.cpu)
        return repeat(bench, m, time_each, fault);
    return repeat(bench, m, time_operation, fault) && repeat(bench, m, time_copies, fault) &&
           (!m->chain.steps || repeat(bench, m, time_chain, fault));
}

static void free_measurement(struct measurement *m) {
    launch_free(&m->launch);
    job_free(&m->job);
    copies_free(&m->copies);
    samples_free(&m->event);
    samples_free(&m->wall);
    chain_free(&m->chain);
    samples_free(&m->chain_event);
    samples_free(&m->chain_wall);
}

/* ------------------------------------------------------------------------------------------------------------- reports */

struct result {
    const char *provider;
    uint64_t bytes; /* the least traffic */
    size_t runs;
    double us, event_us, gb_s;
    struct copy_times copy; /* of the fused operation's least traffic, also for separate calls */
};

static struct result result_of(const struct stopwatch *stopwatch, struct samples *event, struct samples *wall,
                               uint64_t bytes) {
    struct result result = {
        .provider = "clnorm", .bytes = bytes, .runs = event->count, .event_us = stopwatch_of_many(stopwatch, event)};
    result.us = stopwatch->cpu ? stopwatch_of_many(stopwatch, wall) : result.event_us;
    result.gb_s = (double)bytes / result.us * 1e-3;
    return result;
}

static struct result unfused_result_of(const struct stopwatch *stopwatch, struct measurement *m,
                                       const struct copy_times *copy) {
    struct result result = result_of(stopwatch, &m->chain_event, &m->chain_wall, m->chain.bytes);
    result.provider = "clnorm_unfused";
    result.copy = *copy;
    return result;
}

/* Rounds a time to two decimals; leaves out a time that was not measured. */
static void set_us(json_t *line, const char *key, double us) {
    if (us > 0)
        json_object_set_new(line, key, json_real((double)(int64_t)(us * 100 + 0.5) / 100));
}

static json_t *steps_json(const struct chain *chain) {
    json_t *const steps = json_array();
    for (int i = 0; i < chain->steps; i++)
        json_array_append_new(steps, json_string(chain->step[i].name));
    return steps;
}

/* details: further keys of the line; the reference is stolen. */
static bool print_json(struct bench *bench, const struct measurement *m, const struct result *result, json_t *details,
                       struct fault *fault) {
    const clnorm_device_info *const device = &bench->stopwatch.session.device;
    json_t *const line =
        json_pack("{s:s, s:s, s:I, s:I, s:s}", "op", m->operation->name, "provider", result->provider, "rows",
                  (json_int_t)m->shape.rows, "cols", (json_int_t)m->shape.cols, "dtype", clnorm_dtype_name(m->dtype));
    if (m->shape.packed)
        json_object_set_new(line, "packed", json_integer(m->shape.packed));
    if (m->shape.weight_rows) {
        json_object_set_new(line, "weight_rows", json_integer(m->shape.weight_rows));
        json_object_set_new(line, "weight_repeat", json_integer(m->shape.weight_repeat ? m->shape.weight_repeat : 1));
    }
    if (m->launch.in_place)
        json_object_set_new(line, "in_place", json_true());
    set_us(line, "us", result->us);
    set_us(line, "limit_us", result->copy.limit_us);
    json_object_set_new(line, "gb_s", json_real((double)(int64_t)(result->gb_s * 10 + 0.5) / 10));
    json_object_set_new(line, "bytes", json_integer((json_int_t)result->bytes));
    set_us(line, "event_us", result->event_us);
    set_us(line, "copy_us", result->copy.kernel_us);
    set_us(line, "copy_buffer_us", result->copy.buffer_us);
    set_us(line, "memcpy_us", result->copy.host_us);
    bench_shape_json(&m->shape, line);
    json_object_set_new(line, "runs", json_integer((json_int_t)result->runs));
    json_object_set_new(line, "device", json_string(device->name));
    json_object_set_new(line, "driver", json_string(device->driver));
    json_object_set_new(line, "platform", json_string(device->platform_name));
    json_object_update(line, details);
    json_decref(details);
    return bench_output_line(&bench->json, line, JSON_REAL_PRECISION(12), fault);
}

static void print_row(const struct measurement *m, const char *name, const struct result *result) {
    char shape[BENCH_SHAPE_TEXT];
    char us[US_TEXT];
    char limit_us[US_TEXT];
    const double ratio = result->us / result->copy.limit_us;
    print_column(name, 23);
    printf("%-11s %-5s %7.2f %8s %8s %5.*f %6.1f\n", bench_shape_text(&m->shape, shape), clnorm_dtype_name(m->dtype),
           (double)result->bytes * 1e-6, us_text(result->us, us), us_text(result->copy.limit_us, limit_us),
           ratio < 99.995 ? 2 : 0, ratio, result->gb_s);
    fflush(stdout);
}

/* us: the time of the operation, or of its separate calls. */
static bool add_to_chart(struct bench *bench, const struct measurement *m, double us, double limit_us, bool unfused,
                         struct fault *fault) {
    const struct chart_point point = {.operation = m->operation->name,
                                      .dtype = m->dtype,
                                      .unfused = unfused,
                                      .shape = m->shape,
                                      .gb_s = (double)m->least_bytes / us * 1e-3,
                                      .limit_gb_s = (double)m->least_bytes / limit_us * 1e-3};
    return !bench->request.svg || chart_add(&bench->chart, &point, fault);
}

static bool report_unfused(struct bench *bench, struct measurement *m, const struct result *fused, struct fault *fault) {
    const struct result result = unfused_result_of(&bench->stopwatch, m, &fused->copy);
    if (bench->json.stream != stdout) {
        print_row(m, "  in separate calls", &result);
        for (int i = 0; i < m->chain.steps; i++)
            printf("%s%s", i ? ", " : "  = ", m->chain.step[i].name);
        printf(": %.2f times the time, %.2f times the bytes\n", result.us / fused->us,
               (double)result.bytes / (double)fused->bytes);
    }
    return (!bench->json.stream ||
            print_json(bench, m, &result, json_pack("{s:o}", "steps", steps_json(&m->chain)), fault)) &&
           add_to_chart(bench, m, result.us, fused->copy.limit_us, true, fault);
}

static bool report(struct bench *bench, struct measurement *m, struct fault *fault) {
    struct result result = result_of(&bench->stopwatch, &m->event, &m->wall, m->least_bytes);
    result.copy = copies_times(&m->copies, &bench->stopwatch);
    clnorm_config config;
    clnorm_plan_config(m->launch.plan, &config);
    if (bench->json.stream != stdout)
        print_row(m, m->operation->name, &result);
    return (!bench->json.stream ||
            print_json(bench, m, &result, json_pack("{s:o}", "config", config_json(&config)), fault)) &&
           add_to_chart(bench, m, result.us, result.copy.limit_us, false, fault) &&
           (!m->chain.steps || report_unfused(bench, m, &result, fault));
}

/* Skips an operation that does not take the columns, or refuses the dtype. */
static bool measure(struct bench *bench, const struct bench_operation *operation, struct bench_shape shape,
                    clnorm_dtype dtype, struct fault *fault) {
    struct measurement m = {.operation = operation, .shape = shape, .dtype = dtype};
    char text[BENCH_SHAPE_TEXT];
    if (bench_columns_needed(operation, shape.cols))
        return true;
    progress("%s %s %s", operation->name, bench_shape_text(&shape, text), clnorm_dtype_name(dtype));
    bool done = bench_job(&m.job, operation, shape, dtype, bench->request.config, fault);
    m.least_bytes = bench_bytes(operation, &m.job);
    done = done && launch_prepare(&m.launch, &bench->stopwatch.session, &m.job, fault);
    if (!done && bench_leave_out(&bench->request, (struct bench_left_out){operation, dtype}, &bench->noted, fault)) {
        progress_end();
        free_measurement(&m);
        return true;
    }
    if (done && bench->request.in_place)
        launch_in_place(&m.launch, &m.job);
    done = done && stopwatch_fill(&bench->stopwatch, &m.launch, &m.job, fault) &&
           copies_make(&m.copies, &bench->stopwatch, m.least_bytes, fault) &&
           (!bench->request.unfused || !*operation->unfused ||
            chain_make(&m.chain, &bench->stopwatch, operation, shape, dtype, fault)) &&
           time_all(bench, &m, fault);
    progress_end();
    done = done && report(bench, &m, fault);
    free_measurement(&m);
    return done;
}

static bool measure_sweep(struct bench *bench, struct fault *fault) {
    const struct bench_request *const request = &bench->request;
    for (size_t o = 0; o < request->operation_count; o++)
        for (size_t d = 0; d < request->dtype_count; d++)
            for (size_t w = 0; w < request->sweep.count; w++) {
                const struct bench_shape shape = bench_shape_of_bytes(request->operations[o], request->sweep_bytes,
                                                                      request->sweep.width[w], request->dtypes[d]);
                if (!measure(bench, request->operations[o], shape, request->dtypes[d], fault))
                    return false;
            }
    return true;
}

static bool measure_shapes(struct bench *bench, struct fault *fault) {
    const struct bench_request *const request = &bench->request;
    for (size_t d = 0; d < request->dtype_count; d++)
        for (size_t s = 0; s < request->shape_count; s++)
            for (size_t o = 0; o < request->operation_count; o++)
                if (!measure(bench, request->operations[o], request->shapes[s], request->dtypes[d], fault))
                    return false;
    return true;
}

static bool measure_all(struct bench *bench, struct fault *fault) {
    const bool done = (bench->request.sweep.count ? measure_sweep : measure_shapes)(bench, fault);
    if (done)
        bench_note_skipped(&bench->request);
    return done;
}

static bool draw(const struct bench *bench, struct fault *fault) {
    const clnorm_device_info *const device = &bench->stopwatch.session.device;
    char title[700];
    struct output_file file;
    if (!bench->request.svg)
        return true;
    if (!output_file_open(&file, bench->request.svg, fault))
        return false;
    (void)snprintf(title, sizeof title, "libclnorm on %s (%s, driver %.60s)", device->name, device->platform_name,
                   device->driver);
    (bench->request.sweep.count ? sweep_chart_write : chart_write)(&bench->chart, title, file.stream);
    return output_file_close(&file, true, fault);
}

bool bench_device(const struct bench_request *request, struct fault *fault) {
    struct bench bench;
    bool done = open_bench(&bench, request, fault);
    if (done && bench.json.stream != stdout) {
        device_print_line("device ", &bench.stopwatch.session.device);
        printf("%-23s %-11s %-5s %7s %8s %8s %5s %6s\n", "operation", "shape", "dtype", "MB", "us", "limit_us", "ratio",
               "GB/s");
    }
    done = done && measure_all(&bench, fault) && draw(&bench, fault);
    return close_bench(&bench, done, fault);
}
