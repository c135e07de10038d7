/* The state of one (cl_context, cl_device_id): facts, programs, the plans of the one-call forms. */
#ifndef CLN_CONTEXT_H
#define CLN_CONTEXT_H

#include "clnorm/clnorm.h"

struct cln_program_store;
struct cln_plan_store;
struct cln_tuning;

struct clnorm_context {
    cl_context cl; /* retained */
    clnorm_device_info device;
    clnorm_log_fn log; /* NULL: silent */
    void *log_user;
    bool build_report;
    char *cache_dir;                    /* "" when nothing is kept on disk */
    struct cln_program_store *programs; /* program.c: compiled programs, in memory */
    struct cln_plan_store *plans;       /* plan_store.c: plans of the one-call forms */
    struct cln_tuning *tuning;          /* tuning.c: measured configs; NULL where there are none */
};

#endif
