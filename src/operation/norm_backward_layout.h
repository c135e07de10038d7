/* How the work of the norms' backward is divided among work-groups, and the parts of its workspace. */
#ifndef CLN_NORM_BACKWARD_LAYOUT_H
#define CLN_NORM_BACKWARD_LAYOUT_H

#include "operation/operation.h"

/* A validated descriptor with all defaults filled in. With y_given, x is y. */
typedef clnorm_norm_backward_desc cln_backward_problem;

/* The argument that kernels read as x. */
static inline enum cln_role cln_backward_role_of_x(const cln_backward_problem *p) {
    return p->y_given ? CLN_Y : CLN_X;
}

/* How the work is divided, and the parts of the workspace, in this order, each at a multiple of CLN_WORKSPACE_ALIGNMENT
 * bytes.
 *
 *   mean, rstd     [groups, rows]             where they are not given
 *   sums           [2, chunks, groups, rows]  where segments are split
 *   dweight, dbias [weight_rows, slots, SLOT_COLUMNS]
 *   locks          [blocks, weight_rows, slots] uint of CLNORM_REDUCTION_LOCKED
 *   messages       [rows, groups, tiles, 4] uint with exchanged sums */
struct cln_backward_layout {
    uint64_t span;         /* groups that a work-group takes one after the other */
    uint64_t abreast;      /* segments with weights of their own that a work-group takes side by side */
    uint64_t blocks;       /* work-groups that share a row */
    uint64_t work_groups;  /* that go through rows: row_groups for each block and each part of the rows of weights */
    uint64_t row_groups;   /* that share the rows which use one row of weights */
    uint64_t run_length;   /* iterations over consecutive rows before a work-group skips those of the others; 0: no skip */
    uint64_t share;        /* run_length 0: rows of a work-group; else rows of one run of all work-groups */
    uint64_t slots;        /* of each row of weights */
    uint64_t columns;      /* work-groups that sum columns, of CLN_ACCUMULATOR_COLUMNS; 0: there are slots */
    uint64_t column_lanes; /* neighbouring lanes of those work-groups */
    uint64_t reduce_vec;   /* elements of an access of norm_backward_reduce.cl */
    uint64_t columns_of_weight;    /* neighbouring columns that use one weight; 0: 1 */
    bool split, exchanged, locked; /* split: a kernel of its own takes the sums over a row */
    bool leads;                    /* segments begin anywhere within a vector */
    struct cln_binding mean, rstd, sums, dweight, dbias, locks, messages; /* an absent part has an element of 0 bytes */
    uint64_t size;                                                        /* bytes */
};

/* A member of the operation's record. */
struct cln_workload cln_backward_workload(const struct cln_operation *operation, const void *desc);

/* Lays out statistics and sums alone, in the config's chunks. */
clnorm_status cln_backward_lay_out_sums(const cln_backward_problem *p, const struct cln_workload *work,
                                        const struct cln_config *c, struct cln_backward_layout *layout);

clnorm_status cln_backward_lay_out(const clnorm_device_info *device, const cln_backward_problem *p,
                                   const struct cln_workload *work, const struct cln_config *c,
                                   struct cln_backward_layout *layout);

#endif
