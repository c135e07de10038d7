/* The version, statuses and dtypes. Every other header includes this one. */
#ifndef CLNORM_BASE_H
#define CLNORM_BASE_H

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

#define CLNORM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define CLNORM_VERSION_MAJOR 0
#define CLNORM_VERSION_MINOR 2
#define CLNORM_VERSION_PATCH 0

/* The version of the linked library: 10000 · major + 100 · minor + patch. */
CLNORM_API uint32_t clnorm_version_number(void);

/* The version of the linked library, "0.2.0". It can be newer than this header. */
CLNORM_API const char *clnorm_version(void);

/* The size in bytes of a struct of these headers in the linked library, for bindings of languages without sizeof:
 * clnorm_struct_size("clnorm_norm_desc"). 0: the library has no struct of that name. */
CLNORM_API uint32_t clnorm_struct_size(const char *name);

typedef enum clnorm_status {
    CLNORM_SUCCESS = 0,
    CLNORM_INVALID_ARGUMENT, /* a NULL where a value is required, a wrong struct size; an event, seed, device or folder that
                                cannot be used */
    CLNORM_INVALID_ENUM,     /* a value that its enumeration does not have */
    CLNORM_INVALID_VALUE,    /* a number outside its range: eps, a forced knob, … */
    CLNORM_INVALID_SHAPE,    /* shapes, strides and groups that do not fit each other */
    CLNORM_INVALID_BUFFER,   /* missing, surplus, too small, misaligned, overlapping another one, of another cl_context, or
                                with flags that forbid the access */
    CLNORM_INVALID_QUEUE,    /* a queue of another context or device */
    CLNORM_INVALID_SELECTOR, /* a device selector that cannot be read */
    CLNORM_OVERFLOW,         /* rows × cols × size does not fit 63 bits */
    CLNORM_UNSUPPORTED,      /* valid, but this device, or this operation with such dtypes, cannot do it */
    CLNORM_DEVICE_NOT_FOUND, /* there is no OpenCL device, or none matches the selector */
    CLNORM_OUT_OF_HOST_MEMORY,
    CLNORM_OUT_OF_DEVICE_MEMORY,
    CLNORM_BUILD_FAILED, /* the driver refused a kernel; the detail has the head of its log */
    CLNORM_OPENCL_ERROR, /* any other OpenCL error; the detail names the call and the code */
    CLNORM_NOT_EXACT     /* the operation ran, but its inputs do not allow results of the promised accuracy */
} clnorm_status;

/* A short text for a status. Never NULL; "unknown status" for a number that is no status. */
CLNORM_API const char *clnorm_status_text(clnorm_status status);

/* The details of this thread's last failed call: the field, its value and what was expected, and the OpenCL code where
 * there is one. "" before the first failure. Valid until the next failure in this thread. */
CLNORM_API const char *clnorm_error_detail(void);

/* The OpenCL code of the last failed call of this thread; CL_SUCCESS when no OpenCL call failed. */
CLNORM_API cl_int clnorm_error_opencl(void);

typedef enum clnorm_dtype {
    CLNORM_DTYPE_NONE = 0, /* an optional tensor is absent; another tensor has the default that its comment names */
    CLNORM_F32,
    CLNORM_F16,  /* IEEE 754 binary16 */
    CLNORM_BF16, /* bfloat16: the upper half of a binary32 */
    CLNORM_F64,  /* Arithmetic and statistics are in double. All tensors are F64, or none is, with one exception:
                    layer and RMS norm without y_given take weights in F64 beside an x of another dtype, and in
                    F32 beside an x in F64. The functions of norm_slices.h do not */
    /* The 8-bit types of the OCP specification OFP8 (2023), for tensors whose comment names them. Such tensors have
     * scales. */
    CLNORM_F8_E4M3, /* "fn": magnitudes from 2^-9 to 448, no infinities, one NaN */
    CLNORM_F8_E5M2  /* the upper half of an F16: magnitudes from 2^-16 to 57344 */
} clnorm_dtype;

/* Bytes of one element; 0 for CLNORM_DTYPE_NONE and for a number that is no dtype. */
CLNORM_API size_t clnorm_dtype_size(clnorm_dtype dtype);

/* "f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2"; "none" for CLNORM_DTYPE_NONE and for a number that is no dtype. */
CLNORM_API const char *clnorm_dtype_name(clnorm_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
