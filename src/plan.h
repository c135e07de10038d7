/* A plan: kernels with their constant arguments set, which tensors they want, and how to launch them. An operation fills
 * one in step by step; clnorm_plan_destroy takes it in any state. */
#ifndef CLN_PLAN_H
#define CLN_PLAN_H

#include <pthread.h>

#include "clnorm/clnorm.h"
#include "source.h"
#include "spec.h"

/* The tensors of clnorm_args; the table in args.c gives the name and the place of each. */
enum cln_role {
    CLN_X,
    CLN_WEIGHT,
    CLN_BIAS,
    CLN_Z,
    CLN_DY,
    CLN_Y,
    CLN_MEAN,
    CLN_RSTD,
    CLN_DX,
    CLN_DZ,
    CLN_DWEIGHT,
    CLN_DBIAS,
    CLN_RESIDUAL,
    CLN_ROW_SCALE,
    CLN_RESIDUAL_OUT,
    CLN_DROPOUT_MASK,
    CLN_DRESIDUAL_OUT,
    CLN_DRESIDUAL,
    CLN_Q,
    CLN_Q_T,
    CLN_SCALE,
    CLN_AMAX,
    CLN_X_SCALE,
    CLN_Y_T,
    CLN_Y_SCALE,
    CLN_FAULT,
    CLN_WORKSPACE,
    CLN_ROLES
};

/* What one tensor must be like. All zero: it is not wanted. */
struct cln_tensor {
    uint64_t element; /* bytes; offsets are multiples of it */
    uint64_t span;    /* bytes from the first element to the end of the last; 0 when there are no rows */
    uint64_t vector;  /* bytes of one wide access; 0 when it is only accessed element by element */
    uint64_t stride;  /* bytes from row to row: what two tensors in one place must agree on */
};

/* Bytes of a sentence about how a plan came to its config, and of what a tuning file calls the like of it. */
enum { CLN_NOTE = 512, CLN_TUNING_KEY = 96 };

enum { CLN_STAGES = 5, CLN_STAGE_TENSORS = 19 };

enum { CLN_MOST_GROUPS = 1 << 30 }; /* work-groups of a launch; past that each goes through more rounds */

/* The workspace begins at a multiple of this, and so does each of its parts: bytes. */
enum { CLN_WORKSPACE_ALIGNMENT = 64 };

/* A tensor as a kernel sees it: one of clnorm_args, or a part of the workspace. */
struct cln_binding {
    enum cln_role role;
    uint64_t element; /* of a part: its elements' bytes; 0: as the role's tensor has them */
    uint64_t offset;  /* of a part: bytes from the start of the workspace */
    uint64_t size;    /* of a part: bytes that the kernels which have it read or write */
};

/* Of a tensor that a kernel has parameters for where it is there, and else none: cl/parameter.h. */
struct cln_binding cln_binding_if(bool there, struct cln_binding binding);
struct cln_binding cln_role_if(bool there, enum cln_role role);

/* One launch. A kernel's arguments: for each tensor in turn its cl_mem and its offset in elements (ulong), then the work
 * (ulong, 0 makes a launch do nothing), then constants. */
struct cln_stage {
    cl_kernel aligned; /* for offsets that are multiples of each tensor's vector */
    cl_kernel any;     /* for any offsets; NULL when aligned serves both */
    struct cln_binding binding[CLN_STAGE_TENSORS];
    cl_uint tensors;
    cl_uint seed;         /* argument that args.seed's two numbers begin at; 0: the kernel draws none */
    cl_ulong work;        /* segments, rows or columns, as the kernel says */
    size_t groups, items; /* work-groups, work-items in each */
    size_t readers;       /* the first of the work-groups: they only read what the others may write in place; mostly 0 */
    char name[48];
    char options[CLN_OPTIONS_CAPACITY];
};

struct clnorm_plan {
    clnorm_context *context;
    clnorm_config config;
    struct cln_tensor tensor[CLN_ROLES];
    struct cln_stage stage[CLN_STAGES];
    unsigned stages; /* 0: there is nothing to do, and an enqueue only orders events */
    bool seeded;     /* args.seed is wanted */
    uint64_t workspace_size;
    char tuning_key[CLN_TUNING_KEY];
    char note[CLN_NOTE];  /* what a tuning file had to do with the config; "" */
    pthread_mutex_t lock; /* a cl_kernel's arguments are shared: held from the first one set to the launch */
    bool lock_made;
};

/* An empty plan. */
clnorm_status cln_plan_create(clnorm_context *context, clnorm_plan **plan);

/* The next constant argument of a stage's kernels. */
struct cln_constant {
    size_t size;       /* bytes; 0: the kernels do not have it */
    const void *value; /* NULL ends a list */
};

/* What a stage is made from. */
struct cln_stage_recipe {
    const struct cln_source *source;
    const char *kernel; /* the aligned one */
    bool any;           /* there is another one for any offsets, whose name ends in _any */
    const struct cln_spec *spec;
    const struct cln_binding *binding;
    cl_uint tensors;
    cl_ulong work;
    size_t groups, items;
    size_t readers; /* where an output lies over an input they are launched first, and the others at an offset */
    const struct cln_constant *constant;
    bool seeded; /* after the constants come args.seed's two numbers (ulong each) */
};

/* Fetches or builds the program and adds a stage that runs after those before it. */
clnorm_status cln_plan_add_stage(clnorm_plan *plan, const struct cln_stage_recipe *recipe);

/* Asks for a workspace of so many bytes, which are fewer than 2^63. */
void cln_plan_set_workspace(clnorm_plan *plan, uint64_t size);

/* Asks for a workspace of some numbers for each of a config's chunks, [rows, groups, chunks, numbers], an element's bytes
 * each, and says which part that is. */
clnorm_status cln_plan_set_chunks(clnorm_plan *plan, uint64_t rows, uint64_t groups, uint64_t numbers, uint64_t element,
                                  struct cln_binding *part);

/* Whether every event is there. */
clnorm_status cln_wait_list_check(cl_uint num_wait, const cl_event *wait_list);

/* args.c: checks every tensor of args against the plan and the context. *aligned: all wide accesses may be aligned ones. */
clnorm_status cln_args_check(const clnorm_plan *plan, const clnorm_args *args, bool *aligned);

/* Whether an output lies over an input, but for dresidual_out, which is read where it is written alone. args is checked. */
bool cln_args_in_place(const clnorm_plan *plan, const clnorm_args *args);

/* The buffer that a role has in args. */
const clnorm_buffer *cln_args_buffer(const clnorm_args *args, enum cln_role role);

#endif
