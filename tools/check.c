#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_cases.h"
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
    if (options->approximate)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->approximate);
    if (options->config)
        (void)snprintf(text + length, CASE_TEXT - length, ", %s", options->config);
    return text;
}

static bool try_all(const struct session *session, bool verbose, int every, struct fault *fault) {
    static const char *const words[] = {"right", "WRONG", "absent"};
    const int count = check_case_count();
    int outcomes[3] = {0};
    for (int i = 0; i < count; i += every) {
        const struct check_case check_case = check_case_of(i);
        char text[CASE_TEXT];
        progress("%d of %d: %s", i + 1, count, case_text(&check_case, text));
        struct fault found = {0};
        const enum outcome outcome = check_case_try(session, &check_case, (uint64_t)i, &found);
        outcomes[outcome]++;
        progress_end();
        if (verbose || outcome == OUTCOME_WRONG)
            printf("%-6s  %s%s%s\n", words[outcome], text, *found.text ? ": " : "", found.text);
    }
    printf("check: %d right, %d wrong, %d of types or knobs that this device does not have\n", outcomes[OUTCOME_RIGHT],
           outcomes[OUTCOME_WRONG], outcomes[OUTCOME_ABSENT]);
    return !outcomes[OUTCOME_WRONG] ||
           fault_set(fault, EXIT_FAILED, "check: %d of %d cases are wrong", outcomes[OUTCOME_WRONG], count);
}

static bool run_check(struct command_line *line, const char *selector, bool verbose, int every, struct fault *fault) {
    struct session session;
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = ""; /* what is checked is what is built here and now */
    if (every < 1)
        return fault_set(fault, EXIT_REQUEST, "--every %d: expected 1 or more", every);
    if (!command_line_end(line, fault) || !session_open(&session, selector, CL_QUEUE_PROFILING_ENABLE, &options, fault))
        return false;
    printf("device ");
    device_print_line(&session.device);
    const bool done = try_all(&session, verbose, every, fault);
    session_close(&session);
    return done;
}

int check_command(int argc, const char **argv, struct fault *fault) {
    char *device = NULL;
    int verbose = 0;
    int every = 1;
    const struct poptOption table[] = {
        {"device", 'd', POPT_ARG_STRING, &device, 0, "Check this device; see clnorm select --help", "SELECTOR"},
        {"verbose", 'v', POPT_ARG_NONE, &verbose, 0, "Print every case", NULL},
        {"every", '\0', POPT_ARG_INT, &every, 0, "Try one case in so many (1)", "N"},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OPTION...]", NULL, table, fault))
        return fault->code;
    const bool done = line.help || run_check(&line, device, verbose, every, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
