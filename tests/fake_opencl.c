#include "fake_opencl.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------------- the machine */

struct platform {
    const char *name;
    enum fake_index first; /* its devices are consecutive */
    cl_uint count;
    cl_int code; /* result of listing them */
};

static const struct platform platforms[] = {
    {"Portable Computing Language", FAKE_POCL, 1, CL_SUCCESS},
    {"NVIDIA CUDA", FAKE_T4, 3, CL_SUCCESS},
    {"Clover", FAKE_POCL, 0, CL_DEVICE_NOT_FOUND},
    {"Broken", FAKE_POCL, 1, CL_OUT_OF_HOST_MEMORY},
    {"Unheard Of", FAKE_ACCELERATOR, 3, CL_SUCCESS},
    {"rusticl", FAKE_LLVMPIPE, 1, CL_SUCCESS},
    {"Oclgrind", FAKE_OCLGRIND, 1, CL_SUCCESS},
};

static const cl_uint platform_count = sizeof platforms / sizeof platforms[0];

struct fake_device fake_devices[FAKE_DEVICES] = {
    [FAKE_POCL] =
        {
            .platform = 0,
            .type = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT,
            .name = "pthread-Some CPU",
            .vendor = "GenuineIntel",
            .version = "OpenCL 3.0 PoCL HSTR: x",
            .opencl_c = "OpenCL C 1.2 PoCL",
            .extensions = "cl_khr_fp64",
            .compute_units = 64,
            .clock_mhz = 3000,
            .global_memory = UINT64_C(64) << 30,
            .local_memory = 512 << 10,
            .feature = "__opencl_c_int64",
        },
    [FAKE_T4] =
        {
            .platform = 1,
            .type = CL_DEVICE_TYPE_GPU,
            .name = "NVIDIA T4",
            .vendor = "NVIDIA Corporation",
            .version = "OpenCL 3.0 CUDA",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "cl_khr_fp64",
            .compute_units = 40,
            .clock_mhz = 1590,
            .global_memory = UINT64_C(15) << 30,
            .local_memory = 48 << 10,
            .capability = {7, 5},
            .feature = "__opencl_c_fp64",
        },
    [FAKE_H200] =
        {
            .platform = 1,
            .type = CL_DEVICE_TYPE_GPU,
            .name = "NVIDIA H200",
            .vendor = "NVIDIA Corporation",
            .version = "OpenCL 3.0 CUDA",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "cl_khr_fp64 cl_khr_device_uuid",
            .compute_units = 132,
            .clock_mhz = 1980,
            .global_memory = UINT64_C(140) << 30,
            .local_memory = 48 << 10,
            .capability = {9, 0},
            .feature = "__opencl_c_fp64",
        },
    [FAKE_H200_TWIN] =
        {
            .platform = 1,
            .type = CL_DEVICE_TYPE_GPU,
            .name = "NVIDIA H200",
            .vendor = "NVIDIA Corporation",
            .version = "OpenCL 3.0 CUDA",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "cl_khr_fp64 cl_khr_device_uuid",
            .compute_units = 132,
            .clock_mhz = 1980,
            .global_memory = UINT64_C(140) << 30,
            .local_memory = 48 << 10,
            .capability = {9, 0},
            .feature = "__opencl_c_fp64",
        },
    [FAKE_ACCELERATOR] =
        {
            .platform = 4,
            .type = CL_DEVICE_TYPE_ACCELERATOR,
            .name = "  Tensor Thing  ",
            .vendor = "Obscure",
            .version = "OpenCL 1.2 x",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "cl_khr_fp16_not_quite not_cl_khr_fp64",
            .compute_units = 4,
            .clock_mhz = 0,
            .global_memory = UINT64_C(8) << 30,
            .local_memory = 32 << 10,
        },
    [FAKE_IRIS] =
        {
            .platform = 4,
            .type = CL_DEVICE_TYPE_GPU,
            .name = "Iris",
            .vendor = "Intel",
            .version = "OpenCL 3.0 NEO",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "cl_khr_fp16 cl_khr_subgroups",
            .compute_units = 96,
            .clock_mhz = 1300,
            .global_memory = UINT64_C(12) << 30,
            .local_memory = 64 << 10,
        },
    [FAKE_CUSTOM] =
        {
            .platform = 4,
            .type = CL_DEVICE_TYPE_CUSTOM,
            .name = "Odd",
            .vendor = "Obscure",
            .version = "OpenCL 1.2 x",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "",
            .compute_units = 9999,
            .clock_mhz = 9999,
            .global_memory = UINT64_C(1) << 30,
            .local_memory = 32 << 10,
        },
    [FAKE_LLVMPIPE] =
        {
            .platform = 5,
            .type = CL_DEVICE_TYPE_CPU,
            .name = "llvmpipe",
            .vendor = "Mesa",
            .version = "OpenCL 3.0 ",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "",
            .compute_units = 8,
            .clock_mhz = 300,
            .global_memory = UINT64_C(8) << 30,
            .local_memory = 32 << 10,
            .feature = "__opencl_c_subgroups",
        },
    [FAKE_OCLGRIND] =
        {
            .platform = 6,
            .type = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_DEFAULT,
            .name = "Oclgrind Simulator",
            .vendor = "University of Bristol",
            .version = "OpenCL 1.2 (Oclgrind)",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "",
            .compute_units = 1,
            .clock_mhz = 1,
            .global_memory = UINT64_C(128) << 30,
            .local_memory = 32 << 10,
        },
    [FAKE_PART] =
        {
            .platform = 1,
            .type = CL_DEVICE_TYPE_GPU,
            .name = "NVIDIA H200",
            .vendor = "NVIDIA Corporation",
            .version = "OpenCL 3.0 CUDA",
            .opencl_c = "OpenCL C 1.2 ",
            .extensions = "",
            .compute_units = 16,
            .clock_mhz = 1980,
            .global_memory = UINT64_C(140) << 30,
            .local_memory = 48 << 10,
            .capability = {9, 0},
        },
};

struct fake_trouble fake_trouble;

int fake_setup(void **state) {
    (void)state;
    fake_trouble = (struct fake_trouble){.no_platforms = false};
    return unsetenv("CLNORM_DEVICE");
}

cl_device_id fake_handle(enum fake_index index) {
    return (cl_device_id)&fake_devices[index];
}

cl_context fake_context(enum fake_index index) {
    return (cl_context)&fake_devices[index];
}

static cl_platform_id platform_handle(unsigned index) {
    return (cl_platform_id)(uintptr_t)&platforms[index];
}

static const struct platform *platform_of(cl_platform_id id) {
    return (const struct platform *)id;
}

/* ------------------------------------------------------------------------------------------------------------- answers */

static cl_int answer(const void *bytes, size_t length, size_t capacity, void *value, size_t *size) {
    if (value && capacity < length)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, bytes, length);
    if (size)
        *size = length;
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t capacity, void *value, size_t *size) {
    return answer(text, strlen(text) + 1, capacity, value, size);
}

static cl_int answer_uint(cl_uint number, size_t capacity, void *value, size_t *size) {
    return answer(&number, sizeof number, capacity, value, size);
}

static cl_int answer_ulong(cl_ulong number, size_t capacity, void *value, size_t *size) {
    return answer(&number, sizeof number, capacity, value, size);
}

static cl_int answer_named_version(const char *name, cl_version version, size_t capacity, void *value, size_t *size) {
    cl_name_version list[2] = {{CL_MAKE_VERSION(1, 0, 0), "something else"}, {version, ""}};
    if (!name)
        return CL_INVALID_VALUE;
    memcpy(list[1].name, name, strlen(name) + 1);
    return answer(list, sizeof list, capacity, value, size);
}

/* ---------------------------------------------------------------------------------------------------------- the calls */

cl_int clGetPlatformIDs(cl_uint capacity, cl_platform_id *ids, cl_uint *count) {
    const cl_uint there = fake_trouble.no_platforms ? 0 : platform_count;
    if (fake_trouble.platforms_code != CL_SUCCESS)
        return fake_trouble.platforms_code;
    for (cl_uint i = 0; ids && i < capacity && i < there; i++)
        ids[i] = platform_handle(i);
    if (count)
        *count = there;
    return CL_SUCCESS;
}

cl_int clGetDeviceIDs(cl_platform_id id, cl_device_type type, cl_uint capacity, cl_device_id *ids, cl_uint *count) {
    const struct platform *const platform = platform_of(id);
    if (type != CL_DEVICE_TYPE_ALL)
        return CL_INVALID_DEVICE_TYPE;
    if (platform->code != CL_SUCCESS)
        return platform->code;
    for (cl_uint i = 0; ids && i < capacity && i < platform->count; i++)
        ids[i] = fake_handle(platform->first + i);
    if (count)
        *count = platform->count;
    return CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t capacity, void *value, size_t *size) {
    if (what == CL_PLATFORM_NAME)
        return answer_text(platform_of(id)->name, capacity, value, size);
    return what == CL_PLATFORM_VERSION ? answer_text("OpenCL 3.0 made up", capacity, value, size) : CL_INVALID_VALUE;
}

/* a0a1a2… for FAKE_T4, b0b1b2… for the device after it */
static cl_int answer_uuid(const struct fake_device *device, size_t capacity, void *value, size_t *size) {
    unsigned char uuid[16];
    for (unsigned i = 0; i < sizeof uuid; i++)
        uuid[i] = (unsigned char)(0xa0 + 16 * (device - &fake_devices[FAKE_T4]) + i);
    return answer(uuid, sizeof uuid, capacity, value, size);
}

static cl_int answer_query(const struct fake_device *device, cl_device_info what, size_t capacity, void *value,
                           size_t *size) {
    const cl_device_id parent = device == &fake_devices[FAKE_PART] ? fake_handle(FAKE_H200) : NULL;
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer_ulong(device->type, capacity, value, size);
    case CL_DEVICE_NAME:
        return answer_text(device->name, capacity, value, size);
    case CL_DEVICE_VENDOR:
        return answer_text(device->vendor, capacity, value, size);
    case CL_DEVICE_VERSION:
        return answer_text(device->version, capacity, value, size);
    case CL_DEVICE_OPENCL_C_VERSION:
        return answer_text(device->opencl_c, capacity, value, size);
    case CL_DEVICE_EXTENSIONS:
        return answer_text(device->extensions, capacity, value, size);
    case CL_DRIVER_VERSION:
        return answer_text("1.0", capacity, value, size);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer_uint(device->compute_units, capacity, value, size);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return answer_uint(device->clock_mhz, capacity, value, size);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_ENDIAN_LITTLE:
        return answer_uint(1, capacity, value, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return answer_ulong(device->global_memory, capacity, value, size);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return answer_ulong(device->local_memory, capacity, value, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return answer(&(size_t){1024}, sizeof(size_t), capacity, value, size);
    case CL_DEVICE_PLATFORM:
        return answer(&(cl_platform_id){platform_handle(device->platform)}, sizeof(cl_platform_id), capacity, value, size);
    case CL_DEVICE_PARENT_DEVICE:
        return answer(&parent, sizeof parent, capacity, value, size);
    case CL_DEVICE_OPENCL_C_FEATURES:
        return answer_named_version(device->feature, CL_MAKE_VERSION(3, 0, 0), capacity, value, size);
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS:
        return answer_named_version(device->feature ? "OpenCL C" : NULL, CL_MAKE_VERSION(3, 0, 0), capacity, value, size);
    case 0x4000: /* CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV */
        return answer_uint(device->capability[0], capacity, value, size);
    case 0x4001: /* CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV */
        return answer_uint(device->capability[1], capacity, value, size);
    case 0x4003: /* CL_DEVICE_WARP_SIZE_NV */
        return answer_uint(32, capacity, value, size);
    case 0x106A: /* CL_DEVICE_UUID_KHR */
        return answer_uuid(device, capacity, value, size);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t capacity, void *value, size_t *size) {
    const struct fake_device *const device = (const struct fake_device *)id;
    const bool fails = fake_trouble.query == what && (!fake_trouble.of || fake_trouble.of == device);
    return fails ? fake_trouble.code : answer_query(device, what, capacity, value, size);
}

cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t capacity, void *value, size_t *size) {
    const cl_device_id device = (cl_device_id)context;
    return what == CL_CONTEXT_DEVICES ? answer(&device, sizeof device, capacity, value, size) : CL_INVALID_VALUE;
}

cl_int clRetainContext(cl_context context) {
    return context ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

cl_int clReleaseContext(cl_context context) {
    return context ? CL_SUCCESS : CL_INVALID_CONTEXT;
}
