/* Devices: the list of OpenCL devices, their facts, and selectors. */
#ifndef CLNORM_DEVICE_H
#define CLNORM_DEVICE_H

#include "clnorm/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clnorm_device_kind {
    CLNORM_DEVICE_UNKNOWN = 0, /* of a clnorm_device_info that is not filled in */
    CLNORM_DEVICE_GPU,
    CLNORM_DEVICE_ACCELERATOR,
    CLNORM_DEVICE_CPU,
    CLNORM_DEVICE_OTHER
} clnorm_device_kind;

/* The OpenCL implementation. Known properties and defects of drivers depend on it. */
typedef enum clnorm_platform_family {
    CLNORM_PLATFORM_OTHER = 0,
    CLNORM_PLATFORM_POCL,
    CLNORM_PLATFORM_NVIDIA,
    CLNORM_PLATFORM_MESA, /* rusticl and Clover, also on a CPU (llvmpipe) */
    CLNORM_PLATFORM_OCLGRIND
} clnorm_platform_family;

/* "pocl", "nvidia", "mesa", "oclgrind" or "other", also for a number that is no family; static. */
CLNORM_API const char *clnorm_platform_family_name(clnorm_platform_family family);

/* The facts of a device that the library's choices depend on. Sizes are in bytes. */
typedef struct clnorm_device_info {
    uint64_t size; /* sizeof(clnorm_device_info) */
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
    unsigned opencl_c_version; /* 100 · major + 10 · minor: 120, 200, 300, 310 */
    unsigned compute_units;
    unsigned clock_mhz;
    unsigned native_vector_float; /* floats in a hardware vector register, 1 on most GPUs */
    unsigned subgroup_size;       /* work-items of a warp: 32 on NVIDIA; 0 elsewhere */
    unsigned compute_capability;  /* NVIDIA: 10 · major + minor, 90 for Hopper; 0 elsewhere */
    uint64_t global_memory;
    uint64_t max_allocation;
    uint64_t cache_size;   /* of the last level that the device reports; 0: none */
    uint64_t local_memory; /* the largest __local array that a kernel may declare */
    uint64_t max_work_group_size;
    bool little_endian;
    bool fp16;          /* cl_khr_fp16: arithmetic; f16 tensors work without it */
    bool fp64;          /* f64 tensors need it */
    bool subgroups;     /* cl_khr_subgroups or the OpenCL 3.0 feature */
    bool device_fences; /* OpenCL C's memory fences at device scope. CLNORM_REDUCTION_LOCKED and row_split=exchange need
                           them, or a device of NVIDIA */
} clnorm_device_info;

/* All zero except size: what clnorm_device_describe and clnorm_device_select fill in. */
#define CLNORM_DEVICE_INFO_INIT                                                                                         \
    {                                                                                                                   \
        sizeof(clnorm_device_info), NULL, NULL, 0, 0, CLNORM_DEVICE_UNKNOWN, CLNORM_PLATFORM_OTHER, "", "", "", "", "", \
            "", "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, false, false                                  \
    }
CLNORM_API void clnorm_device_info_init(clnorm_device_info *info);

/* Lists every device, best first: GPUs, then accelerators, CPUs and others, each by compute units × clock. devices: room
 * for capacity ids, may be NULL when capacity is 0. *count: the number of devices, which can be more than capacity. No
 * device at all is success with a count of 0. A device whose facts cannot be read is left out. clnorm_device_describe gives
 * the facts of each. Cost: queries every platform. CLNORM_INVALID_ARGUMENT: count is NULL, or devices is though capacity is
 * not 0. CLNORM_OPENCL_ERROR: the facts of no device can be read. CLNORM_OUT_OF_HOST_MEMORY. */
CLNORM_API clnorm_status clnorm_device_list(cl_device_id *devices, size_t capacity, size_t *count);

/* Fills in the facts of one device. A sub-device has the indices of the device that it is a part of.
 * CLNORM_INVALID_ARGUMENT: a NULL, or an info whose size is not set. CLNORM_OPENCL_ERROR: a fact cannot be read. */
CLNORM_API clnorm_status clnorm_device_describe(cl_device_id device, clnorm_device_info *info);

/* Fills in the facts of the best device that a selector matches.
 *
 * selector: one or more alternatives, separated by ';'. The first alternative that any device matches is used. An
 * alternative is one or more terms, separated by ','. A device matches where all terms hold:
 *
 *   gpu, cpu, accelerator                     the kind
 *   P:D                                       platform_index and device_index
 *   uuid:UUID                                 the UUID
 *   name=TEXT, vendor=TEXT, platform=TEXT     TEXT is a part of it, in upper or lower case
 *   memory>=8G                                global memory; K, M, G and T are powers of 1024
 *   fp16, fp64, subgroups                     the device has it
 *
 * NULL or "": the value of the environment variable CLNORM_DEVICE. Where that is unset or empty too: the best device of
 * all.
 *
 * CLNORM_INVALID_ARGUMENT: info is NULL, or its size is not set. CLNORM_INVALID_SELECTOR: the selector cannot be read.
 * CLNORM_DEVICE_NOT_FOUND: no device matches. */
CLNORM_API clnorm_status clnorm_device_select(const char *selector, clnorm_device_info *info);

#ifdef __cplusplus
}
#endif

#endif
