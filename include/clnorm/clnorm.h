/* libclnorm: normalisation kernels in OpenCL C.
 *
 * This header is the manual, in order of use:
 *
 *   1. statuses          what every call returns, and the sentence behind a failure
 *   2. devices           which OpenCL devices are there, and the one that a selector means
 *   3. context           one per (cl_context, cl_device_id): device facts, compiled programs, caches
 *   4. descriptors       what is asked for: shapes, dtypes, options
 *   5. plans             a descriptor made ready for its device: compiled kernels, grids, workspace size
 *   6. enqueue           a plan, a queue, and the buffers
 *   7. one call          the same without holding a plan
 *
 * Conventions. A tensor is a cl_mem and a byte offset into it. x of any rank is flattened to [rows, cols], row-major with
 * a stride of its own; offsets are in bytes, strides and shapes in elements. Functions never abort, print or touch
 * global state; they are thread-safe unless they say otherwise. A function that fails leaves its outputs as they were.
 */
#ifndef CLNORM_CLNORM_H
#define CLNORM_CLNORM_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(CLNORM_STATIC)
#define CLNORM_API
#elif defined(_WIN32)
#define CLNORM_API __declspec(dllimport)
#else
#define CLNORM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CLNORM_VERSION_MAJOR 0
#define CLNORM_VERSION_MINOR 1
#define CLNORM_VERSION_PATCH 0

/* "0.1.0", of the library that is linked, which can be newer than this header. */
CLNORM_API const char *clnorm_version(void);

/* ---------------------------------------------------------------------------------------------------- 1. statuses */

typedef enum clnorm_status {
    CLNORM_SUCCESS = 0,
    CLNORM_INVALID_ARGUMENT, /* a NULL where a value is due, a wrong struct size */
    CLNORM_INVALID_ENUM,     /* a value that its enumeration does not have */
    CLNORM_INVALID_VALUE,    /* a number outside its range: eps, a forced knob, … */
    CLNORM_INVALID_SHAPE,    /* shapes, strides and groups that do not fit each other */
    CLNORM_INVALID_BUFFER,   /* missing, too small, misaligned, or of another cl_context */
    CLNORM_INVALID_QUEUE,    /* a queue of another context or device */
    CLNORM_INVALID_SELECTOR, /* a device selector that cannot be read */
    CLNORM_OVERFLOW,         /* rows × cols × size does not fit 63 bits */
    CLNORM_UNSUPPORTED,      /* sound, but this device cannot do it */
    CLNORM_DEVICE_NOT_FOUND, /* no OpenCL device, or none that the selector means */
    CLNORM_OUT_OF_HOST_MEMORY,
    CLNORM_OUT_OF_DEVICE_MEMORY,
    CLNORM_BUILD_FAILED, /* the driver refused a kernel; the detail has the head of its log */
    CLNORM_OPENCL_ERROR  /* any other OpenCL error; the detail names the call and the code */
} clnorm_status;

/* One sentence for a status. Never NULL; "unknown status" for a number that is none. */
CLNORM_API const char *clnorm_status_text(clnorm_status status);

/* What the last failed call of this thread had to say: the field, the value it had and the value it should have, and the
 * OpenCL code where there is one. "" before the first failure. Valid until the next failure in this thread. */
CLNORM_API const char *clnorm_error_detail(void);

/* The OpenCL code of the last failed call of this thread; CL_SUCCESS when OpenCL had no part in it. */
CLNORM_API cl_int clnorm_error_opencl(void);

/* ----------------------------------------------------------------------------------------------------- 2. devices */

typedef enum clnorm_device_kind {
    CLNORM_DEVICE_GPU = 1,
    CLNORM_DEVICE_ACCELERATOR,
    CLNORM_DEVICE_CPU,
    CLNORM_DEVICE_OTHER
} clnorm_device_kind;

/* Who wrote the OpenCL implementation: it decides what is known about it, whatever hardware is below. */
typedef enum clnorm_platform_family {
    CLNORM_PLATFORM_OTHER = 0,
    CLNORM_PLATFORM_POCL,
    CLNORM_PLATFORM_NVIDIA,
    CLNORM_PLATFORM_MESA, /* rusticl, also where llvmpipe stands in for a GPU */
    CLNORM_PLATFORM_OCLGRIND
} clnorm_platform_family;

/* Everything that the library knows of a device; what it decides, it decides from this. Sizes are in bytes. */
typedef struct clnorm_device_info {
    cl_platform_id platform;
    cl_device_id device;
    unsigned platform_index; /* in clGetPlatformIDs' order */
    unsigned device_index;   /* within its platform, in clGetDeviceIDs' order */
    clnorm_device_kind kind;
    clnorm_platform_family family;
    char name[256];
    char vendor[256];
    char platform_name[256];
    char platform_version[256];
    char version[256]; /* CL_DEVICE_VERSION: "OpenCL 3.0 …" */
    char driver[256];
    char uuid[40];             /* 8-4-4-4-12 hexadecimal digits; "" where the device has none */
    unsigned opencl_c_version; /* 100 · major + 10 · minor: 120, 200, 300 */
    unsigned compute_units;
    unsigned clock_mhz;
    unsigned native_vector_float; /* floats in a hardware vector register, 1 on most GPUs */
    unsigned subgroup_size;       /* work-items that run in step: 32 on NVIDIA; 0 where unknown */
    unsigned compute_capability;  /* NVIDIA: 10 · major + minor, 90 for Hopper; 0 elsewhere */
    uint64_t global_memory;
    uint64_t max_allocation;
    uint64_t cache_size;   /* last level that the device tells of; 0 where it tells none */
    uint64_t local_memory; /* a __local array declared in a kernel may have this size */
    uint64_t max_work_group_size;
    bool little_endian;
    bool fp16;          /* cl_khr_fp16: arithmetic; f16 tensors work without it */
    bool fp64;          /* f64 tensors need it */
    bool subgroups;     /* cl_khr_subgroups or the OpenCL 3.0 feature */
    bool device_fences; /* OpenCL C's memory fences at device scope */
} clnorm_device_info;

/* Lists every device, best first: GPUs, then accelerators, then CPUs, each by compute units × clock.
 * infos: room for capacity entries, may be NULL when capacity is 0. *count: how many there are, which can be more than
 * capacity. No device at all is success with a count of 0. */
CLNORM_API clnorm_status clnorm_device_list(clnorm_device_info *infos, size_t capacity, size_t *count);

/* The facts of one device; a sub-device has the indices of the device that it is a part of. */
CLNORM_API clnorm_status clnorm_device_describe(cl_device_id device, clnorm_device_info *info);

/* The device that a selector means. selector: alternatives split by ';', the first that any device matches wins; each is
 * comma-separated terms that must all hold, of gpu, cpu, accelerator, P:D (indices as above), uuid:…, name=TEXT,
 * vendor=TEXT, platform=TEXT (case-insensitive parts), memory>=8G (K, M, G or T, powers of 1024), fp16, fp64, subgroups.
 * NULL or "": the environment variable CLNORM_DEVICE, and where that is unset or empty too, the best device. */
CLNORM_API clnorm_status clnorm_device_select(const char *selector, clnorm_device_info *info);

/* ----------------------------------------------------------------------------------------------------- 3. context */

typedef struct clnorm_context clnorm_context;

/* Called with one line, without a newline, for each thing chosen, built or fetched; from whichever thread did it. */
typedef void (*clnorm_log_fn)(const char *line, void *user);

typedef struct clnorm_context_options {
    size_t size;       /* sizeof(clnorm_context_options) */
    clnorm_log_fn log; /* NULL: silent */
    void *log_user;
    /* Where compiled programs are kept between processes. NULL: $CLNORM_CACHE_DIR, else $XDG_CACHE_HOME/clnorm, else
     * ~/.cache/clnorm. CLNORM_CACHE=0 in the environment, or "" here, keeps none. */
    const char *cache_dir;
} clnorm_context_options;

static inline clnorm_context_options clnorm_context_options_init(void) {
    const clnorm_context_options options = {sizeof(clnorm_context_options), NULL, NULL, NULL};
    return options;
}
#define CLNORM_CONTEXT_OPTIONS_INIT clnorm_context_options_init()

/* Makes the library ready for one device of a cl_context, which it retains. options may be NULL. */
CLNORM_API clnorm_status clnorm_context_create(cl_context cl, cl_device_id device, const clnorm_context_options *options,
                                               clnorm_context **context);

/* Releases everything that the context made. NULL is allowed. Its plans must have been destroyed; commands that are still
 * running keep what they need. */
CLNORM_API void clnorm_context_destroy(clnorm_context *context);

/* The facts of its device, valid as long as the context. */
CLNORM_API const clnorm_device_info *clnorm_context_device(const clnorm_context *context);

/* The folder of the on-disk program cache, "" when there is none; valid as long as the context. */
CLNORM_API const char *clnorm_context_cache_dir(const clnorm_context *context);

/* The text file of measured configs for a device, as `clnorm tune` writes it and a new context reads it: $CLNORM_TUNING,
 * else DEVICE.tuning in $XDG_CONFIG_HOME/clnorm or ~/.config/clnorm. A plan whose descriptor forces no knob takes those of
 * the file's row for its operation, dtype and group_size; without one, or where the file is of another driver or cannot be
 * understood, it has the library's own choice. clnorm_plan_describe says which. CLNORM_TUNING=0 reads none. Writes the
 * path,
 * "" for none, as snprintf does, and returns its length. */
CLNORM_API size_t clnorm_tuning_path(const clnorm_device_info *device, char *path, size_t capacity);

/* The cache of compiled programs on disk keeps itself in order; what follows is for looking into it and for having its
 * space back. dir: a folder as in clnorm_context_options, NULL for the one that the environment names. */

/* Writes the folder that the environment names, "" for none, as snprintf does: at most capacity bytes with the terminating
 * NUL. Returns the length that the whole path has. */
CLNORM_API size_t clnorm_cache_dir(char *path, size_t capacity);

/* A file of the cache. The strings are valid until the callback returns. */
typedef struct clnorm_cache_entry {
    const char *file;    /* its name within the folder */
    uint64_t size;       /* bytes */
    int64_t last_used;   /* seconds since 1970 */
    const char *source;  /* "norm_forward.cl"; "", as are the next two, where the file is unfinished or damaged */
    const char *device;  /* the name of the device that it was built for */
    const char *options; /* build options */
} clnorm_cache_entry;

typedef void (*clnorm_cache_fn)(const clnorm_cache_entry *entry, void *user);

/* Calls each for every file of the cache, the latest used first. A folder that is not there has none; one that cannot be
 * read or that is not the user's alone to write to is CLNORM_INVALID_ARGUMENT. */
CLNORM_API clnorm_status clnorm_cache_list(const char *dir, clnorm_cache_fn each, void *user);

/* Removes them all, also while other processes work with them. *removed: how many there were; may be NULL. */
CLNORM_API clnorm_status clnorm_cache_clear(const char *dir, size_t *removed);

/* ------------------------------------------------------------------------------------------------- 4. descriptors */

typedef enum clnorm_dtype {
    CLNORM_DTYPE_NONE = 0, /* where a tensor is optional: it is absent; elsewhere: the default that the field names */
    CLNORM_F32,
    CLNORM_F16,  /* IEEE 754 binary16 */
    CLNORM_BF16, /* bfloat16: the upper half of a binary32 */
    CLNORM_F64,  /* arithmetic in double; then every tensor that is present must be F64, statistics too */
    /* The 8-bit types of the OCP specification OFP8 (2023), where an operation speaks of them. They go with scales. */
    CLNORM_F8_E4M3, /* "fn": up to 448, in steps of 2^-9 and up, no infinities, one NaN */
    CLNORM_F8_E5M2  /* the upper half of an F16: up to 57344, in steps of 2^-16 and up */
} clnorm_dtype;

/* Bytes of one element; 0 for CLNORM_DTYPE_NONE and for a number that is no dtype. */
CLNORM_API size_t clnorm_dtype_size(clnorm_dtype dtype);

/* "f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2", "none". */
CLNORM_API const char *clnorm_dtype_name(clnorm_dtype dtype);

/* Layer normalisation: Ba, Kiros, Hinton 2016, arXiv:1607.06450. RMS normalisation: Zhang, Sennrich 2019, arXiv:1910.07467.
 */
typedef enum clnorm_norm { CLNORM_LAYER_NORM = 1, CLNORM_RMS_NORM } clnorm_norm;

typedef enum clnorm_gate {
    CLNORM_GATE_NONE = 0,
    CLNORM_GATE_SILU,   /* act(z) = z · sigmoid(z) */
    CLNORM_GATE_SIGMOID /* act(z) = 1 / (1 + exp(−z)) */
} clnorm_gate;

/* A function of each element of the norm's result. */
typedef enum clnorm_activation {
    CLNORM_ACTIVATION_NONE = 0,
    CLNORM_ACTIVATION_GELU,      /* n · Φ(n), Φ(n) = (1 + erf(n / √2)) / 2: Hendrycks, Gimpel 2016, arXiv:1606.08415 */
    CLNORM_ACTIVATION_GELU_TANH, /* n · (1 + tanh(√(2/π) · (n + 0.044715 n³))) / 2, from the same */
    CLNORM_ACTIVATION_SILU       /* n · sigmoid(n) */
} clnorm_activation;

/* How a kernel runs on its device. In a descriptor: a wish, 0 meaning "you choose"; a wish that the device or the shape
 * cannot honour is refused, never bent. From clnorm_plan_config: what was chosen. Results of the same config are the same
 * bits, run after run and for any number of rows. */
typedef struct clnorm_config {
    uint32_t vec;      /* elements per memory access: 1, 2, 4, 8, 16 */
    uint32_t lanes;    /* work-items that share one segment: a power of two */
    uint32_t segments; /* segments that a work-group holds at once: a power of two */
    uint32_t rounds;   /* how often a work-group goes on to its next segments, at least */
    uint32_t keep;     /* a clnorm_keep */
    uint32_t unroll;   /* re-read: vectors that a lane takes in at once, 1 to 16 */
    uint32_t reduce;   /* a clnorm_reduce: how lanes add up */
    uint32_t stores;   /* a clnorm_stores */
    uint32_t weights;  /* a clnorm_weights: keep registers: when weight and bias are read */
    uint32_t isa;      /* a clnorm_isa: instructions beyond OpenCL C 1.2 */
    uint32_t tile;     /* backward: columns of a segment that a work-group works on; group_size at most */
    uint32_t gather;   /* backward: a clnorm_gather: where dweight and dbias are added up */
    uint32_t fetch;    /* backward: a clnorm_fetch: keep registers: when a row is fetched */
    uint32_t chunks;   /* backward: pieces that the sums of a segment in tiles are taken in */
} clnorm_config;

/* Configs as words, "vec=8,lanes=128,keep=registers": every knob that is not 0, named as its field is, with a number or the
 * end of an enumerator's name in small letters. Writes at most capacity bytes and returns the whole text's length, as
 * snprintf does. */
CLNORM_API size_t clnorm_config_text(const clnorm_config *config, char *text, size_t capacity);

/* Reads such words; knobs that are not named are 0. "" is a config of which everything is chosen. */
CLNORM_API clnorm_status clnorm_config_parse(const char *text, clnorm_config *config);

/* Where a segment is while its statistics are taken. */
typedef enum clnorm_keep {
    CLNORM_KEEP_REGISTERS = 1, /* read once, held by its lanes */
    CLNORM_KEEP_REREAD         /* read again, from a cache as a rule */
} clnorm_keep;

typedef enum clnorm_reduce {
    CLNORM_REDUCE_TREE = 1, /* local memory and barriers: any device */
    CLNORM_REDUCE_SHUFFLE,  /* NVIDIA's shfl within 32 lanes, local memory between them */
    CLNORM_REDUCE_SUBGROUP  /* sub_group_reduce_add, local memory between sub-groups */
} clnorm_reduce;

typedef enum clnorm_stores {
    CLNORM_STORES_CACHED = 1,
    CLNORM_STORES_STREAMING /* past the caches, for outputs larger than they are */
} clnorm_stores;

typedef enum clnorm_weights {
    CLNORM_WEIGHTS_LATE = 1, /* when they are needed */
    CLNORM_WEIGHTS_EARLY,    /* keep registers: together with x, which costs registers and saves latency */
    CLNORM_WEIGHTS_KEPT      /* keep re-read: late, and caches are asked to keep them */
} clnorm_weights;

typedef enum clnorm_isa {
    CLNORM_ISA_PORTABLE = 1, /* OpenCL C 1.2 alone */
    CLNORM_ISA_PTX           /* inline PTX conversions, NVIDIA compute capability 8.0 and up */
} clnorm_isa;

typedef enum clnorm_gather {
    CLNORM_GATHER_REGISTERS = 1, /* by each work-item for its columns, over all the rows that it sees */
    CLNORM_GATHER_LOCAL,         /* in local memory */
    CLNORM_GATHER_MEMORY,        /* in the work-group's own slot of the workspace, which caches hold; not when locked */
    CLNORM_GATHER_SPLIT          /* dweight as in registers, dbias in local memory */
} clnorm_gather;

typedef enum clnorm_fetch {
    CLNORM_FETCH_IN_TURN = 1, /* when the row before it is done */
    CLNORM_FETCH_AHEAD        /* while the row before it is worked on, which costs registers and saves latency */
} clnorm_fetch;

/* Forward normalisation of [rows, cols], one segment of group_size neighbouring elements at a time:
 *
 *   s = residual + row_scale · dropout(x), of which what is not asked for is left out; or x · act(z) with gate_first
 *   x̂ = (s − mean) · rstd for layer norm, s · rstd for RMS norm
 *   mean = Σs / group_size,   rstd = 1 / √(Σ(s − mean)² / group_size + eps), with mean taken as 0 for RMS norm
 *   n = x̂ · (weight_offset + weight) + bias
 *   y = activation(n), then · act(z) without gate_first
 *
 * Arithmetic and sums are in f32, in f64 for F64 tensors. y is rounded to nearest even; NaN and infinities pass through.
 * residual_out is s, rounded to its dtype; statistics and x̂ are those of s before that rounding.
 *
 * dropout(x) is x / (1 − p) for the elements that are kept, and 0 for the others, whatever x is there. The element of row r
 * and column c of the call is kept where word c mod 4 of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random
 * numbers: as easy as 1, 2, 3") is at least ⌊p · 2³²⌋, with the counter (c / 4, r, low and high word of args.seed's offset)
 * and the key (low and high word of its seed): it depends on nothing else, and is never stored. */
typedef struct clnorm_norm_desc {
    size_t size;         /* sizeof(clnorm_norm_desc) */
    uint64_t rows;       /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;       /* 1 and up */
    uint64_t group_size; /* elements of a segment, a divisor of cols; 0: cols */
    uint64_t x_stride;   /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride;   /* likewise; at least cols, so that rows of y do not overlap */
    uint64_t z_stride;   /* likewise */
    uint64_t residual_stride;
    uint64_t residual_out_stride;
    clnorm_norm norm;
    clnorm_dtype x_dtype;
    clnorm_dtype y_dtype;            /* CLNORM_DTYPE_NONE: as x */
    clnorm_dtype z_dtype;            /* CLNORM_DTYPE_NONE: as x; read only when there is a gate */
    clnorm_dtype weight_dtype;       /* CLNORM_DTYPE_NONE: no weight, which stands for ones */
    clnorm_dtype bias_dtype;         /* CLNORM_DTYPE_NONE: no bias */
    clnorm_dtype residual_dtype;     /* CLNORM_DTYPE_NONE: no residual; not with gate_first */
    clnorm_dtype residual_out_dtype; /* CLNORM_DTYPE_NONE: s is not written; needs a residual */
    clnorm_gate gate;
    clnorm_activation activation;
    bool gate_first;      /* the gate is applied to x, before the statistics */
    bool save_mean;       /* write mean; layer norm only */
    bool save_rstd;       /* write rstd */
    bool save_mask;       /* write dropout_mask, to look at; needs dropout */
    bool row_scale;       /* every row of x has a factor (stochastic depth: 0 or 1 / keep rate); not with gate_first */
    double eps;           /* added to the variance, 0 and up, finite */
    double weight_offset; /* added to every weight: 1 for zero-centred weights; needs a weight unless 0 */
    double dropout;       /* p, the probability of 0, in [0, 1); 0: none. Not with gate_first; rows and cols up to 2^32 */
    clnorm_config config; /* forced knobs; all 0 as a rule */
} clnorm_norm_desc;

/* A descriptor of nothing yet: f32 x, eps 1e-5, every option off. Set norm, rows and cols at least. */
static inline clnorm_norm_desc clnorm_norm_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_norm_desc desc;
    desc.size = sizeof(clnorm_norm_desc);
    desc.norm = CLNORM_LAYER_NORM;
    desc.rows = 0;
    desc.cols = 0;
    desc.group_size = 0;
    desc.x_stride = desc.y_stride = desc.z_stride = desc.residual_stride = desc.residual_out_stride = 0;
    desc.x_dtype = CLNORM_F32;
    desc.y_dtype = desc.z_dtype = desc.weight_dtype = desc.bias_dtype = CLNORM_DTYPE_NONE;
    desc.residual_dtype = desc.residual_out_dtype = CLNORM_DTYPE_NONE;
    desc.gate = CLNORM_GATE_NONE;
    desc.activation = CLNORM_ACTIVATION_NONE;
    desc.gate_first = desc.save_mean = desc.save_rstd = desc.save_mask = desc.row_scale = false;
    desc.eps = 1e-5;
    desc.weight_offset = desc.dropout = 0;
    desc.config = automatic;
    return desc;
}
#define CLNORM_NORM_DESC_INIT clnorm_norm_desc_init()

/* How the sums over rows, dweight and dbias, come together from the work-groups that each see some of the rows. */
typedef enum clnorm_reduction {
    CLNORM_REDUCTION_PARTIAL = 1, /* each work-group writes a slot of its own: the same bits from run to run */
    CLNORM_REDUCTION_LOCKED /* a few slots, a spin lock each: bounded workspace, sums in an order that differs between runs
                             */
} clnorm_reduction;

/* The gradients of the forward normalisation above, with dy = ∂L/∂y and so on, where
 *
 *   n = x̂ · (weight_offset + weight) + bias
 *   y = activation(n), or activation(n) · act(z) with a gate that is not first
 *   dn = dy · activation′(n), or dy · act(z) · activation′(n) with such a gate
 *   wdn = (weight_offset + weight) · dn
 *   c1 = Σ(x̂ · wdn) / group_size,   c2 = Σwdn / group_size for layer norm, 0 for RMS norm
 *   ds = rstd · (wdn − x̂ · c1 − c2), then + dresidual_out, what has come to s by way of residual_out
 *   dresidual = ds
 *   dx = row_scale · dropout(ds), of which what is not asked for is left out; or ds · act(z) with gate_first
 *   dz = dy · activation(n) · act′(z), or ds · x · act′(z) with gate_first
 *   dweight = Σ over rows of dn · x̂,   dbias = Σ over rows of dn
 *
 * s is made of x and residual as in the forward, with the same mask for the same seed; or with s_given, x is s itself, such
 * as residual_out has it, and dropout and row_scale matter to dx alone.
 *
 * An output whose dtype is CLNORM_DTYPE_NONE is not asked for, and costs nothing. Arithmetic and sums are in f32, in f64
 * for F64 tensors. With 0 rows dweight and dbias are 0, or stay as they are with accumulate. */
typedef struct clnorm_norm_backward_desc {
    size_t size;         /* sizeof(clnorm_norm_backward_desc) */
    uint64_t rows;       /* 0 and up */
    uint64_t cols;       /* 1 and up */
    uint64_t group_size; /* as in the forward */
    uint64_t x_stride;   /* elements from one row to the next, at least cols; 0: cols */
    uint64_t z_stride;   /* likewise, as are all of these */
    uint64_t dy_stride;
    uint64_t x_group_size; /* of an 8-bit x: columns that an x_scale is for: 16, 32, 64 or 128, a divisor of group_size.
                              Else 0 */
    uint64_t dx_stride;
    uint64_t dz_stride;
    uint64_t y_stride;
    uint64_t residual_stride;
    uint64_t dresidual_out_stride;
    uint64_t dresidual_stride;
    clnorm_norm norm;
    clnorm_dtype x_dtype;        /* F8_E4M3 or F8_E5M2 too: what is normalised is x · x_scale then, with rstd_given, and
                                    without gate, activation, residual, dropout and row scale */
    clnorm_dtype x_scale_dtype;  /* of an 8-bit x: F32 or BF16. Else CLNORM_DTYPE_NONE */
    clnorm_dtype z_dtype;        /* CLNORM_DTYPE_NONE: as x; read only when there is a gate */
    clnorm_dtype dy_dtype;       /* CLNORM_DTYPE_NONE: as x, unless that has 8 bits */
    clnorm_dtype weight_dtype;   /* CLNORM_DTYPE_NONE: no weight, which stands for ones */
    clnorm_dtype bias_dtype;     /* CLNORM_DTYPE_NONE: no bias; only dz and y depend on it */
    clnorm_dtype dx_dtype;       /* CLNORM_DTYPE_NONE, as in all of these: not asked for */
    clnorm_dtype dz_dtype;       /* needs a gate */
    clnorm_dtype dweight_dtype;  /* F32, or any other; also without a weight */
    clnorm_dtype dbias_dtype;    /* likewise; also without a bias */
    clnorm_dtype y_dtype;        /* y is computed again, for what the forward did not keep */
    clnorm_dtype residual_dtype; /* CLNORM_DTYPE_NONE: no residual, or s_given; not with gate_first */
    clnorm_dtype dresidual_out_dtype; /* CLNORM_DTYPE_NONE: there is no dresidual_out; not with gate_first */
    clnorm_dtype dresidual_dtype;     /* CLNORM_DTYPE_NONE: not asked for; needs a residual or s_given */
    clnorm_gate gate;
    clnorm_activation activation;
    clnorm_reduction reduction; /* 0: CLNORM_REDUCTION_PARTIAL */
    uint32_t slots;             /* 1 and up: of CLNORM_REDUCTION_LOCKED */
    bool gate_first;
    bool mean_given;      /* mean is read, as the forward saved it, and not computed again; layer norm: both or neither */
    bool rstd_given;      /* likewise rstd */
    bool accumulate;      /* dweight and dbias are added to what is there */
    bool s_given;         /* x is s; not with gate_first */
    bool row_scale;       /* as in the forward */
    double eps;           /* as in the forward; unused when rstd is given */
    double weight_offset; /* as in the forward */
    double dropout;       /* as in the forward */
    clnorm_config config; /* forced knobs; all 0 as a rule */
} clnorm_norm_backward_desc;

/* A descriptor of nothing yet: f32 x, no output, 128 slots, eps 1e-5, every option off. */
static inline clnorm_norm_backward_desc clnorm_norm_backward_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_norm_backward_desc desc;
    desc.size = sizeof(clnorm_norm_backward_desc);
    desc.norm = CLNORM_LAYER_NORM;
    desc.rows = desc.cols = desc.group_size = 0;
    desc.x_stride = desc.z_stride = desc.dy_stride = desc.dx_stride = desc.dz_stride = desc.y_stride = 0;
    desc.residual_stride = desc.dresidual_out_stride = desc.dresidual_stride = 0;
    desc.x_group_size = 0;
    desc.x_dtype = CLNORM_F32;
    desc.x_scale_dtype = CLNORM_DTYPE_NONE;
    desc.z_dtype = desc.dy_dtype = desc.weight_dtype = desc.bias_dtype = CLNORM_DTYPE_NONE;
    desc.dx_dtype = desc.dz_dtype = desc.dweight_dtype = desc.dbias_dtype = desc.y_dtype = CLNORM_DTYPE_NONE;
    desc.residual_dtype = desc.dresidual_out_dtype = desc.dresidual_dtype = CLNORM_DTYPE_NONE;
    desc.gate = CLNORM_GATE_NONE;
    desc.activation = CLNORM_ACTIVATION_NONE;
    desc.reduction = CLNORM_REDUCTION_PARTIAL;
    desc.slots = 128;
    desc.gate_first = desc.mean_given = desc.rstd_given = desc.accumulate = desc.s_given = desc.row_scale = false;
    desc.eps = 1e-5;
    desc.weight_offset = desc.dropout = 0;
    desc.config = automatic;
    return desc;
}
#define CLNORM_NORM_BACKWARD_DESC_INIT clnorm_norm_backward_desc_init()

/* Softmax over the last dimension:
 *
 *   y = exp(x − max) / Σexp(x − max),   max and Σ over the row
 *
 * Entries of −∞ are masked: their y is exactly 0, and a row of nothing else is all 0. A row with a NaN or +∞ in it is all
 * NaN. Arithmetic is in f32, in f64 for F64 tensors; y is rounded to nearest even. */
typedef struct clnorm_softmax_desc {
    size_t size;       /* sizeof(clnorm_softmax_desc) */
    uint64_t rows;     /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;     /* 1 and up */
    uint64_t x_stride; /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride; /* likewise */
    clnorm_dtype x_dtype;
    clnorm_dtype y_dtype; /* CLNORM_DTYPE_NONE: as x */
    clnorm_config config; /* forced knobs of the forward; all 0 as a rule */
} clnorm_softmax_desc;

/* A descriptor of nothing yet: f32. Set rows and cols. */
static inline clnorm_softmax_desc clnorm_softmax_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_softmax_desc desc;
    desc.size = sizeof(clnorm_softmax_desc);
    desc.rows = desc.cols = desc.x_stride = desc.y_stride = 0;
    desc.x_dtype = CLNORM_F32;
    desc.y_dtype = CLNORM_DTYPE_NONE;
    desc.config = automatic;
    return desc;
}
#define CLNORM_SOFTMAX_DESC_INIT clnorm_softmax_desc_init()

/* Its gradient, from what it gave: dx = y · (dy − Σ(y · dy)), Σ over the row. */
typedef struct clnorm_softmax_backward_desc {
    size_t size;        /* sizeof(clnorm_softmax_backward_desc) */
    uint64_t rows;      /* 0 and up */
    uint64_t cols;      /* 1 and up */
    uint64_t y_stride;  /* elements from one row to the next, at least cols; 0: cols */
    uint64_t dy_stride; /* likewise */
    uint64_t dx_stride; /* likewise */
    clnorm_dtype y_dtype;
    clnorm_dtype dy_dtype; /* CLNORM_DTYPE_NONE: as y */
    clnorm_dtype dx_dtype; /* likewise */
    clnorm_config config;  /* forced knobs, those that the forward has; all 0 as a rule */
} clnorm_softmax_backward_desc;

/* A descriptor of nothing yet: f32. Set rows and cols. */
static inline clnorm_softmax_backward_desc clnorm_softmax_backward_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_softmax_backward_desc desc;
    desc.size = sizeof(clnorm_softmax_backward_desc);
    desc.rows = desc.cols = desc.y_stride = desc.dy_stride = desc.dx_stride = 0;
    desc.y_dtype = CLNORM_F32;
    desc.dy_dtype = desc.dx_dtype = CLNORM_DTYPE_NONE;
    desc.config = automatic;
    return desc;
}
#define CLNORM_SOFTMAX_BACKWARD_DESC_INIT clnorm_softmax_backward_desc_init()

/* Gaussian error linear units: Hendrycks, Gimpel 2016, arXiv:1606.08415. Φ is the distribution function of the standard
 * normal. Either is −0 at −∞ and ∞ at ∞; arguments of any size have an exact asymptote. */
typedef enum clnorm_gelu_form {
    CLNORM_GELU_ERF = 1, /* x · Φ(x) = x/2 · (1 + erf(x / √2)) */
    CLNORM_GELU_TANH     /* x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) */
} clnorm_gelu_form;

/* y = gelu(x), element by element. Arithmetic is in f32, in f64 for F64 tensors; y is rounded to nearest even. */
typedef struct clnorm_gelu_desc {
    size_t size;       /* sizeof(clnorm_gelu_desc) */
    uint64_t rows;     /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;     /* 1 and up; tensors without gaps can be any rows x cols of as many elements */
    uint64_t x_stride; /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride; /* likewise */
    clnorm_dtype x_dtype;
    clnorm_dtype y_dtype; /* CLNORM_DTYPE_NONE: as x */
    clnorm_gelu_form form;
    clnorm_config config; /* forced knobs: vec, lanes, rounds, unroll, stores, isa; all 0 as a rule */
} clnorm_gelu_desc;

/* A descriptor of nothing yet: f32, CLNORM_GELU_ERF. Set rows and cols. */
static inline clnorm_gelu_desc clnorm_gelu_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_gelu_desc desc;
    desc.size = sizeof(clnorm_gelu_desc);
    desc.rows = desc.cols = desc.x_stride = desc.y_stride = 0;
    desc.x_dtype = CLNORM_F32;
    desc.y_dtype = CLNORM_DTYPE_NONE;
    desc.form = CLNORM_GELU_ERF;
    desc.config = automatic;
    return desc;
}
#define CLNORM_GELU_DESC_INIT clnorm_gelu_desc_init()

/* dx = dy · gelu′(x); gelu′ is exactly 0 at −∞ and 1 at ∞, and gelu′(0) = 1/2. */
typedef struct clnorm_gelu_backward_desc {
    size_t size;        /* sizeof(clnorm_gelu_backward_desc) */
    uint64_t rows;      /* 0 and up */
    uint64_t cols;      /* 1 and up */
    uint64_t x_stride;  /* elements from one row to the next, at least cols; 0: cols */
    uint64_t dy_stride; /* likewise */
    uint64_t dx_stride; /* likewise */
    clnorm_dtype x_dtype;
    clnorm_dtype dy_dtype; /* CLNORM_DTYPE_NONE: as x */
    clnorm_dtype dx_dtype; /* likewise */
    clnorm_gelu_form form; /* as in the forward */
    clnorm_config config;  /* as in the forward */
} clnorm_gelu_backward_desc;

/* A descriptor of nothing yet: f32, CLNORM_GELU_ERF. Set rows and cols. */
static inline clnorm_gelu_backward_desc clnorm_gelu_backward_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_gelu_backward_desc desc;
    desc.size = sizeof(clnorm_gelu_backward_desc);
    desc.rows = desc.cols = desc.x_stride = desc.dy_stride = desc.dx_stride = 0;
    desc.x_dtype = CLNORM_F32;
    desc.dy_dtype = desc.dx_dtype = CLNORM_DTYPE_NONE;
    desc.form = CLNORM_GELU_ERF;
    desc.config = automatic;
    return desc;
}
#define CLNORM_GELU_BACKWARD_DESC_INIT clnorm_gelu_backward_desc_init()
/* What one scale of a quantised tensor is for. */
typedef enum clnorm_scaling {
    CLNORM_SCALING_TENSOR = 1, /* all of it: scale is [1] */
    CLNORM_SCALING_ROW,        /* a row: [rows] */
    CLNORM_SCALING_GROUP       /* group_size neighbouring elements of a row: [rows, ⌈cols / group_size⌉] */
} clnorm_scaling;

/* Quantisation of [rows, cols] to 8 bits:
 *
 *   amax  = the largest |x| of those that share a scale; NaNs and infinities do not count
 *   scale = (amax + 1e-10) / max, with max 448 for CLNORM_F8_E4M3 and 57344 for CLNORM_F8_E5M2
 *   q     = x / scale, rounded to nearest even
 *
 * What rounds to more than ± max becomes that, infinities too; a NaN becomes code 0x7f, and −0 stays −0. So where all is
 * zero the scale is 1e-10 / max and q zero, and a NaN or an infinity spoils no other element. Divisions are correctly
 * rounded where the device's are, on NVIDIA and CPUs, and codes then the same everywhere. */
typedef struct clnorm_quantize_desc {
    size_t size;              /* sizeof(clnorm_quantize_desc) */
    uint64_t rows, cols;      /* rows 0 and up, cols 1 and up; without rows nothing is written */
    uint64_t group_size;      /* of CLNORM_SCALING_GROUP: 1 and up; a row's last group may be shorter. Else 0 */
    uint64_t x_stride;        /* elements from one row to the next, at least cols; 0: cols */
    uint64_t q_stride;        /* likewise */
    uint64_t q_t_stride;      /* at least rows; 0: rows */
    uint64_t seed;            /* of stochastic rounding */
    clnorm_dtype x_dtype;     /* F32, F16 or BF16 */
    clnorm_dtype q_dtype;     /* F8_E4M3 or F8_E5M2 */
    clnorm_dtype scale_dtype; /* F32; or BF16: scale is rounded to it, to nearest even, before x is divided by it */
    clnorm_scaling scaling;
    bool transpose; /* write q_t too */
    bool save_amax; /* write amax, of scale's shape, in F32 */
    /* Round up with the probability that q's distance from the code below is of a step, by a random number for each
     * (seed, element) alone: Philox 4x32-10, 20 bits of it or more. */
    bool stochastic;
    double scale;         /* with CLNORM_SCALING_TENSOR: x is divided by this, and scale not written; 0: it is computed */
    clnorm_config config; /* forced knobs; all 0 as a rule. vec must divide cols and group_size */
} clnorm_quantize_desc;

/* A descriptor of nothing yet: f32 x to F8_E4M3, a scale for all of it. */
static inline clnorm_quantize_desc clnorm_quantize_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_quantize_desc desc;
    desc.size = sizeof(clnorm_quantize_desc);
    desc.rows = desc.cols = desc.group_size = 0;
    desc.x_stride = desc.q_stride = desc.q_t_stride = desc.seed = 0;
    desc.x_dtype = desc.scale_dtype = CLNORM_F32;
    desc.q_dtype = CLNORM_F8_E4M3;
    desc.scaling = CLNORM_SCALING_TENSOR;
    desc.transpose = desc.save_amax = desc.stochastic = false;
    desc.scale = 0;
    desc.config = automatic;
    return desc;
}
#define CLNORM_QUANTIZE_DESC_INIT clnorm_quantize_desc_init()

/* x = q · scale, in F32, then rounded to x's dtype: to nearest even, to an infinity where F16 is too narrow. */
typedef struct clnorm_dequantize_desc {
    size_t size;         /* sizeof(clnorm_dequantize_desc) */
    uint64_t rows, cols; /* and all the others as in clnorm_quantize_desc */
    uint64_t group_size;
    uint64_t q_stride;
    uint64_t x_stride;
    clnorm_dtype q_dtype;
    clnorm_dtype scale_dtype;
    clnorm_dtype x_dtype;
    clnorm_scaling scaling;
    clnorm_config config;
} clnorm_dequantize_desc;

/* A descriptor of nothing yet: F8_E4M3 with a scale for all of it to f32. */
static inline clnorm_dequantize_desc clnorm_dequantize_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_dequantize_desc desc;
    desc.size = sizeof(clnorm_dequantize_desc);
    desc.rows = desc.cols = desc.group_size = desc.q_stride = desc.x_stride = 0;
    desc.q_dtype = CLNORM_F8_E4M3;
    desc.scale_dtype = desc.x_dtype = CLNORM_F32;
    desc.scaling = CLNORM_SCALING_TENSOR;
    desc.config = automatic;
    return desc;
}
#define CLNORM_DEQUANTIZE_DESC_INIT clnorm_dequantize_desc_init()

typedef enum clnorm_fp8_accuracy {
    CLNORM_FP8_FUSED = 1, /* y is in F32 until it is quantised */
    /* y is rounded to BF16 before that, and the scales too unless scale_dtype says otherwise: every step is rounded as
     * COAT (Xi et al. 2024, arXiv:2410.19313) rounds it, and given its rstd the codes are COAT's, bit for bit. What a scale
     * that was rounded down makes too large becomes ± max. */
    CLNORM_FP8_COMPATIBLE
} clnorm_fp8_accuracy;

/* RMS normalisation of 8-bit [rows, cols] with a scale for each group_size columns, to 8 bits with a scale for all of it:
 *
 *   v         = x · x_scale
 *   rstd      = 1 / √(Σv² / cols + eps)
 *   n         = v · rstd · weight
 *   row_scale = (max |n| over the row + 1e-10) / max, with max of y_dtype as for clnorm_quantize_desc
 *   y_scale   = max row_scale over all rows
 *   y         = n / y_scale, rounded and saturated as for clnorm_quantize_desc
 *
 * A row with a NaN has a NaN for rstd, and 0x7f everywhere; an infinity, or squares beyond F32, have an rstd of 0, and
 * every code of their row that is no NaN is 0. Neither counts in the scales, so that other rows do not suffer. Rows of
 * zeros give zeros. x is read twice, and n never written: it takes 4 bytes an element with y and y_t both. */
typedef struct clnorm_fp8_rms_norm_desc {
    size_t size;                /* sizeof(clnorm_fp8_rms_norm_desc) */
    uint64_t rows, cols;        /* rows 0 and up, cols 1 and up; without rows nothing is written */
    uint64_t group_size;        /* 16, 32, 64 or 128, a divisor of cols */
    uint64_t x_stride;          /* elements from one row to the next, at least cols; 0: cols */
    uint64_t y_stride;          /* likewise */
    uint64_t y_t_stride;        /* at least rows; 0: rows */
    clnorm_dtype x_dtype;       /* F8_E4M3 or F8_E5M2 */
    clnorm_dtype x_scale_dtype; /* F32 or BF16 */
    clnorm_dtype weight_dtype;  /* F32, F16 or BF16; CLNORM_DTYPE_NONE: no weight, which stands for ones */
    clnorm_dtype y_dtype;       /* F8_E4M3 or F8_E5M2; CLNORM_DTYPE_NONE: as x */
    clnorm_dtype scale_dtype;   /* of row_scale and y_scale, F32 or BF16; CLNORM_DTYPE_NONE: F32, BF16 when compatible */
    clnorm_fp8_accuracy accuracy;
    bool write_y; /* y or y_t or both; rstd [rows] in F32 and y_scale always */
    bool write_y_t;
    bool save_row_scale;  /* write row_scale */
    double eps;           /* added to the mean of squares, 0 and up, finite */
    clnorm_config config; /* forced knobs; all 0 as a rule */
} clnorm_fp8_rms_norm_desc;

/* A descriptor of nothing yet: F8_E4M3 in groups of 16 with f32 scales, f32 weight, y and y_t, eps 1e-5. */
static inline clnorm_fp8_rms_norm_desc clnorm_fp8_rms_norm_desc_init(void) {
    const clnorm_config automatic = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    clnorm_fp8_rms_norm_desc desc;
    desc.size = sizeof(clnorm_fp8_rms_norm_desc);
    desc.rows = desc.cols = 0;
    desc.group_size = 16;
    desc.x_stride = desc.y_stride = desc.y_t_stride = 0;
    desc.x_dtype = CLNORM_F8_E4M3;
    desc.x_scale_dtype = desc.weight_dtype = CLNORM_F32;
    desc.y_dtype = desc.scale_dtype = CLNORM_DTYPE_NONE;
    desc.accuracy = CLNORM_FP8_FUSED;
    desc.write_y = desc.write_y_t = true;
    desc.save_row_scale = false;
    desc.eps = 1e-5;
    desc.config = automatic;
    return desc;
}
#define CLNORM_FP8_RMS_NORM_DESC_INIT clnorm_fp8_rms_norm_desc_init()

/* ------------------------------------------------------------------------------------------------------- 5. plans */

typedef struct clnorm_plan clnorm_plan;

/* Validates the descriptor, chooses a config, and compiles or fetches the kernels. The plan belongs to the context and
 * must be destroyed before it. Slow the first time (a build), microseconds once the context has the program. */
CLNORM_API clnorm_status clnorm_norm_forward_plan_create(clnorm_context *context, const clnorm_norm_desc *desc,
                                                         clnorm_plan **plan);

CLNORM_API clnorm_status clnorm_norm_backward_plan_create(clnorm_context *context, const clnorm_norm_backward_desc *desc,
                                                          clnorm_plan **plan);

CLNORM_API clnorm_status clnorm_softmax_forward_plan_create(clnorm_context *context, const clnorm_softmax_desc *desc,
                                                            clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_softmax_backward_plan_create(clnorm_context *context,
                                                             const clnorm_softmax_backward_desc *desc, clnorm_plan **plan);

CLNORM_API clnorm_status clnorm_gelu_forward_plan_create(clnorm_context *context, const clnorm_gelu_desc *desc,
                                                         clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_gelu_backward_plan_create(clnorm_context *context, const clnorm_gelu_backward_desc *desc,
                                                          clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_quantize_plan_create(clnorm_context *context, const clnorm_quantize_desc *desc,
                                                     clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_dequantize_plan_create(clnorm_context *context, const clnorm_dequantize_desc *desc,
                                                       clnorm_plan **plan);

CLNORM_API clnorm_status clnorm_fp8_rms_norm_plan_create(clnorm_context *context, const clnorm_fp8_rms_norm_desc *desc,
                                                         clnorm_plan **plan);

/* NULL is allowed. Enqueued work keeps what it needs. */
CLNORM_API void clnorm_plan_destroy(clnorm_plan *plan);

/* Bytes of args.workspace that an enqueue needs; 0 when it needs none. */
CLNORM_API uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan);

/* The config that was chosen. */
CLNORM_API void clnorm_plan_config(const clnorm_plan *plan, clnorm_config *config);

/* What the row of a tuning file for such plans begins with: "rms_norm bf16 4096". Writes it as snprintf does, and returns
 * its length; "" for operations that have no knobs to tune. */
CLNORM_API size_t clnorm_plan_tuning_key(const clnorm_plan *plan, char *text, size_t capacity);

/* A description for people, a line per kernel: name, grid, build options. Writes at most capacity bytes, always a
 * terminating NUL when capacity is not 0, and returns the length that the whole text has, as snprintf does. */
CLNORM_API size_t clnorm_plan_describe(const clnorm_plan *plan, char *text, size_t capacity);

/* Runs each kernel once over no rows, and waits: some drivers (PoCL) compile at the first launch of a grid. Optional. */
CLNORM_API clnorm_status clnorm_plan_warm_up(clnorm_plan *plan, cl_command_queue queue);

/* ----------------------------------------------------------------------------------------------------- 6. enqueue */

/* Part of a buffer. offset: bytes, a multiple of the element's size. mem NULL: absent. */
typedef struct clnorm_buffer {
    cl_mem mem;
    uint64_t offset;
} clnorm_buffer;

/* Where the random numbers of a call come from. Another seed, or another offset, is another mask. */
typedef struct clnorm_seed {
    uint64_t seed;
    uint64_t offset; /* calls of one seed are told apart by it */
} clnorm_seed;

/* Every tensor that any operation reads or writes. An operation wants just those that its descriptor speaks of; one that is
 * missing, or given without being wanted, is an error that names it. Outputs do not overlap anything but as said: an output
 * that may be an input itself has its buffer, offset, element size and row stride. */
typedef struct clnorm_args {
    size_t size;                 /* sizeof(clnorm_args) */
    clnorm_buffer x;             /* in  [rows, cols], x_stride */
    clnorm_buffer weight;        /* in  [cols] */
    clnorm_buffer bias;          /* in  [cols] */
    clnorm_buffer z;             /* in  [rows, cols], z_stride: the gate */
    clnorm_buffer dy;            /* in  [rows, cols], dy_stride */
    clnorm_buffer y;             /* out [rows, cols], y_stride; may be x itself in a forward; in of softmax's backward */
    clnorm_buffer mean;          /* out of the forward, in of the backward: [groups, rows] f32 (f64 with F64 tensors) */
    clnorm_buffer rstd;          /* likewise */
    clnorm_buffer dx;            /* out [rows, cols], dx_stride; may be x, dy or (softmax) y itself */
    clnorm_buffer dz;            /* out [rows, cols], dz_stride; may be z itself */
    clnorm_buffer dweight;       /* out, in too with accumulate: [cols] */
    clnorm_buffer dbias;         /* likewise */
    clnorm_buffer residual;      /* in  [rows, cols], residual_stride */
    clnorm_buffer row_scale;     /* in  [rows] f32 (f64 with F64 tensors); out of fp8_rms_norm: [rows] scale_dtype */
    clnorm_buffer residual_out;  /* out [rows, cols], residual_out_stride; may be residual itself */
    clnorm_buffer dropout_mask;  /* out [rows, cols], a byte each, row after row: 1 where x was kept, 0 where not */
    clnorm_buffer dresidual_out; /* in  [rows, cols], dresidual_out_stride */
    clnorm_buffer dresidual;     /* out [rows, cols], dresidual_stride; may be dresidual_out itself */
    clnorm_buffer q;             /* out of quantize, in of dequantize: [rows, cols], q_stride; dequantize writes x */
    clnorm_buffer q_t;           /* out [cols, rows], q_t_stride: q transposed */
    clnorm_buffer scale;         /* out of quantize, in of dequantize: as clnorm_scaling says, scale_dtype */
    clnorm_buffer x_scale;       /* in  [rows, cols / group_size], x_scale_dtype: of an 8-bit x */
    clnorm_buffer y_t;           /* out [cols, rows], y_t_stride: y transposed */
    clnorm_buffer y_scale;       /* out [1]: of an 8-bit y */
    clnorm_buffer amax;          /* out, of scale's shape, f32 */
    clnorm_buffer workspace;     /* scratch of clnorm_plan_workspace_size bytes at an offset that is a multiple of 64, not
                                    shared by enqueues that can overlap */
    const clnorm_seed *seed;     /* with dropout: read by the call, and not later; NULL: absent */
} clnorm_args;

static inline clnorm_args clnorm_args_init(void) {
    const clnorm_buffer absent = {NULL, 0};
    clnorm_args args;
    args.size = sizeof(clnorm_args);
    args.x = args.weight = args.bias = args.z = args.dy = args.y = args.mean = args.rstd = absent;
    args.dx = args.dz = args.dweight = args.dbias = args.workspace = absent;
    args.residual = args.row_scale = args.residual_out = args.dropout_mask = absent;
    args.dresidual_out = args.dresidual = absent;
    args.seed = NULL;
    args.q = args.q_t = args.scale = args.amax = absent;
    args.x_scale = args.y_t = args.y_scale = absent;
    return args;
}
#define CLNORM_ARGS_INIT clnorm_args_init()

/* Checks the arguments, binds them and launches; does not wait, allocate device memory or compile.
 * queue: of the context and device of the plan, in-order or out-of-order. wait_list: events of the same cl_context to
 * come first. event: may be NULL; else complete when all outputs are written, to be released by the caller.
 * Several threads may enqueue the same plan. */
CLNORM_API clnorm_status clnorm_plan_enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                             cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* The kernels that an enqueue of the plan runs, one after the other. */
CLNORM_API cl_uint clnorm_plan_kernel_count(const clnorm_plan *plan);

/* clnorm_plan_enqueue with an event for each kernel, to see where time goes. events: [clnorm_plan_kernel_count(plan)], all
 * of them to be released by the caller; a plan without kernels writes none. */
CLNORM_API clnorm_status clnorm_plan_enqueue_kernels(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                                     cl_uint num_wait, const cl_event *wait_list, cl_event *events);

/* ---------------------------------------------------------------------------------------------------- 7. one call */

/* Plans, once per descriptor, and enqueues. The context keeps its latest plans and lends workspace, so that from the second
 * call on this costs little more than clnorm_plan_enqueue. */
CLNORM_API clnorm_status clnorm_norm_forward(clnorm_context *context, cl_command_queue queue, const clnorm_norm_desc *desc,
                                             const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                             cl_event *event);
CLNORM_API clnorm_status clnorm_norm_backward(clnorm_context *context, cl_command_queue queue,
                                              const clnorm_norm_backward_desc *desc, const clnorm_args *args,
                                              cl_uint num_wait, const cl_event *wait_list, cl_event *event);
CLNORM_API clnorm_status clnorm_softmax_forward(clnorm_context *context, cl_command_queue queue,
                                                const clnorm_softmax_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                                const cl_event *wait_list, cl_event *event);
CLNORM_API clnorm_status clnorm_softmax_backward(clnorm_context *context, cl_command_queue queue,
                                                 const clnorm_softmax_backward_desc *desc, const clnorm_args *args,
                                                 cl_uint num_wait, const cl_event *wait_list, cl_event *event);
CLNORM_API clnorm_status clnorm_gelu_forward(clnorm_context *context, cl_command_queue queue, const clnorm_gelu_desc *desc,
                                             const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                             cl_event *event);
CLNORM_API clnorm_status clnorm_gelu_backward(clnorm_context *context, cl_command_queue queue,
                                              const clnorm_gelu_backward_desc *desc, const clnorm_args *args,
                                              cl_uint num_wait, const cl_event *wait_list, cl_event *event);
CLNORM_API clnorm_status clnorm_quantize(clnorm_context *context, cl_command_queue queue, const clnorm_quantize_desc *desc,
                                         const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                         cl_event *event);
CLNORM_API clnorm_status clnorm_dequantize(clnorm_context *context, cl_command_queue queue,
                                           const clnorm_dequantize_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                           const cl_event *wait_list, cl_event *event);
CLNORM_API clnorm_status clnorm_fp8_rms_norm(clnorm_context *context, cl_command_queue queue,
                                             const clnorm_fp8_rms_norm_desc *desc, const clnorm_args *args,
                                             cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
