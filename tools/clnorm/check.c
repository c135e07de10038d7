#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check_worker.h"
#include "commands.h"
#include "options.h"
#include "report.h"
#include "session.h"

/* splitmix64, as a number from -1 to 1 */
static double random_number(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return ldexp((double)(int64_t)(z ^ z >> 31), -63);
}

/* x as the pattern says, the others random. */
static void fill_input(const struct tensor *tensor, unsigned char *bytes, enum pattern pattern, uint64_t cols,
                       uint64_t *random) {
    const bool is_x = !strcmp(tensor->name, "x");
    const bool wide = tensor->element->bits > 16;
    for (uint64_t i = 0; i < tensor->count; i++) {
        double value = 2 * random_number(random);
        if (strstr(tensor->name, "scale"))
            value = fabs(value) + 0.125;
        if (is_x && pattern == PATTERN_FAR)
            value += wide ? 1e4 : 50;
        if (is_x && pattern == PATTERN_SPECIAL && i / cols == 2)
            value = 0;
        if (pattern == PATTERN_APART && !strcmp(tensor->name, "weight"))
            value += value < 0 ? -0.5 : 0.5;
        element_store(tensor->element, bytes, i, value);
    }
    if (is_x && pattern == PATTERN_SPECIAL && tensor->count)
        element_store(tensor->element, bytes, cols / 2, NAN);
    if (is_x && pattern == PATTERN_SPECIAL && tensor->count > cols)
        element_store(tensor->element, bytes, cols + cols / 3, -INFINITY);
}

/* Gives the job its inputs; bytes[] is the caller's to free. */
static bool make_inputs(struct job *job, const struct check_case *check_case, unsigned char *bytes[ROLES], uint64_t seed,
                        struct fault *fault) {
    const long long group_size = check_case->options.group_size;
    const uint64_t groups = group_size ? (check_case->cols + (uint64_t)group_size - 1) / (uint64_t)group_size : 1;
    uint64_t random = seed;
    job->x = check_case->x;
    for (int i = 0; check_case->inputs[i].role; i++) {
        const char *const role = check_case->inputs[i].role;
        if (!job_add_input(job, role, check_case->inputs[i].dtype, check_case->rows, check_case->cols, groups, fault))
            return false;
        struct tensor *const tensor = &job->tensor[operation_role(job->operation, role)];
        bytes[i] = malloc(tensor->size ? tensor->size : 1);
        if (!bytes[i])
            return fault_set(fault, EXIT_FAILED, "%s: out of memory for %" PRIu64 " bytes", role, tensor->size);
        fill_input(tensor, bytes[i], check_case->pattern, check_case->cols, &random);
        tensor->data = bytes[i];
    }
    return true;
}

/* Whether the device refuses the forced knobs or the dtypes of a job, as it may. */
static bool is_absent(const struct session *session, const struct job *job, const struct check_case *check_case) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = job->operation->plan(session->context, job, &plan);
    clnorm_plan_destroy(plan);
    return status == CLNORM_UNSUPPORTED || (status == CLNORM_INVALID_VALUE && check_case->options.config);
}

static bool run_job(const struct session *session, struct job *job, struct verdict verdicts[ROLES], struct fault *fault) {
    struct launch launch = {0};
    double us;
    const bool done = job_allocate_outputs(job, fault) && launch_prepare(&launch, session, job, fault) &&
                      launch_upload(&launch, session, job, fault) && launch_run(&launch, session, &us, fault) &&
                      launch_download(&launch, session, job, fault) && job->operation->verify(job, verdicts, fault);
    launch_free(&launch);
    return done;
}

/* Says what was wrong as a fault. */
static bool judge(const struct job *job, const struct verdict verdicts[ROLES], struct fault *fault) {
    for (int i = 0; i < ROLES; i++)
        if (verdicts[i].wrong)
            return fault_set(fault, EXIT_FAILED, "%s: %" PRIu64 " of %" PRIu64 " wrong; [%" PRIu64 "] is %.9g, not %.9g",
                             job->tensor[i].name, verdicts[i].wrong, verdicts[i].checked, verdicts[i].index,
                             verdicts[i].actual, verdicts[i].expected);
    return true;
}

enum outcome check_case_try(const struct session *session, const struct check_case *check_case, uint64_t seed,
                            struct fault *fault) {
    const struct operation *operation;
    struct job job;
    unsigned char *bytes[ROLES] = {NULL};
    struct verdict verdicts[ROLES] = {0};
    if (!operation_find(check_case->operation, &operation, fault))
        return OUTCOME_WRONG;
    job_init(&job, operation);
    enum outcome outcome = OUTCOME_WRONG;
    if (make_inputs(&job, check_case, bytes, seed, fault) && job_describe(&job, &check_case->options, fault)) {
        if (is_absent(session, &job, check_case))
            outcome = OUTCOME_ABSENT;
        else if (run_job(session, &job, verdicts, fault) && judge(&job, verdicts, fault))
            outcome = OUTCOME_RIGHT;
    }
    job_free(&job);
    for (int i = 0; i < ROLES; i++)
        free(bytes[i]);
    return outcome;
}

enum { CASE_TEXT = 256 };

/* "layer_norm 3x96 in groups of 8, x=f16 weight=f16, y=f16, gate silu first". Returns text. */
static char *case_text(const struct check_case *check_case, char text[CASE_TEXT]) {
    const struct operation_options *const options = &check_case->options;
    size_t length = (size_t)snprintf(text, CASE_TEXT, "%s %" PRIu64 "x%" PRIu64, check_case->operation, check_case->rows,
                                     check_case->cols);
    if (options->group_size)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, " in groups of %lld", options->group_size);
    for (int i = 0; check_case->inputs[i].role; i++)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, "%s %s=%s", i ? "" : ",", check_case->inputs[i].role,
                                   clnorm_dtype_name(check_case->inputs[i].dtype));
    if (options->dtype)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, " y=%s", options->dtype);
    if (options->outputs)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", outputs %s", options->outputs);
    if (options->quantize)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", quantised by %s", options->quantize);
    if (options->reduction)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->reduction);
    if (options->gate)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", gate %s%s", options->gate,
                                   options->gate_first ? " first" : "");
    if (options->dropout > 0)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", dropout %g", options->dropout);
    if (options->activation)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->activation);
    if (options->s_given)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", of s");
    for (int i = 0; choice_at(i); i++)
        if (options->choices.word[i])
            length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->choices.word[i]);
    if (options->config)
        (void)snprintf(text + length, CASE_TEXT - length, ", %s", options->config);
    return text;
}

/* What became of the cases so far. */
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
    case_text(&check_case, text);
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

/* Follows a process to its end. *next: the case to go on with where the driver ended it; past the last one else. */
static bool follow(struct tally *tally, struct check_worker *worker, int *next, struct fault *fault) {
    struct check_event event;
    char ending[ENDING_TEXT];
    char text[CASE_TEXT];
    int running = -1;
    bool done = false;
    while (check_worker_next(worker, &event)) {
        if (event.kind == CHECK_OPENED)
            take_device(tally, &event.device);
        else if (event.kind == CHECK_FAILED)
            *fault = event.fault;
        else if (event.kind == CHECK_BEGINS) {
            running = event.index;
            const struct check_case check_case = check_case_of(running);
            progress("%d of %d: %s", running + 1, tally->count, case_text(&check_case, text));
        } else if (event.kind == CHECK_ENDS) {
            running = -1;
            progress_end();
            record(tally, event.index, event.outcome, event.fault.text);
        }
        done = event.kind == CHECK_DONE;
    }
    progress_end();
    check_worker_end(worker, ending);
    *next = tally->count;
    if (*fault->text)
        return false;
    if (running < 0)
        return (done && !*ending) || fault_set(fault, EXIT_FAILED, "check: the driver ended the process %s: %s",
                                               done ? "after the last case" : "between cases", ending);
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
    return json_print(object) || fault_set(fault, EXIT_FAILED, "out of memory for JSON");
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
    if (tally->every < 1)
        return fault_set(fault, EXIT_REQUEST, "--every %d: expected 1 or more", tally->every);
    if (!command_line_end(line, fault))
        return false;
    tally->count = check_case_count();
    tally->cases = json ? json_array() : NULL;
    const bool done = try_all(tally, selector, fault) && report(tally, fault);
    json_decref(tally->cases);
    return done;
}

int check_command(int argc, const char **argv, struct fault *fault) {
    char *device = NULL;
    int verbose = 0;
    int json = 0;
    struct tally tally = {.every = 1};
    const struct poptOption table[] = {
        {"device", 'd', POPT_ARG_STRING, &device, 0, "Check this device; see clnorm select --help", "SELECTOR"},
        {"verbose", 'v', POPT_ARG_NONE, &verbose, 0, "Print every case", NULL},
        {"json", '\0', POPT_ARG_NONE, &json, 0, "Print a JSON object with every case", NULL},
        {"every", '\0', POPT_ARG_INT, &tally.every, 0, "Try one case in so many (1)", "N"},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OPTION...]", NULL, table, fault))
        return fault->code;
    tally.verbose = verbose;
    const bool done = line.help || run_check(&line, device, &tally, json, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
