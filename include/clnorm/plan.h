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
 *   that from the second call on this costs little more than clnorm_plan_enqueue.
 *
 * Several threads may call them at once, with one context too. A descriptor is refused before anything is compiled, with
 *
 *   CLNORM_INVALID_ARGUMENT   a pointer is NULL, or desc.size is not that of a descriptor
 *   CLNORM_INVALID_ENUM       a value that its enumeration does not have, a dtype that is missing too
 *   CLNORM_INVALID_VALUE      a number or flag is outside its range, or is set without what it needs; a forced knob
 *   CLNORM_INVALID_SHAPE      sizes, strides, groups or a weight map that do not fit each other
 *   CLNORM_OVERFLOW           a tensor of 2^63 bytes or more
 *   CLNORM_UNSUPPORTED        a dtype, or options together, that the operation or the device does not have
 *
 * and clnorm_error_detail() names the field, its value and what is expected. Making a plan may also end with
 * CLNORM_BUILD_FAILED, CLNORM_OUT_OF_HOST_MEMORY or CLNORM_OPENCL_ERROR. Arguments of an enqueue are refused before a
 * kernel is launched, with CLNORM_INVALID_ARGUMENT, CLNORM_INVALID_BUFFER or CLNORM_INVALID_QUEUE; a workspace that the
 * device has no room for is CLNORM_OUT_OF_DEVICE_MEMORY. */

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

/* NULL is allowed. The plan is freed at once: every call with it in another thread must have returned before, and none may
 * begin later. Enqueued work keeps what it needs, so that the queue need not be finished first. */
CLNORM_API void clnorm_plan_destroy(clnorm_plan *plan);

/* Bytes of args.workspace that an enqueue needs; 0 when it needs none. */
CLNORM_API uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan);

/* The config that was chosen. */
CLNORM_API void clnorm_plan_config(const clnorm_plan *plan, clnorm_config *config);

/* Configs for the plan's problem that the library's model of the device estimates to be the fastest, best first: candidates
 * for a search by measurement. Writes at most capacity and returns how many there are; 0 for operations that have no knobs
 * to tune. */
CLNORM_API size_t clnorm_plan_candidates(const clnorm_plan *plan, clnorm_config *configs, size_t capacity);

/* The start of the tuning file's row for such plans: "rms_norm bf16 4096", and " few" after it where x is small for the
 * device (64 KiB for each compute unit). The dtype is x's; where another matrix has wider elements, the widest dtype comes
 * after it: "rms_norm_backward f8e4m3/bf16 4096". Writes it as snprintf does, and returns its length; "" for operations
 * that have no knobs to tune. */
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

/* Every tensor that any operation reads or writes, with the strides of the descriptor. An operation needs exactly the
 * tensors that its descriptor has: one that is missing or surplus is an error that names it.
 *
 * An output does not overlap another tensor, which is CLNORM_INVALID_BUFFER. Where it may be an input itself, as said
 * below, both have the same place, element size and strides. Rows of one tensor may lie between those of another; where
 * both have so many rows, of different strides, that the search would take long, overlaps are not found.
 *
 * Kernels must be allowed to read the buffers of inputs and to write those of outputs. They also read these outputs:
 * residual_out, dweight and dbias with accumulate, a y that has a y_t. */
typedef struct clnorm_args {
    uint64_t size;               /* sizeof(clnorm_args) */
    clnorm_buffer x;             /* in  [rows, cols] */
    clnorm_buffer weight;        /* in  [cols]; with weight_rows [weight_rows, cols], weight's stride */
    clnorm_buffer bias;          /* likewise */
    clnorm_buffer z;             /* in  [rows, cols]: the gate */
    clnorm_buffer dy;            /* in  [rows, cols] */
    clnorm_buffer y;             /* out [rows, cols]; may be x itself in a forward; in of softmax's backward,
                                    and of a norm's with y_given */
    clnorm_buffer mean;          /* out of the forward, in of the backward: [groups, rows] f32 (f64 with F64 tensors); of
                                    group norm [rows, groups] */
    clnorm_buffer rstd;          /* likewise */
    clnorm_buffer dx;            /* out [rows, cols]; may be x, a y that is read itself or, without
                                    rope, dy; neither x nor dy with L2 norm's dweight */
    clnorm_buffer dz;            /* out [rows, cols]; may be z itself */
    clnorm_buffer dweight;       /* out, in too with accumulate: of weight's shape, dweight's stride */
    clnorm_buffer dbias;         /* likewise */
    clnorm_buffer residual;      /* in  [rows, cols] */
    clnorm_buffer row_scale;     /* in  [rows] f32 (f64 with F64 tensors) */
    clnorm_buffer residual_out;  /* out [rows, cols]; may be residual itself */
    clnorm_buffer dropout_mask;  /* out [rows, cols], a byte each, row after row: 1 where x was kept, 0 where not */
    clnorm_buffer dresidual_out; /* in  [rows, cols] */
    clnorm_buffer dresidual;     /* out [rows, cols]; may be dresidual_out itself */
    clnorm_buffer q;             /* out of quantize, in of dequantize: [rows, cols]; dequantize writes x */
    clnorm_buffer q_t;           /* out [cols, rows]: q transposed */
    clnorm_buffer scale;         /* out of quantize, in of dequantize: as clnorm_scaling says, scale_dtype */
    clnorm_buffer x_scale;       /* in, of an 8-bit x: as its scaling says, scale_dtype */
    clnorm_buffer y_t;           /* out [cols, rows]: y transposed */
    clnorm_buffer y_scale;       /* out, of an 8-bit y: as its scaling says, scale_dtype */
    clnorm_buffer y_row_scale;   /* out [rows] y's scale_dtype: the scale that each row would have by itself */
    clnorm_buffer amax;          /* out, of scale's shape, f32 */
    clnorm_buffer fault;         /* out [1] uint32, with y_given: columns that are not exact enough */
    clnorm_buffer norm;          /* out of l2_norm: [groups, rows] f32 (f64 with F64 tensors): a segment's length */
    clnorm_buffer moments;       /* out of norm_statistics, in of what follows it: [groups, rows, 3]: see norm_slices.h */
    clnorm_buffer sums;          /* out of norm_backward_statistics, in of norm_backward_apply: [groups, rows, 2] */
    clnorm_buffer rope_cos;      /* in  [rope_positions, rope_dims / 2] */
    clnorm_buffer rope_sin;      /* likewise */
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

/* Checks the arguments, binds them and launches; does not wait, allocate device memory or compile. Several threads may
 * enqueue the same plan at once.
 *
 * queue: of the plan's context and device, in-order or out-of-order. wait_list: events of the same cl_context that complete
 * before the first kernel starts. An event of another cl_context, or one that has failed, is CLNORM_INVALID_ARGUMENT; where
 * one fails later, no kernel runs. event: NULL, or the event that the caller gets and releases. It completes when all
 * outputs are written, and fails (a negative execution status) where an event of wait_list fails. Intel's runtime
 * for CPUs (2026.2) shows such an event as complete: only waiting for it tells. PoCL 3.1 aborts the process where a
 * plan of several kernels waits for an event that fails, unless clnorm_plan_enqueue_kernels gave the events of all. */
CLNORM_API clnorm_status clnorm_plan_enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                             cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* The kernels that an enqueue of the plan runs, one after the other. */
CLNORM_API cl_uint clnorm_plan_kernel_count(const clnorm_plan *plan);

/* One of them. Pointers are valid as long as the plan. */
typedef struct clnorm_kernel_info {
    uint64_t size;        /* sizeof(clnorm_kernel_info) */
    const char *name;     /* as its source has it */
    cl_kernel kernel;     /* for queries such as clGetKernelWorkGroupInfo alone: the plan sets its arguments */
    size_t groups, items; /* work-groups, and work-items in each */
    uint64_t bytes;       /* of the tensors that it reads or writes, each once, and of its parts of the workspace */
    cl_uint arguments;    /* that an enqueue sets: two for a tensor or a part of the workspace, and two for a seed */
} clnorm_kernel_info;

#define CLNORM_KERNEL_INFO_INIT \
    { sizeof(clnorm_kernel_info), NULL, NULL, 0, 0, 0, 0 }
CLNORM_API void clnorm_kernel_info_init(clnorm_kernel_info *info);

/* index: below clnorm_plan_kernel_count(plan), in the order in which they run. */
CLNORM_API clnorm_status clnorm_plan_kernel(const clnorm_plan *plan, cl_uint index, clnorm_kernel_info *info);

/* clnorm_plan_enqueue with an event for each kernel, to see where time goes. events: [clnorm_plan_kernel_count(plan)], all
 * of them to be released by the caller; a plan without kernels writes none. A kernel is launched in two parts
 * where an output lies over an input (accumulator=columns): its event is the second part's. */
CLNORM_API clnorm_status clnorm_plan_enqueue_kernels(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                                     cl_uint num_wait, const cl_event *wait_list, cl_event *events);

#ifdef __cplusplus
}
#endif

#endif
