#include "device_kernels.h"

#include "program/program_build.h"

enum { GROUP_ITEMS = 256, COPY_DEPTH = 4 /* loads in flight per work-item of the copy */ };

static const char source[] =
    "ulong hash(ulong i, uint seed) {\n"
    "    ulong z = (i + seed * 0x632be59bd9b4e019UL) * 0x9e3779b97f4a7c15UL;\n"
    "    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;\n"
    "    z = (z ^ z >> 27) * 0x94d049bb133111ebUL;\n"
    "    return z ^ z >> 31;\n"
    "}\n"
    "\n"
    "/* 1: f32, 2: f16, 3: bf16, 4: f64, which is made of bits for devices without double, 5: 8 bits. */\n"
    "kernel void fill(global uchar *out, ulong count, uint seed, uint dtype) {\n"
    "    const ulong i = get_global_id(0);\n"
    "    if (i >= count)\n"
    "        return;\n"
    "    const ulong bits = hash(i, seed);\n"
    "    const float value = (int)(bits >> 32) * 0x1p-31f;\n"
    "    if (dtype == 1)\n"
    "        ((global float *)out)[i] = value;\n"
    "    else if (dtype == 2)\n"
    "        vstore_half(value, i, (global half *)out);\n"
    "    else if (dtype == 3)\n"
    "        ((global ushort *)out)[i] = as_uint(value) >> 16;\n"
    "    else if (dtype == 5) /* below 2, where there are no NaNs */\n"
    "        out[i] = bits & 0xbf;\n"
    "    else\n"
    "        ((global ulong *)out)[i] = (bits & 0x800fffffffffffffUL) | 0x3ff0000000000000UL;\n"
    "}\n"
    "\n"
    "kernel void copy(global const uint4 *restrict from, global uint4 *restrict to, ulong count) {\n"
    "    const ulong first = get_group_id(0) * get_local_size(0) * DEPTH + get_local_id(0);\n"
    "    uint4 held[DEPTH];\n"
    "#pragma unroll\n"
    "    for (uint i = 0; i < DEPTH; i++)\n"
    "        if (first + i * get_local_size(0) < count)\n"
    "            held[i] = from[first + i * get_local_size(0)];\n"
    "#pragma unroll\n"
    "    for (uint i = 0; i < DEPTH; i++)\n"
    "        if (first + i * get_local_size(0) < count)\n"
    "            to[first + i * get_local_size(0)] = held[i];\n"
    "}\n";

static bool build(struct device_kernels *kernels, const struct session *session, struct fault *fault) {
    const struct cln_source program = {.name = "tool.cl", .text = source, .length = sizeof source - 1};
    const clnorm_status status =
        cln_program_build(session->context, &program, "-cl-std=CL1.2 -D DEPTH=4", &kernels->program);
    if (status)
        return fault_library(fault, status, "kernel");
    cl_int code;
    kernels->fill = clCreateKernel(kernels->program, "fill", &code);
    if (!code)
        kernels->copy = clCreateKernel(kernels->program, "copy", &code);
    return !code || fault_opencl(fault, code, "clCreateKernel", "the tool's kernels");
}

bool device_kernels_make(struct device_kernels *kernels, const struct session *session, struct fault *fault) {
    *kernels = (struct device_kernels){0};
    const bool done = build(kernels, session, fault);
    if (!done)
        device_kernels_free(kernels);
    return done;
}

void device_kernels_free(struct device_kernels *kernels) {
    if (kernels->fill)
        clReleaseKernel(kernels->fill);
    if (kernels->copy)
        clReleaseKernel(kernels->copy);
    if (kernels->program)
        clReleaseProgram(kernels->program);
    *kernels = (struct device_kernels){0};
}

/* Launches `items` work-items, rounded up to whole work-groups. */
static bool launch(const struct session *session, cl_kernel kernel, uint64_t items, cl_event *event, const char *what,
                   struct fault *fault) {
    const size_t local =
        session->device.max_work_group_size < GROUP_ITEMS ? (size_t)session->device.max_work_group_size : GROUP_ITEMS;
    const size_t global = (size_t)((items + local - 1) / local * local);
    const cl_int code = clEnqueueNDRangeKernel(session->queue, kernel, 1, NULL, &global, &local, 0, NULL, event);
    return !code || fault_opencl(fault, code, "clEnqueueNDRangeKernel", what);
}

bool device_fill(const struct device_kernels *kernels, const struct session *session, cl_mem mem, clnorm_dtype dtype,
                 uint64_t count, cl_uint seed, struct fault *fault) {
    static const cl_uint codes[] = {[CLNORM_F32] = 1, [CLNORM_F16] = 2,     [CLNORM_BF16] = 3,
                                    [CLNORM_F64] = 4, [CLNORM_F8_E4M3] = 5, [CLNORM_F8_E5M2] = 5};
    if (count == 0)
        return true;
    const cl_ulong elements = count;
    cl_int code = clSetKernelArg(kernels->fill, 0, sizeof mem, &mem);
    if (!code)
        code = clSetKernelArg(kernels->fill, 1, sizeof elements, &elements);
    if (!code)
        code = clSetKernelArg(kernels->fill, 2, sizeof seed, &seed);
    if (!code)
        code = clSetKernelArg(kernels->fill, 3, sizeof *codes, &codes[dtype]);
    if (code)
        return fault_opencl(fault, code, "clSetKernelArg", "random numbers");
    return launch(session, kernels->fill, count, NULL, "random numbers", fault);
}

bool device_copy(const struct device_kernels *kernels, const struct session *session, cl_mem from, cl_mem to,
                 uint64_t bytes, cl_event *event, struct fault *fault) {
    const cl_ulong count = bytes / 16;
    cl_int code = clSetKernelArg(kernels->copy, 0, sizeof from, &from);
    if (!code)
        code = clSetKernelArg(kernels->copy, 1, sizeof to, &to);
    if (!code)
        code = clSetKernelArg(kernels->copy, 2, sizeof count, &count);
    if (code)
        return fault_opencl(fault, code, "clSetKernelArg", "copy");
    return launch(session, kernels->copy, (count + COPY_DEPTH - 1) / COPY_DEPTH, event, "copy", fault);
}
