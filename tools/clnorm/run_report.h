/* The output of `clnorm run`, as text while it runs or as JSON at its end. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "session.h"

struct run_report {
    const struct job *job;
    const struct session *session;
    const struct launch *launch;
    double us; /* the median of repeat runs */
    int repeat;
    bool verified;
    struct verdict verdicts[ROLES]; /* of outputs that were verified; checked is 0 for others */
    const char *out;                /* the file that was written; NULL: none */
};

/* The device, and the inputs. */
void run_report_inputs(const struct run_report *report);

/* The config, and the source of its knobs. */
void run_report_config(const struct run_report *report);

void run_report_time(const struct run_report *report);
void run_report_verdicts(const struct run_report *report);

/* The outputs' values, and the file that holds them. */
void run_report_outputs(const struct run_report *report);

/* All of this. */
bool run_report_json(const struct run_report *report, struct fault *fault);

#endif
