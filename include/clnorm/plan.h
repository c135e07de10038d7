/* Plans: a descriptor made ready for its device, and the buffers that it runs over. */
#ifndef CLNORM_PLAN_H
#define CLNORM_PLAN_H

#include "clnorm/config.h"
#include "clnorm/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clnorm_plan clnorm_plan;

/* Each operation's header has its descriptor and three functions for it:
 *
 * - clnorm_OPERATION_validate says whether a plan can be made, without compiling anything, and what its enqueues need.
 * - clnorm_OPERATION_plan_create validates the descriptor, chooses a config, and compiles or fetches the kernels. The plan
 *   belongs to the context and must be destroyed before it. Slow the first time (a build), microseconds once the context
 *   has the program.
 * - clnorm_OPERATION plans, once per descriptor, and enqueues. The context keeps its latest plans and lends workspace, so
 *   that from the second call on this costs little more than clnorm_plan_enqueue. */

/* A tensor of clnorm_args that an enqueue needs. */
typedef struct clnorm_tensor_info {
    const char *name;    /* of the member, "x_scale"; valid for ever */
    uint64_t rows, cols; /* as it lies in memory: vectors, statistics and scales are one row of all their elements */
    uint64_t stride;     /* bytes from one row to the next; 0 with one row, or rows that are the same; with outer dimensions
                            that of the fastest one */
    uint64_t element;    /* bytes; offsets are multiples of it */
    uint64_t bytes;      /* from the first element to the end of the last: what the buffer has from the offset on */
    uint32_t is_input;   /* kernels read it */
    uint32_t is_output;  /* kernels write it */
} clnorm_tensor_info;

/* What enqueues of a descriptor need. The workspace is no tensor here. */
enum { CLNORM_TENSORS_MOST = 48 };
typedef struct clnorm_requirements {
    uint64_t size; /* sizeof(clnorm_requirements) */
    uint64_t workspace_size;
    uint32_t kernel_count;
    uint32_t tensor_count;
    clnorm_tensor_info tensors[CLNORM_TENSORS_MOST]; /* [tensor_count] */
} clnorm_requirements;

#define CLNORM_REQUIREMENTS_INIT                \
    {                                           \
        sizeof(clnorm_requirements), 0, 0, 0, { \
            { NULL, 0, 0, 0, 0, 0, 0, 0 }       \
        }                                       \
    }
CLNORM_API void clnorm_requirements_init(clnorm_requirements *requirements);

/* NULL is allowed. Enqueued work keeps what it needs: the queue need not be finished first. The plan is freed at once, and
 * a call with it in another thread would use it after that: every such call has to have returned before, and none may begin
 * later. Plans of the one-call forms are the context's, and have no such rule. */
CLNORM_API void clnorm_plan_destroy(clnorm_plan *plan);

/* Bytes of args.workspace that an enqueue needs; 0 when it needs none. */
CLNORM_API uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan);

/* The config that was chosen. */
CLNORM_API void clnorm_plan_config(const clnorm_plan *plan, clnorm_config *config);

/* Configs for the plan's problem that the library's model of the device takes for the fastest, best first: what a search by
 * measurement tries. Writes at most capacity and returns how many there are; 0 for operations that have no knobs to tune.
 */
CLNORM_API size_t clnorm_plan_candidates(const clnorm_plan *plan, clnorm_config *configs, size_t capacity);

/* What the row of a tuning file for such plans begins with: "rms_norm bf16 4096", and "few" where x is small for the device
 * (64 KiB for each compute unit). Writes it as snprintf does, and returns
 * its length; "" for operations that have no knobs to tune. */
CLNORM_API size_t clnorm_plan_tuning_key(const clnorm_plan *plan, char *text, size_t capacity);

/* A description for people, a line per kernel: name, grid, build options. Writes at most capacity bytes, always a
 * terminating NUL when capacity is not 0, and returns the length that the whole text has, as snprintf does. */
CLNORM_API size_t clnorm_plan_describe(const clnorm_plan *plan, char *text, size_t capacity);

/* Runs each kernel once over no rows, and waits: some drivers (PoCL) compile at the first launch of a grid. Optional. */
CLNORM_API clnorm_status clnorm_plan_warm_up(clnorm_plan *plan, cl_command_queue queue);

/* Part of a buffer. offset: bytes, a multiple of the element's size. mem NULL: absent. */
typedef struct clnorm_buffer {
    cl_mem mem;
    uint64_t offset;
} clnorm_buffer;

/* Where the random numbers of a call come from. Another seed, or another offset, is another mask. */
typedef struct clnorm_seed {
    uint64_t seed;
    uint64_t offset; /* distinguishes the calls of one seed */
} clnorm_seed;

/* Every tensor that any operation reads or writes. An operation wants just those that its descriptor speaks of; one that is
 * missing, or given without being wanted, is an error that names it. Outputs do not overlap anything but as said: an output
 * that may be an input itself has its place, element size and strides. An overlap is CLNORM_INVALID_BUFFER, but where two
 * tensors have different strides and so many rows that it would take long to find. Rows of two tensors may lie between each
 * other's. Inputs are in buffers that kernels may read, outputs in such that they may write; and also read:
 * residual_out, dweight and dbias with accumulate, a y that has a y_t. */
typedef struct clnorm_args {
    uint64_t size;               /* sizeof(clnorm_args) */
    clnorm_buffer x;             /* in  [rows, cols], x_stride */
    clnorm_buffer weight;        /* in  [cols]; with weight_rows [weight_rows, cols], weight's stride */
    clnorm_buffer bias;          /* likewise */
    clnorm_buffer z;             /* in  [rows, cols], z_stride: the gate */
    clnorm_buffer dy;            /* in  [rows, cols], dy_stride */
    clnorm_buffer y;             /* out [rows, cols], y_stride; may be x itself in a forward; in of softmax's backward,
                                    and of a norm's with y_given */
    clnorm_buffer mean;          /* out of the forward, in of the backward: [groups, rows] f32 (f64 with F64 tensors); of
                                    group norm [rows, groups] */
    clnorm_buffer rstd;          /* likewise */
    clnorm_buffer dx;            /* out [rows, cols], dx_stride; may be x, a y that is read itself or, without
                                    rope, dy */
    clnorm_buffer dz;            /* out [rows, cols], dz_stride; may be z itself */
    clnorm_buffer dweight;       /* out, in too with accumulate: of weight's shape, dweight's stride */
    clnorm_buffer dbias;         /* likewise */
    clnorm_buffer residual;      /* in  [rows, cols], residual_stride */
    clnorm_buffer row_scale;     /* in  [rows] f32 (f64 with F64 tensors) */
    clnorm_buffer residual_out;  /* out [rows, cols], residual_out_stride; may be residual itself */
    clnorm_buffer dropout_mask;  /* out [rows, cols], a byte each, row after row: 1 where x was kept, 0 where not */
    clnorm_buffer dresidual_out; /* in  [rows, cols], dresidual_out_stride */
    clnorm_buffer dresidual;     /* out [rows, cols], dresidual_stride; may be dresidual_out itself */
    clnorm_buffer q;             /* out of quantize, in of dequantize: [rows, cols], q_stride; dequantize writes x */
    clnorm_buffer q_t;           /* out [cols, rows], q_t_stride: q transposed */
    clnorm_buffer scale;         /* out of quantize, in of dequantize: as clnorm_scaling says, scale_dtype */
    clnorm_buffer x_scale;       /* in, of an 8-bit x: as its scaling says, scale_dtype */
    clnorm_buffer y_t;           /* out [cols, rows], y_t_stride: y transposed */
    clnorm_buffer y_scale;       /* out, of an 8-bit y: as its scaling says, scale_dtype */
    clnorm_buffer y_row_scale;   /* out [rows] y's scale_dtype: the scale that each row would have by itself */
    clnorm_buffer amax;          /* out, of scale's shape, f32 */
    clnorm_buffer fault;         /* out [1] uint32, with y_given: columns that are not exact enough */
    clnorm_buffer norm;          /* out of l2_norm: [groups, rows] f32 (f64 with F64 tensors): a segment's length */
    clnorm_buffer moments;       /* out of norm_statistics, in of what follows it: [groups, rows, 3]: see norm_slices.h */
    clnorm_buffer sums;          /* out of norm_backward_statistics, in of norm_backward_apply: [groups, rows, 2] */
    clnorm_buffer rope_cos;      /* in  [rope_positions, rope_dims / 2], rope_cos_stride */
    clnorm_buffer rope_sin;      /* likewise, rope_sin_stride */
    clnorm_buffer position;      /* in  [rows / rope_repeat, rounded up] int32: a row of rope_cos and rope_sin each */
    clnorm_buffer workspace;     /* scratch of clnorm_plan_workspace_size bytes at an offset that is a multiple of 64, not
                                    shared by enqueues that can overlap */
    const clnorm_seed *seed;     /* with dropout: read by the call, and not later; NULL: absent */
} clnorm_args;

/* Every tensor absent. */
#define CLNORM_ARGS_INIT                                                                                                  \
    {                                                                                                                     \
        sizeof(clnorm_args), {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0},      \
            {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, \
            {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, \
            {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL                                        \
    }
CLNORM_API void clnorm_args_init(clnorm_args *args);

/* Checks the arguments, binds them and launches; does not wait, allocate device memory or compile.
 * queue: of the context and device of the plan, in-order or out-of-order. wait_list: events of the same cl_context to
 * come first; one of another cl_context, and one that has failed already, is CLNORM_INVALID_ARGUMENT, and where one fails
 * later no kernel runs. event: may be NULL; else complete when all outputs are written, or failed (a negative execution
 * status) where an event of wait_list failed; to be released by the caller.
 * Several threads may enqueue the same plan; see row_split=exchange for how many wide backwards may overlap. */
CLNORM_API clnorm_status clnorm_plan_enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                             cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* The kernels that an enqueue of the plan runs, one after the other. */
CLNORM_API cl_uint clnorm_plan_kernel_count(const clnorm_plan *plan);

/* One of them. What is pointed to is the plan's. */
typedef struct clnorm_kernel_info {
    uint64_t size;        /* sizeof(clnorm_kernel_info) */
    const char *name;     /* as its source has it */
    cl_kernel kernel;     /* for questions alone, such as clGetKernelWorkGroupInfo's; its arguments are the plan's to set */
    size_t groups, items; /* work-groups, and work-items in each */
    uint64_t bytes;       /* of the tensors that it reads or writes, each once, and of its parts of the workspace */
    cl_uint arguments;    /* that an enqueue sets: two for a tensor or a part of the workspace, and two for a seed */
} clnorm_kernel_info;

#define CLNORM_KERNEL_INFO_INIT \
    { sizeof(clnorm_kernel_info), NULL, NULL, 0, 0, 0, 0 }

/* index: below clnorm_plan_kernel_count(plan), in the order in which they run. */
CLNORM_API clnorm_status clnorm_plan_kernel(const clnorm_plan *plan, cl_uint index, clnorm_kernel_info *info);

/* clnorm_plan_enqueue with an event for each kernel, to see where time goes. events: [clnorm_plan_kernel_count(plan)], all
 * of them to be released by the caller; a plan without kernels writes none. Of a kernel that is launched in two parts, as
 * an output lies over an input (accumulator=columns), the event is the second part's. */
CLNORM_API clnorm_status clnorm_plan_enqueue_kernels(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                                     cl_uint num_wait, const cl_event *wait_list, cl_event *events);

#ifdef __cplusplus
}
#endif

#endif
