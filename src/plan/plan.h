/* A plan: kernels with their constant arguments set, the tensors that they need, and how to launch them. An operation
 * fills one in step by step; clnorm_plan_destroy takes it in any state. */
#ifndef CLN_PLAN_H
#define CLN_PLAN_H

#include <pthread.h>

#include "clnorm/clnorm.h"
#include "config/config.h"
#include "program/spec.h"

/* The tensors of clnorm_args. The table in args.c has the name and the member of each. */
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
    CLN_Y_ROW_SCALE,
    CLN_FAULT,
    CLN_NORM,
    CLN_MOMENTS,
    CLN_SUMS,
    CLN_ROPE_COS,
    CLN_ROPE_SIN,
    CLN_POSITION,
    CLN_WORKSPACE,
    CLN_ROLES
};

/* What a plan requires of one tensor. All zero: the plan does not have it. */
struct cln_tensor {
    uint64_t element; /* bytes; offsets are multiples of it */
    uint64_t span;    /* bytes from the first element to the end of the last; 0 when there are no rows */
    uint64_t vector;  /* bytes of one wide access; 0 when it is only accessed element by element */
    uint64_t stride;  /* bytes from row to row; two tensors in one place must have the same */
    bool read;        /* a kernel reads it */
    bool written;     /* a kernel writes it */
    uint64_t row;     /* bytes of a row; 0: a vector, which is one row of span bytes */
    /* The dimensions of its rows, the fastest first: sizes in rows, strides in bytes. A size of 0 ends them. */
    clnorm_dim dims[CLNORM_OUTER_DIMS];
};

/* Capacities in bytes: of the sentence that says where a plan's config came from, and of its key in a tuning file. */
enum { CLN_NOTE = 512, CLN_TUNING_KEY = 96 };

/* Limits: stages of a plan, tensors and arguments of a stage's kernels. */
enum { CLN_STAGES = 8, CLN_STAGE_TENSORS = 24, CLN_STAGE_ARGUMENTS = 128 };

/* Maximum work-groups of a launch. With more work each takes more iterations, or the problem is refused. */
enum { CLN_MOST_GROUPS = 1 << 30 };

/* Bytes. The workspace, and each part of it, begins at a multiple of this. */
enum { CLN_WORKSPACE_ALIGNMENT = 64 };

/* The tensor of a kernel's parameter: a tensor of clnorm_args, or a part of the workspace. */
struct cln_binding {
    enum cln_role role;
    uint64_t element; /* of a part: bytes of an element; 0: as in the role's tensor */
    uint64_t offset;  /* of a part: bytes from the start of the workspace */
    uint64_t size;    /* of a part: bytes that its kernels read or write */
};

/* A tensor of a kernel. */
struct cln_bound {
    struct cln_binding binding;
    cl_uint index; /* of the argument that is its cl_mem; the next one is its offset in elements (ulong) */
};

/* One launch. A kernel's first argument is the work (ulong, 0 makes a launch do nothing). */
struct cln_stage {
    cl_kernel aligned;   /* for offsets that are multiples of each tensor's vector */
    cl_kernel unaligned; /* for any offsets; NULL when aligned serves both */
    struct cln_bound tensor[CLN_STAGE_TENSORS];
    cl_uint tensors;
    cl_uint seed;         /* index of the first of the two arguments for a seed; 0: the kernel draws no random numbers */
    cl_uint launch;       /* index of the argument for the launch's number; 0: the kernel has none */
    cl_ulong work;        /* segments, rows or columns: the kernel's comment says which */
    size_t groups, items; /* work-groups, work-items in each */
    size_t readers; /* the first ones of groups: in a call in place they are launched before the others, because they read
                       inputs that the others overwrite */
    char name[48];
    char options[CLN_OPTIONS_CAPACITY];
};

struct cln_operation;

/* Where the random numbers of a plan's calls come from. */
enum cln_seeding {
    CLN_SEED_NONE, /* they draw none, and args.seed is refused */
    CLN_SEED_ARGS, /* args.seed */
    CLN_SEED_OWN   /* args.seed, or without it the plan's seed */
};

struct clnorm_plan {
    clnorm_context *context;
    const struct cln_operation *operation; /* the operation that the plan is for */
    struct cln_config config;
    struct cln_workload work; /* the workload for which the config was chosen */
    struct cln_tensor tensor[CLN_ROLES];
    struct cln_stage stage[CLN_STAGES];
    unsigned stages; /* 0: there is nothing to do, and an enqueue only orders events */
    enum cln_seeding seeding;
    clnorm_seed seed; /* with CLN_SEED_OWN: of calls without args.seed */
    bool late_dy;     /* dy may be read after dx is written: dx may not lie over dy */
    bool draft;       /* stages have no kernels: for cln_plan_requirements alone */
    uint64_t workspace_size;
    char tuning_key[CLN_TUNING_KEY];
    char note[CLN_NOTE];  /* where the config comes from, and whether a tuning file was used; "": the model's, or forced */
    pthread_mutex_t lock; /* held while arguments are set and kernels launched: all threads share a cl_kernel */
};

/* Makes an empty plan. */
clnorm_status cln_plan_create(clnorm_context *context, const struct cln_operation *operation, clnorm_plan **plan);

/* The tensors and the workspace that an enqueue of a plan needs. */
clnorm_requirements cln_plan_requirements(const clnorm_plan *plan);

/* Places a part behind the first *size bytes of a workspace, at a multiple of its alignment, and adds its bytes to *size.
 * False, and nothing is written: 2^63 bytes or more. element: bytes of an element. */
bool cln_workspace_place(uint64_t *size, uint64_t elements, uint64_t element, struct cln_binding *part);

/* The failure of a part that makes a workspace too large. */
clnorm_status cln_workspace_refuse(uint64_t elements, uint64_t element);

/* Sets the workspace's size: bytes below 2^63. */
void cln_plan_set_workspace(clnorm_plan *plan, uint64_t size);

/* Appends a part to the plan's workspace. Refuses 2^63 bytes or more. element: bytes of an element. */
clnorm_status cln_plan_add_part(clnorm_plan *plan, uint64_t elements, uint64_t element, struct cln_binding *part);

/* Appends a part with so many numbers of the arithmetic type for each chunk of the workload: [rows, groups, chunks,
 * numbers]. */
clnorm_status cln_plan_add_chunks(clnorm_plan *plan, uint64_t numbers, struct cln_binding *part);

/* Checks that each event exists, belongs to the context, and has not failed. */
clnorm_status cln_wait_list_check(cl_context context, cl_uint num_wait, const cl_event *wait_list);

/* args.c: copies the arguments of a caller, whose struct may be of another version. */
clnorm_status cln_args_take(const clnorm_args *given, clnorm_args *args);

/* The place of a tensor of an enqueue. */
struct cln_place {
    cl_mem buffer; /* the whole buffer, never a sub-buffer; NULL: the tensor is absent */
    uint64_t at;   /* bytes from its start */
};

/* args.c: checks every tensor of args against the plan and the context. *aligned: whether all wide accesses are aligned.
 * places: filled in; all zero before. */
clnorm_status cln_args_check(const clnorm_plan *plan, const clnorm_args *args, bool *aligned,
                             struct cln_place places[CLN_ROLES]);

/* overlap.c: refuses outputs that overlap another tensor where they must not. */
clnorm_status cln_overlap_check(const clnorm_plan *plan, const struct cln_place places[CLN_ROLES]);

/* overlap.c: whether an output lies over an input other than dresidual_out, each element of which is read only by the
 * work-item that overwrites it. places: checked before. */
bool cln_in_place(const struct cln_place places[CLN_ROLES]);

/* The role with a name; CLN_ROLES where there is none. */
enum cln_role cln_role_named(const char *name);

/* "dresidual_out" */
const char *cln_role_name(enum cln_role role);

/* The buffer that a role has in args. */
const clnorm_buffer *cln_args_buffer(const clnorm_args *args, enum cln_role role);

#endif
