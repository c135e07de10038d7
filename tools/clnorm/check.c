#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check_cases.h"
#include "check_spills.h"
#include "check_worker.h"
#include "commands.h"
#include "options.h"
#include "report.h"

/* The outcomes of the cases so far. */
struct tally {
    bool verbose;
    int every, count, outcomes[3];
    json_t *cases; /* NULL: text */
    clnorm_device_info device;
};

static void record(struct tally *tally, int index, enum outcome outcome, const char *reason) {
    static const char *const words[] = {"right", "wrong", "absent"};
    const struct check_case check_case = check_case_of(index);
    char label[16];
    char text[CASE_TEXT];
    char line[CASE_TEXT + sizeof(struct fault)];
    tally->outcomes[outcome]++;
    check_case_text(&check_case, text);
    if (tally->cases) {
        json_array_append_new(tally->cases,
                              json_pack("{s:s, s:s, s:s}", "case", text, "outcome", words[outcome], "reason", reason));
        return;
    }
    if (!tally->verbose && outcome != OUTCOME_WRONG)
        return;
    (void)snprintf(label, sizeof label, "%-6s  ", outcome == OUTCOME_WRONG ? "WRONG" : words[outcome]);
    (void)snprintf(line, sizeof line, "%s%s%s", text, *reason ? ": " : "", reason);
    print_wrapped(label, line);
    fflush(stdout);
}

static void take_device(struct tally *tally, const clnorm_device_info *device) {
    const bool first = !*tally->device.name;
    tally->device = *device;
    if (!first || tally->cases)
        return;
    device_print_line("device ", device);
    fflush(stdout);
}

static void show_running(const struct tally *tally, int index) {
    if (index >= tally->count)
        return;
    char text[CASE_TEXT];
    const struct check_case check_case = check_case_of(index);
    progress("%d of %d: %s", index + 1, tally->count, check_case_text(&check_case, text));
}

/* Reads the events of a process that begins with the case *next, until it ends. *next: the case to continue with where
 * the driver ended the process; otherwise tally->count. A case runs from the end of the one before, so that a process
 * that ends between two is blamed on the second. */
static bool follow(struct tally *tally, struct check_worker *worker, int *next, struct fault *fault) {
    struct check_event event;
    char ending[ENDING_TEXT];
    int running = *next;
    bool opened = false;
    while (check_worker_next(worker, &event)) {
        if (event.kind == CHECK_OPENED) {
            opened = true;
            take_device(tally, &event.device);
        } else if (event.kind == CHECK_FAILED)
            *fault = event.fault;
        else if (event.kind == CHECK_ENDS) {
            progress_end();
            record(tally, event.index, event.outcome, event.fault.text);
            running = event.index + tally->every;
        }
        if (opened)
            show_running(tally, running);
    }
    progress_end();
    check_worker_end(worker, ending);
    *next = tally->count;
    if (*fault->text)
        return false;
    if (!opened || running >= tally->count)
        return (opened && !*ending) || fault_set(fault, EXIT_FAILED, "check: the driver ended the process %s case: %s",
                                                 opened ? "after the last" : "before any", ending);
    char reason[ENDING_TEXT + 64];
    (void)snprintf(reason, sizeof reason, "the driver ended the process: %s", *ending ? ending : "exit code 0");
    record(tally, running, OUTCOME_WRONG, reason);
    *next = running + tally->every;
    return true;
}

static bool try_all(struct tally *tally, const char *selector, struct fault *fault) {
    for (int next = 0; next < tally->count;) {
        struct check_worker worker;
        if (!check_worker_start(&worker, selector, next, tally->every, fault) || !follow(tally, &worker, &next, fault))
            return false;
    }
    return true;
}

static bool print_json(struct tally *tally, struct fault *fault) {
    const clnorm_device_info *const device = &tally->device;
    char date[16] = "";
    const time_t now = time(NULL);
    struct tm when;
    if (gmtime_r(&now, &when))
        (void)strftime(date, sizeof date, "%Y-%m-%d", &when);
    json_t *const object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:O}", "version", clnorm_version(), "date", date, "device",
                  device->name, "driver", device->driver, "platform", device->platform_name, "platform_version",
                  device->platform_version, "right", tally->outcomes[OUTCOME_RIGHT], "wrong",
                  tally->outcomes[OUTCOME_WRONG], "absent", tally->outcomes[OUTCOME_ABSENT], "cases", tally->cases);
    return json_print(object, fault);
}

static bool report(struct tally *tally, struct fault *fault) {
    const int wrong = tally->outcomes[OUTCOME_WRONG];
    if (tally->cases && !print_json(tally, fault))
        return false;
    if (!tally->cases)
        printf("check: %d right, %d wrong, %d of types or knobs that this device lacks\n", tally->outcomes[OUTCOME_RIGHT],
               wrong, tally->outcomes[OUTCOME_ABSENT]);
    return !wrong || fault_set(fault, EXIT_FAILED, "check: %d of %d cases are wrong", wrong,
                               wrong + tally->outcomes[OUTCOME_RIGHT] + tally->outcomes[OUTCOME_ABSENT]);
}

static bool run_check(struct command_line *line, const char *selector, struct tally *tally, bool json,
                      struct fault *fault) {
    const char *const operation = command_line_next(line);
    if (operation)
        return fault_set(fault, EXIT_REQUEST, "'%s': expected --spills too; without it every operation is checked",
                         operation);
    tally->count = check_case_count();
    tally->cases = json ? json_array() : NULL;
    const bool done = try_all(tally, selector, fault) && report(tally, fault);
    json_decref(tally->cases);
    return done;
}

/* The arguments of --spills and of the options that belong to it. */
struct spill_words {
    int spills, jobs;
    char *widths, *dtypes;
};

static bool run_spills(struct command_line *line, struct bench_request *request, const struct tally *tally, bool json,
                       const struct spill_words *words, struct fault *fault) {
    if (json || tally->verbose || command_line_has(line, "every"))
        return fault_set(fault, EXIT_REQUEST, "--%s: expected no --spills",
                         json             ? "json"
                         : tally->verbose ? "verbose"
                                          : "every");
    return bench_read(request, line, NULL, words->dtypes, fault) &&
           (!words->widths || widths_read(words->widths, "widths", &request->sweep, fault)) &&
           check_spills(request, words->jobs, fault);
}

static bool run(struct command_line *line, struct bench_request *request, struct tally *tally, bool json,
                const struct spill_words *words, struct fault *fault) {
    if (words->spills)
        return run_spills(line, request, tally, json, words, fault);
    if (words->widths || words->dtypes || command_line_has(line, "jobs"))
        return fault_set(fault, EXIT_REQUEST, "--%s: expected --spills too",
                         words->widths   ? "widths"
                         : words->dtypes ? "dtypes"
                                         : "jobs");
    return run_check(line, request->device, tally, json, fault);
}

static const char about_spills[] =
    "Every case is compared with a double reference.\n"
    "--spills builds kernels instead, for a grid of widths with 64 MiB of x, images with 1024 positions, and lists those "
    "whose registers spill to memory. It needs a driver that reports spills, as NVIDIA's does. A build that fails is an "
    "error. OP is an operation of `clnorm bench`; the default is all of them.\n";

int check_command(int argc, const char **argv, struct fault *fault) {
    struct bench_request request = {.device = NULL};
    int verbose = 0;
    int json = 0;
    struct spill_words words = {.jobs = 1};
    struct tally tally = {.every = 1};
    const struct poptOption table[] = {
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Check this device; see clnorm select --help", "SELECTOR"},
        {"verbose", 'v', POPT_ARG_NONE, &verbose, 0, "Print every case", NULL},
        {"json", '\0', POPT_ARG_NONE, &json, 0, "Print a JSON object with every case", NULL},
        {"every", '\0', POPT_ARG_INT, &tally.every, 1, "Check every Nth case only (1)", "N"},
        {"spills", '\0', POPT_ARG_NONE, &words.spills, 0, "List kernels whose registers spill", NULL},
        {"widths", '\0', POPT_ARG_STRING, &words.widths, 0, "--spills: of these widths (grid)", "grid|N,..."},
        {"dtypes", '\0', POPT_ARG_STRING, &words.dtypes, 0, "--spills: element types (bf16,f32)", "DT,..."},
        {"jobs", '\0', POPT_ARG_INT, &words.jobs, 1, "--spills: build in N processes (1)", "N"},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OP...] [OPTION...]", about_spills, table, fault))
        return fault->code;
    tally.verbose = verbose;
    const bool done = line.help || run(&line, &request, &tally, json, &words, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
