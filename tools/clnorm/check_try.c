#include "check_try.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job_describe.h"
#include "outer.h"
#include "rope.h"

/* splitmix64, as a number from -1 to 1 */
static double random_number(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return ldexp((double)(int64_t)(z ^ z >> 31), -63);
}

/* Of `moments`, by the index: the mean, the sum of squares or the number of elements, which is 64. */
static double moments_number(uint64_t i, double random) {
    return i % 3 == 0 ? random : i % 3 == 1 ? 64 * (fabs(random) + 0.125) : 64;
}

/* Fills an input with random numbers, x and weight as the pattern says. */
static void fill_input(const struct tensor *tensor, unsigned char *bytes, enum pattern pattern, uint64_t cols,
                       uint64_t *random) {
    const bool is_x = !strcmp(tensor->name, "x");
    const bool wide = tensor->element->bits > 16;
    for (uint64_t i = 0; i < tensor->count; i++) {
        double value = 2 * random_number(random);
        if (strstr(tensor->name, "scale"))
            value = fabs(value) + 0.125;
        if (!strcmp(tensor->name, "moments"))
            value = moments_number(i, value);
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
    job->weight_rows = (uint64_t)check_case->options.weight_rows;
    job->spatial = check_case->spatial;
    rope_make(job, &check_case->options, check_case->rows, check_case->cols, groups);
    job->channels_last = check_case->options.layout && !strcmp(check_case->options.layout, "last");
    for (int i = 0; check_case->inputs[i].role; i++) {
        const char *const role = check_case->inputs[i].role;
        if (!job_add_input(job, role, check_case->inputs[i].dtype, check_case->rows, check_case->cols, groups, fault))
            return false;
        struct tensor *const tensor = &job->tensor[operation_role(job->operation, role)];
        bytes[i] = malloc(tensor->size ? (size_t)tensor->size : 1);
        if (!bytes[i])
            return fault_set(fault, EXIT_FAILED, "%s: out of memory for %" PRIu64 " bytes", role, tensor->size);
        if (!strcmp(role, "position"))
            rope_fill_positions(job, bytes[i], tensor->count);
        else
            fill_input(tensor, bytes[i], check_case->pattern, check_case->cols, &random);
        tensor->data = bytes[i];
    }
    return true;
}

/* Makes rows equal that share memory on the device. */
static bool fold_inputs(const struct job *job, const struct check_case *check_case, unsigned char *bytes[ROLES],
                        struct fault *fault) {
    for (int i = 0; check_case->inputs[i].role; i++)
        if (!outer_fold(job, operation_role(job->operation, check_case->inputs[i].role), bytes[i], fault))
            return false;
    return true;
}

/* Whether the device lacks the forced knobs or the dtypes of a job. */
static bool is_absent(const struct session *session, const struct job *job, const struct check_case *check_case) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = outer_plan(session->context, job, &plan);
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

/* Reports the first wrong tensor as a fault. */
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
    if (make_inputs(&job, check_case, bytes, seed, fault) && job_describe(&job, &check_case->options, fault) &&
        fold_inputs(&job, check_case, bytes, fault)) {
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
