#include "trial.h"

#include "base/arithmetic.h"
#include "check_try.h"
#include "config_text.h"

enum { LEAST_RUNS = 7, CHECK_ROWS = 5, TEAM_ROWS = 6 };

bool trial_start(struct trial *trial, struct fault *fault) {
    return bench_job(&trial->job, trial->operation, trial->shape, trial->dtype, NULL, fault) &&
           launch_prepare(&trial->launch, &trial->stopwatch->session, &trial->job, fault) &&
           stopwatch_fill(trial->stopwatch, &trial->launch, &trial->job, fault);
}

void trial_free(struct trial *trial) {
    launch_free(&trial->launch);
    job_free(&trial->job);
}

bool trial_use(struct trial *trial, const clnorm_config *config) {
    struct fault refusal = {0};
    char text[CONFIG_TEXT];
    clnorm_config_text(config, text, sizeof text);
    job_free(&trial->job);
    return bench_job(&trial->job, trial->operation, trial->shape, trial->dtype, text, &refusal) &&
           launch_replan(&trial->launch, &trial->stopwatch->session, &trial->job, &refusal);
}

bool trial_time(const struct trial *trial, double duration_us, double *us, struct fault *fault) {
    struct samples samples = {0};
    const double start = clock_us();
    bool done = true;
    for (int i = -1; done && (i < LEAST_RUNS || clock_us() - start < duration_us); i++) {
        struct lap lap;
        done = stopwatch_time(trial->stopwatch, &trial->launch, &lap, fault) &&
               (i < 0 || samples_add(&samples, stopwatch_us(trial->stopwatch, &lap), fault));
    }
    if (done)
        *us = stopwatch_of_many(trial->stopwatch, &samples);
    samples_free(&samples);
    return done;
}

/* The number of teams of the backward's work-groups. A team has one work-group for each tile of a row. */
static uint64_t count_teams(const struct trial *trial, const clnorm_config *plan) {
    const uint64_t tile = config_number(plan, "tile");
    const uint64_t tiles = (trial->shape.cols + tile - 1) / tile;
    const uint64_t groups = config_number(plan, "groups_per_cu") * trial->stopwatch->session.device.compute_units;
    return groups > tiles ? groups / tiles : 1;
}

/* A few rows, except in two cases. Where teams exchange sums, there are enough rows to reuse every mailbox. Where
 * work-groups take short runs of rows in turn, there are enough rows for a second run. */
static uint64_t rows_to_check(const struct trial *trial, const clnorm_config *plan) {
    if (config_has(plan, "row_split", "exchange") && config_number(plan, "tile"))
        return TEAM_ROWS * count_teams(trial, plan);
    const uint64_t run = config_number(plan, "run_length");
    return run && run < TEAM_ROWS ? (run + 1) * config_number(plan, "segments") * count_teams(trial, plan) : CHECK_ROWS;
}

bool trial_is_right(const struct trial *trial, const clnorm_config *config) {
    clnorm_config plan, checked = *config;
    clnorm_plan_config(trial->launch.plan, &plan);
    if (config_has(&plan, "row_split", "exchange") && config_number(&plan, "run_length") > TEAM_ROWS)
        config_set(&checked, "run_length", TEAM_ROWS); /* with longer runs, too few teams would have rows */
    char text[CONFIG_TEXT];
    clnorm_config_text(&checked, text, sizeof text);
    struct check_case check_case = {.operation = trial->operation->operation,
                                    .rows = rows_to_check(trial, &plan),
                                    .cols = trial->shape.cols,
                                    .options = bench_options(trial->operation, text)};
    const struct job *const job = &trial->job;
    struct fault fault = {0};
    if (operation_has_channels(job->operation)) {
        check_case.rows = 2; /* samples */
        check_case.spatial = bench_positions(&trial->shape);
        check_case.options.groups = (long long)bench_groups(&trial->shape);
    } else if (!check_case.options.group_size && job->groups > 1)
        check_case.options.group_size = (long long)cln_divide_up(trial->shape.cols, job->groups);
    for (int i = 0; trial->operation->inputs[i]; i++) {
        const char *const input = trial->operation->inputs[i];
        check_case_add_input(&check_case, input, job->tensor[operation_role(job->operation, input)].element->dtype);
    }
    return check_case_try(&trial->stopwatch->session, &check_case, 1, &fault) == OUTCOME_RIGHT;
}
