/* An invented machine: OpenCL queries are answered here in place of a driver. Its devices, by index:
 *
 *   platform                       devices
 *   0 Portable Computing Language  FAKE_POCL
 *   1 NVIDIA CUDA                  FAKE_T4, FAKE_H200, FAKE_H200_TWIN
 *   2 Clover                       none
 *   3 Broken                       listing them fails
 *   4 Unheard Of                   FAKE_ACCELERATOR, FAKE_IRIS, FAKE_CUSTOM
 *   5 rusticl                      FAKE_LLVMPIPE
 *   6 Oclgrind                     FAKE_OCLGRIND
 */
#ifndef TEST_FAKE_OPENCL_H
#define TEST_FAKE_OPENCL_H

#include "clnorm/clnorm.h"

enum fake_index {
    FAKE_POCL,
    FAKE_T4,
    FAKE_H200,
    FAKE_H200_TWIN,
    FAKE_ACCELERATOR,
    FAKE_IRIS,
    FAKE_CUSTOM,
    FAKE_LLVMPIPE,
    FAKE_OCLGRIND,
    FAKE_PART, /* a sub-device of FAKE_H200, which is not listed */
    FAKE_DEVICES
};

struct fake_device {
    unsigned platform;
    cl_device_type type;
    const char *name, *vendor, *version, *opencl_c, *extensions;
    cl_uint compute_units, clock_mhz;
    cl_ulong global_memory, local_memory; /* bytes */
    cl_uint capability[2];                /* of NVIDIA devices */
    const char *feature;                  /* its one OpenCL C 3.0 feature; NULL: OpenCL C 1.2 only */
};

extern struct fake_device fake_devices[FAKE_DEVICES];

/* Failures to inject. */
struct fake_trouble {
    bool no_platforms;
    cl_int platforms_code;        /* result of clGetPlatformIDs */
    cl_device_info query;         /* the query that fails; 0: none */
    cl_int code;                  /* result of that query */
    const struct fake_device *of; /* the device whose query fails; NULL: every device */
};

extern struct fake_trouble fake_trouble;

/* Setup of cmocka: no failure is injected, and CLNORM_DEVICE is unset. */
int fake_setup(void **state);

cl_device_id fake_handle(enum fake_index index);

/* A cl_context of one device. */
cl_context fake_context(enum fake_index index);

#endif
