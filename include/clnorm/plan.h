/* Plans: a descriptor compiled for its device, and the arguments of an enqueue. */
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
 * - clnorm_OPERATION_validate checks the descriptor, and writes what an enqueue of its plan needs (requirements may be
 *   NULL). It compiles nothing.
 * - clnorm_OPERATION_plan_create checks the descriptor, chooses a config, and builds or fetches the kernels. The plan
 *   belongs to the context and must be destroyed before it. The first call builds the program, which is slow; a call takes
 *   microseconds once the context has the program.
 * - clnorm_OPERATION makes a plan and enqueues it. The context keeps the 64 plans that were used last, so that a later call
 *   with the same descriptor costs little more than clnorm_plan_enqueue. Without args.workspace, the call also makes a
 *   buffer for the workspace; OpenCL frees it when the commands are done.
 *
 * Several threads may call these functions at once, also with one context. A descriptor is checked before anything is
 * compiled. The status of a wrong one is
 *
 *   CLNORM_INVALID_ARGUMENT   a pointer is NULL, desc.size is no size of a descriptor, or a newer one has an unknown member
 *   CLNORM_INVALID_ENUM       a value that its enumeration does not have, or a required dtype that is missing
 *   CLNORM_INVALID_VALUE      a number or flag outside its range, or without another one that it needs; a forced knob
 *   CLNORM_INVALID_SHAPE      sizes, strides, groups or a weight map that do not fit each other
 *   CLNORM_OVERFLOW           a tensor of 2^63 bytes or more
 *   CLNORM_UNSUPPORTED        a dtype, or a combination of options, that the operation or the device does not have
 *
 * and clnorm_error_detail() names the field, its value and what is expected. Making a plan can also fail with
 * CLNORM_BUILD_FAILED, CLNORM_UNSUPPORTED (the driver has no compiler), CLNORM_OUT_OF_HOST_MEMORY,
 * CLNORM_OUT_OF_DEVICE_MEMORY or CLNORM_OPENCL_ERROR. The arguments of an enqueue are checked before a kernel is launched:
 * a wrong one is CLNORM_INVALID_ARGUMENT, CLNORM_INVALID_BUFFER or CLNORM_INVALID_QUEUE. An enqueue can also fail with
 * CLNORM_OUT_OF_DEVICE_MEMORY, as where the device has no room for the workspace, with CLNORM_OUT_OF_HOST_MEMORY, or with
 * CLNORM_OPENCL_ERROR. */

/* A tensor of clnorm_args that an enqueue needs. */
typedef struct clnorm_tensor_info {
    const char *name;    /* of the member of clnorm_args, "x_scale"; a constant of the library */
    uint64_t rows, cols; /* the layout in memory: a vector, statistics or scales are one row of all their elements */
    uint64_t stride;     /* bytes from one row to the next: 0 for one row and for a repeated row; with outer dimensions that
                            of the fastest one */
    uint64_t element;    /* bytes of an element; offsets are multiples of it */
    uint64_t bytes;      /* from the first element to the end of the last: the buffer has at least these after the offset */
    uint32_t is_input;   /* kernels read it */
    uint32_t is_output;  /* kernels write it */
} clnorm_tensor_info;

/* What an enqueue of a descriptor's plan needs. tensors does not include the workspace. */
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

/* Frees the plan; NULL is allowed. Not thread-safe: no other call may use the plan at the same time or later. Commands that
 * are still running keep what they need, so that the queue need not be finished first. */
CLNORM_API void clnorm_plan_destroy(clnorm_plan *plan);

/* Bytes of args.workspace that an enqueue needs; 0 when it needs none. */
CLNORM_API uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan);

/* Writes the config that was chosen for the plan. */
CLNORM_API void clnorm_plan_config(const clnorm_plan *plan, clnorm_config *config);

/* Writes the configs that the library's model of the device estimates to be the fastest for the plan's problem, best first,
 * at most capacity of them: candidates for a search by measurement. Returns the number of candidates. It is 0 for a group
 * norm with the kernels of images (config.h), which have rules and no model. */
CLNORM_API size_t clnorm_plan_candidates(const clnorm_plan *plan, clnorm_config *configs, size_t capacity);

/* Writes the key of the plan's row in a tuning file, as snprintf does, and returns its length: "rms_norm bf16 4096". " few"
 * follows where x is small for the device (at most 64 KiB for each compute unit). The dtype is that of x (of y in softmax's
 * backward and with y_given, of q in dequantize); where another matrix has wider elements, the widest dtype follows it:
 * "rms_norm_backward f8e4m3/bf16 4096". The number is group_size, in quantize the scale_group, and cols for operations
 * without one. Group norm has cols x spatial / groups, and " last" with channels last: "group_norm bf16 320x1024/32 last".
 * The key is "" only for a NULL plan. */
CLNORM_API size_t clnorm_plan_tuning_key(const clnorm_plan *plan, char *text, size_t capacity);

/* Writes a description for people: for each kernel a line with name, grid and build options, then the origin of the config
 * where a tuning file has a row for it, and the size of the workspace. Writes at most capacity bytes with the terminating
 * NUL, and returns the length of the whole text, as snprintf does. */
CLNORM_API size_t clnorm_plan_describe(const clnorm_plan *plan, char *text, size_t capacity);

/* Runs each kernel once over no rows, and waits for the queue. Optional: some drivers (PoCL) compile at the first launch of
 * a grid, and this call takes that time instead of the first enqueue. Several threads may call it at once. */
CLNORM_API clnorm_status clnorm_plan_warm_up(clnorm_plan *plan, cl_command_queue queue);

/* The place of a tensor: a buffer, and an offset into it in bytes, a multiple of the element's size. mem NULL: absent.
 * Every offset gives the same results; kernels may be slower where one is no multiple of 128. */
typedef struct clnorm_buffer {
    cl_mem mem;
    uint64_t offset;
} clnorm_buffer;

/* The seed of a call's random numbers. Calls with another seed or another offset draw other numbers. */
typedef struct clnorm_seed {
    uint64_t seed;
    uint64_t offset; /* distinguishes calls with the same seed */
} clnorm_seed;

/* The buffers of every tensor that any operation reads or writes. Their strides are those of the descriptor. An operation
 * needs exactly the tensors that its descriptor has; a missing or surplus one is an error that names it. A tensor of 0
 * bytes, as with 0 rows, may be missing. An enqueue of 0 rows still waits for wait_list and returns an event.
 *
 * Inputs may overlap each other. An output that overlaps another tensor is an error, CLNORM_INVALID_BUFFER. Where the list
 * below says that an output may be an input itself, both have the same place, element size and strides. Rows of one tensor
 * may lie between the rows of another. An overlap is not always found where two tensors have many rows with different
 * strides.
 *
 * The flags of the buffers must allow kernels to read inputs and to write outputs. Kernels also read these outputs:
 * residual_out, measured scale and y_scale, a y that has a y_t, mean and rstd of group norm, rstd of an RMS norm of an x
 * with scales of groups to a y with one measured scale, fault, and dweight and dbias with accumulate. */
typedef struct clnorm_args {
    uint64_t size;               /* sizeof(clnorm_args) */
    clnorm_buffer x;             /* in  [rows, cols] */
    clnorm_buffer weight;        /* in  [cols]; with weight_rows [weight_rows, cols], with the stride of weight */
    clnorm_buffer bias;          /* likewise */
    clnorm_buffer z;             /* in  [rows, cols]: the gate */
    clnorm_buffer dy;            /* in  [rows, cols] */
    clnorm_buffer y;             /* out [rows, cols]; may be x itself in a forward. In softmax's backward, and in a norm's
                                    backward with y_given: in */
    clnorm_buffer mean;          /* out of the forward, in of the backward: [groups, rows] f32 (f64 with an x in F64); of
                                    group norm [rows, groups] */
    clnorm_buffer rstd;          /* likewise */
    clnorm_buffer dx;            /* out [rows, cols]; may be x itself, y itself where y is read or, without rope, dy
                                    itself; neither x nor dy with a dweight of L2 norm */
    clnorm_buffer dz;            /* out [rows, cols]; may be z itself */
    clnorm_buffer dweight;       /* out, with accumulate in too: the shape of weight, the stride of dweight */
    clnorm_buffer dbias;         /* likewise */
    clnorm_buffer residual;      /* in  [rows, cols] */
    clnorm_buffer row_scale;     /* in  [rows] f32 (f64 with an x in F64) */
    clnorm_buffer residual_out;  /* out [rows, cols]; may be residual itself */
    clnorm_buffer dropout_mask;  /* out [rows, cols] bytes, contiguous: 1 where x was kept, 0 where it was dropped */
    clnorm_buffer dresidual_out; /* in  [rows, cols] */
    clnorm_buffer dresidual;     /* out [rows, cols]; may be dresidual_out itself */
    clnorm_buffer q;             /* out of quantize, in of dequantize: [rows, cols]; dequantize writes x */
    clnorm_buffer q_t;           /* out [cols, rows]: q transposed */
    clnorm_buffer scale;       /* out of quantize, in of dequantize: scale_dtype, with the shape of q.scaling (tensor.h) */
    clnorm_buffer x_scale;     /* in, of an 8-bit x: scale_dtype, with the shape of x.scaling */
    clnorm_buffer y_t;         /* out [cols, rows]: y transposed */
    clnorm_buffer y_scale;     /* out, of an 8-bit y: scale_dtype, with the shape of y.scaling */
    clnorm_buffer y_row_scale; /* out [rows] y's scale_dtype: the scale that a row would have with a scale of its own */
    clnorm_buffer amax;        /* out, of scale's shape, f32 */
    clnorm_buffer fault;       /* out [1] uint32, with y_given: the number of columns that are not exact enough */
    clnorm_buffer norm;        /* out of l2_norm: [groups, rows] f32 (f64 with F64 tensors): a segment's length */
    clnorm_buffer moments;     /* out of norm_statistics, in of the other functions of norm_slices.h: [groups, rows, 3] */
    clnorm_buffer sums;        /* out of norm_backward_statistics, in of norm_backward_apply: [groups, rows, 2] */
    clnorm_buffer rope_cos;    /* in  [rope_positions, rope_dims / 2] */
    clnorm_buffer rope_sin;    /* likewise */
    clnorm_buffer position;    /* in  [rows / rope_repeat, rounded up] int32: rows of rope_cos and rope_sin */
    clnorm_buffer workspace;   /* scratch of clnorm_plan_workspace_size bytes; the offset is a multiple of 64. Enqueues
                                  that may run at the same time need a workspace each */
    const clnorm_seed *seed;   /* with dropout; with stochastic rounding it takes the place of desc.seed. Only read during
                                  the call. NULL: absent */
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

/* Checks the arguments, sets them and launches the plan's kernels. Does not wait, allocate device memory or compile.
 * Several threads may enqueue the same plan at once.
 *
 * queue: a queue of the plan's context and device, in-order or out-of-order.
 *
 * wait_list: num_wait events of the same cl_context, which complete before the first kernel starts. An event of another
 * cl_context, or one that has failed, is CLNORM_INVALID_ARGUMENT. If one fails later, no kernel runs.
 *
 * event: NULL, or receives an event, which the caller releases. It completes when all outputs are written. It fails (a
 * negative execution status) if an event of wait_list fails. Intel's runtime for CPUs (2026.2) shows such an event as
 * complete; only clWaitForEvents reports the failure. PoCL 3.1 aborts the process in two cases: if a plan of several
 * kernels waits for an event that fails, unless it was enqueued with clnorm_plan_enqueue_kernels; and if an in-order queue
 * gets another command, of any kind, after one that failed that way, unless clFinish was called between the two. */
CLNORM_API clnorm_status clnorm_plan_enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                             cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* The number of kernels that an enqueue of the plan runs, one after the other. */
CLNORM_API cl_uint clnorm_plan_kernel_count(const clnorm_plan *plan);

/* A kernel of a plan. Pointers are valid as long as the plan. */
typedef struct clnorm_kernel_info {
    uint64_t size;        /* sizeof(clnorm_kernel_info) */
    const char *name;     /* the name in the source */
    cl_kernel kernel;     /* for queries such as clGetKernelWorkGroupInfo alone: the plan sets its arguments */
    size_t groups, items; /* work-groups, and work-items in each */
    uint64_t bytes;       /* of the tensors that it reads or writes, each once, and of its parts of the workspace */
    cl_uint arguments;    /* set by each enqueue: one, two for a tensor or a part of the workspace, two for a seed, and one
                             more where messages have the launch's number */
} clnorm_kernel_info;

#define CLNORM_KERNEL_INFO_INIT \
    { sizeof(clnorm_kernel_info), NULL, NULL, 0, 0, 0, 0 }
CLNORM_API void clnorm_kernel_info_init(clnorm_kernel_info *info);

/* Fills in info about a kernel of the plan. index: below clnorm_plan_kernel_count(plan), in the order in which kernels run;
 * CLNORM_INVALID_VALUE for a larger one. CLNORM_INVALID_ARGUMENT: a NULL, or an info whose size is not set. */
CLNORM_API clnorm_status clnorm_plan_kernel(const clnorm_plan *plan, cl_uint index, clnorm_kernel_info *info);

/* clnorm_plan_enqueue with an event for each kernel, to profile the kernels. events: receives
 * clnorm_plan_kernel_count(plan) events, which the caller releases; a plan without kernels writes none. With
 * accumulator=columns or row_split=exchange, a kernel is launched in two parts where an output lies over an input; its
 * event is that of the second part. */
CLNORM_API clnorm_status clnorm_plan_enqueue_kernels(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                                     cl_uint num_wait, const cl_event *wait_list, cl_event *events);

#ifdef __cplusplus
}
#endif

#endif
