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

/* 10000 · major + 100 · minor + patch, of the library that is linked. */
CLNORM_API uint32_t clnorm_version_number(void);

/* "0.2.0", of the library that is linked, which can be newer than this header. */
CLNORM_API const char *clnorm_version(void);

/* Bytes of a struct of these headers as the library that is linked knows it, for bindings, which have no sizeof:
 * clnorm_struct_size("clnorm_norm_desc"). 0: it knows no such struct. */
CLNORM_API uint32_t clnorm_struct_size(const char *name);

typedef enum clnorm_status {
    CLNORM_SUCCESS = 0,
    CLNORM_INVALID_ARGUMENT, /* a NULL where a value is required, a wrong struct size */
    CLNORM_INVALID_ENUM,     /* a value that its enumeration does not have */
    CLNORM_INVALID_VALUE,    /* a number outside its range: eps, a forced knob, … */
    CLNORM_INVALID_SHAPE,    /* shapes, strides and groups that do not fit each other */
    CLNORM_INVALID_BUFFER,   /* missing, too small, misaligned, or of another cl_context */
    CLNORM_INVALID_QUEUE,    /* a queue of another context or device */
    CLNORM_INVALID_SELECTOR, /* a device selector that cannot be read */
    CLNORM_OVERFLOW,         /* rows × cols × size does not fit 63 bits */
    CLNORM_UNSUPPORTED,      /* valid, but this device, or this operation with such dtypes, cannot do it */
    CLNORM_DEVICE_NOT_FOUND, /* no OpenCL device, or none that the selector matches */
    CLNORM_OUT_OF_HOST_MEMORY,
    CLNORM_OUT_OF_DEVICE_MEMORY,
    CLNORM_BUILD_FAILED, /* the driver refused a kernel; the detail has the head of its log */
    CLNORM_OPENCL_ERROR, /* any other OpenCL error; the detail names the call and the code */
    CLNORM_NOT_EXACT     /* it ran, but these inputs do not allow results of the promised accuracy */
} clnorm_status;

/* One sentence for a status. Never NULL; "unknown status" for a number that is none. */
CLNORM_API const char *clnorm_status_text(clnorm_status status);

/* The details of this thread's last failed call: the field, its value and what was expected, and the OpenCL code where
 * there is one. "" before the first failure. Valid until the next failure in this thread. */
CLNORM_API const char *clnorm_error_detail(void);

/* The OpenCL code of the last failed call of this thread; CL_SUCCESS when no OpenCL call failed. */
CLNORM_API cl_int clnorm_error_opencl(void);

typedef enum clnorm_dtype {
    CLNORM_DTYPE_NONE = 0, /* where a tensor is optional: it is absent; elsewhere: the default that the field names */
    CLNORM_F32,
    CLNORM_F16,  /* IEEE 754 binary16 */
    CLNORM_BF16, /* bfloat16: the upper half of a binary32 */
    CLNORM_F64,  /* arithmetic in double where x has it; then every tensor of rows must be F64, and statistics are.
                    Layer and RMS norm, but not norm_slices.h's nor with y_given, may have weights of F64 beside
                    an x of another dtype, and of F32 beside one of F64 */
    /* The 8-bit types of the OCP specification OFP8 (2023), for tensors whose comment names them. They have scales. */
    CLNORM_F8_E4M3, /* "fn": magnitudes from 2^-9 to 448, no infinities, one NaN */
    CLNORM_F8_E5M2  /* the upper half of an F16: magnitudes from 2^-16 to 57344 */
} clnorm_dtype;

/* Bytes of one element; 0 for CLNORM_DTYPE_NONE and for a number that is no dtype. */
CLNORM_API size_t clnorm_dtype_size(clnorm_dtype dtype);

/* "f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2", "none". */
CLNORM_API const char *clnorm_dtype_name(clnorm_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
