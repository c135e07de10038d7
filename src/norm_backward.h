/* The backward of the norms, between the descriptor and the kernels. */
#ifndef CLN_NORM_BACKWARD_H
#define CLN_NORM_BACKWARD_H

#include "config.h"
#include "plan.h"

/* A descriptor that is validated, with no default left in it. With y_given, x_dtype and x_stride are those of y. */
typedef clnorm_norm_backward_desc cln_backward_problem;

/* Bytes of the arithmetic type. */
static inline uint64_t cln_backward_real_size(const cln_backward_problem *p) {
    return p->x_dtype == CLNORM_F64 ? sizeof(cl_double) : sizeof(cl_float);
}

/* What the kernels have as x. */
static inline enum cln_role cln_backward_role_of_x(const cln_backward_problem *p) {
    return p->y_given ? CLN_Y : CLN_X;
}

/* How the work is shared out, and what the workspace holds: one part after the other, each at a multiple of
 * CLN_WORKSPACE_ALIGNMENT bytes.
 *
 *   mean, rstd     [groups, rows]             where they are not given
 *   sums           [2, chunks, groups, rows]  where segments are split
 *   dweight, dbias [slots, cols]
 *   locks          [blocks, slots] uint       of CLNORM_REDUCTION_LOCKED
 *   letters        as in cl/team.h, uint      of CLNORM_SUMS_EXCHANGED, in one part with the locks */
struct cln_backward_layout {
    uint64_t span;    /* groups that a work-group takes in turn */
    uint64_t blocks;  /* work-groups that share a row */
    uint64_t walkers; /* work-groups for each block, that share the rows */
    uint64_t rounds; /* of neighbouring rows, before a work-group goes on behind those of all others; 0: all its rows are */
    uint64_t share;  /* rows of a walker or, with rounds, of all walkers in so many of them */
    uint64_t slots;
    uint64_t columns;              /* work-groups that have columns, of CLNORM_GATHER_COLUMNS; 0: there are slots */
    uint64_t column_lanes;         /* beside each other in one of those */
    uint64_t reduce_vec;           /* elements of an access of norm_backward_reduce.cl */
    uint64_t lock_words;           /* locks and letters */
    bool split, exchanged, locked; /* split: by a kernel of its own that takes sums */
    struct cln_binding mean, rstd, sums, dweight, dbias, locks; /* those that are not there have an element of 0 */
    uint64_t size;                                              /* bytes */
};

/* norm_backward_from_y.c: with y_given, puts y in x's place and fills in the bounds; refuses what does not go with it. desc
 * is of the right size, and may hold anything else. */
clnorm_status cln_backward_take_y(clnorm_norm_backward_desc *desc);

/* Adds the stage that counts columns at which y does not do, before the others. */
clnorm_status cln_backward_add_check(clnorm_plan *plan, const cln_backward_problem *p);

/* norm_backward_stages.c */
struct cln_workload cln_backward_workload(const cln_backward_problem *p);
clnorm_status cln_backward_lay_out(const clnorm_device_info *device, const cln_backward_problem *p, const clnorm_config *c,
                                   struct cln_backward_layout *layout);

/* Adds every stage of the problem, whose config the plan has. */
clnorm_status cln_backward_add_stages(clnorm_plan *plan, const cln_backward_problem *p,
                                      const struct cln_backward_layout *layout);

#endif
