#include "plain_kernels.h"

#include "program/program_build.h"

enum { GROUP_ITEMS = 256 };

static const char source[] =
    "#ifdef BF16\n"
    "float8 load(global const T *p) { return as_float8(convert_uint8(*(global const ushort8 *)p) << 16); }\n"
    "void store(float8 v, global T *p) {\n"
    "    const uint8 u = as_uint8(v);\n"
    "    *(global ushort8 *)p = convert_ushort8((u + 0x7fff + (u >> 16 & 1)) >> 16);\n"
    "}\n"
    "float load_one(global const T *p) { return as_float((uint)*p << 16); }\n"
    "void store_one(float v, global T *p) {\n"
    "    const uint u = as_uint(v);\n"
    "    *p = (u + 0x7fff + (u >> 16 & 1)) >> 16;\n"
    "}\n"
    "#elif defined F16\n"
    "float8 load(global const T *p) { return vloada_half8(0, p); }\n"
    "void store(float8 v, global T *p) { vstorea_half8(v, 0, p); }\n"
    "float load_one(global const T *p) { return vload_half(0, p); }\n"
    "void store_one(float v, global T *p) { vstore_half(v, 0, p); }\n"
    "#else\n"
    "REALS load(global const T *p) { return *(global const REALS *)p; }\n"
    "void store(REALS v, global T *p) { *(global REALS *)p = v; }\n"
    "REAL load_one(global const T *p) { return *p; }\n"
    "void store_one(REAL v, global T *p) { *p = v; }\n"
    "#endif\n"
    "\n"
    "/* Philox 4x32-10 of a block of four elements. */\n"
    "uint4 draw(ulong block) {\n"
    "    uint a = (uint)block, b = (uint)(block >> 32), c = 0, d = 0, key = 1, other_key = 0;\n"
    "#pragma unroll\n"
    "    for (uint i = 0; i < 10; i++) {\n"
    "        const ulong even = (ulong)a * 0xd2511f53U, odd = (ulong)c * 0xcd9e8d57U;\n"
    "        a = (uint)(odd >> 32) ^ b ^ key;\n"
    "        b = (uint)odd;\n"
    "        c = (uint)(even >> 32) ^ d ^ other_key;\n"
    "        d = (uint)even;\n"
    "        key += 0x9e3779b9U;\n"
    "        other_key += 0xbb67ae85U;\n"
    "    }\n"
    "    return (uint4)(a, b, c, d);\n"
    "}\n"
    "\n"
    "/* The elements after the last whole vector go one by one. */\n"
    "#define EACH(VECTOR, ONE)                                          \\\n"
    "    const ulong i = get_global_id(0) * VEC;                        \\\n"
    "    if (i + VEC <= count) {                                        \\\n"
    "        const REALS a = load(in + i);                              \\\n"
    "        store(VECTOR, out + i);                                    \\\n"
    "    } else {                                                       \\\n"
    "        for (ulong j = i; j < count; j++) {                        \\\n"
    "            const REAL a = load_one(in + j);                       \\\n"
    "            store_one(ONE, out + j);                               \\\n"
    "        }                                                          \\\n"
    "    }\n"
    "\n"
    "kernel void add(global const T *restrict in, global const T *restrict other, global T *restrict out, ulong count) {\n"
    "    EACH(a + load(other + i), a + load_one(other + j))\n"
    "}\n"
    "\n"
    "REAL kept(REAL a, uint bits) { return bits < 429496730U ? 0 : a * (REAL)(10 / 9.f); }\n"
    "\n"
    "REAL one_kept(REAL a, ulong i) {\n"
    "    union { uint4 all; uint each[4]; } bits;\n"
    "    bits.all = draw(i / 4);\n"
    "    return kept(a, bits.each[i % 4]);\n"
    "}\n"
    "\n"
    "REALS all_kept(REALS a, ulong i) {\n"
    "    union { REALS all; REAL each[VEC]; } v;\n"
    "    union { uint4 all[2]; uint each[8]; } bits;\n"
    "    v.all = a;\n"
    "    bits.all[0] = draw(i / 4);\n"
    "    if (VEC > 4)\n"
    "        bits.all[1] = draw(i / 4 + 1);\n"
    "#pragma unroll\n"
    "    for (uint k = 0; k < VEC; k++)\n"
    "        v.each[k] = kept(v.each[k], bits.each[VEC < 4 ? i % 4 + k : k]);\n"
    "    return v.all;\n"
    "}\n"
    "\n"
    "/* Sets one element in ten to 0, with the library's random number generator. */\n"
    "kernel void dropout(global const T *restrict in, global const T *restrict other, global T *restrict out, ulong count) {\n"
    "    EACH(all_kept(a, i), one_kept(a, j))\n"
    "}\n"
    "\n"
    "REALS silu(REALS z) { return z / (1 + exp(-z)); }\n"
    "REAL silu_one(REAL z) { return z / (1 + exp(-z)); }\n"
    "\n"
    "kernel void gate(global const T *restrict in, global const T *restrict other, global T *restrict out, ulong count) {\n"
    "    EACH(a * silu(load(other + i)), a * silu_one(load_one(other + j)))\n"
    "}\n";

static const char *options_of(clnorm_dtype dtype, cl_uint *vector) {
    *vector = dtype == CLNORM_F64 ? 2 : dtype == CLNORM_F32 ? 4 : 8;
    switch (dtype) {
    case CLNORM_BF16:
        return "-cl-std=CL1.2 -D BF16 -D T=ushort -D REAL=float -D REALS=float8 -D VEC=8";
    case CLNORM_F16:
        return "-cl-std=CL1.2 -D F16 -D T=half -D REAL=float -D REALS=float8 -D VEC=8";
    case CLNORM_F64:
        return "-cl-std=CL1.2 -D T=double -D REAL=double -D REALS=double2 -D VEC=2";
    default:
        return "-cl-std=CL1.2 -D T=float -D REAL=float -D REALS=float4 -D VEC=4";
    }
}

bool plain_kernels_make(struct plain_kernels *kernels, const struct session *session, clnorm_dtype dtype,
                        struct fault *fault) {
    const struct cln_source program = {.name = "unfused.cl", .text = source, .length = sizeof source - 1};
    *kernels = (struct plain_kernels){0};
    const char *const options = options_of(dtype, &kernels->vector);
    const clnorm_status status = cln_program_build(session->context, &program, options, &kernels->program);
    if (status)
        return fault_library(fault, status, "kernel");
    cl_int code;
    kernels->add = clCreateKernel(kernels->program, "add", &code);
    if (!code)
        kernels->dropout = clCreateKernel(kernels->program, "dropout", &code);
    if (!code)
        kernels->gate = clCreateKernel(kernels->program, "gate", &code);
    return !code || fault_opencl(fault, code, "clCreateKernel", "the unfused kernels");
}

void plain_kernels_free(struct plain_kernels *kernels) {
    const cl_kernel all[] = {kernels->add, kernels->dropout, kernels->gate};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            clReleaseKernel(all[i]);
    if (kernels->program)
        clReleaseProgram(kernels->program);
    *kernels = (struct plain_kernels){0};
}

bool plain_kernels_enqueue(const struct plain_kernels *kernels, const struct session *session,
                           const struct plain_call *call, cl_event *event, struct fault *fault) {
    const size_t most = (size_t)session->device.max_work_group_size;
    const size_t local = most < GROUP_ITEMS ? most : GROUP_ITEMS;
    const uint64_t items = (call->count + kernels->vector - 1) / kernels->vector;
    const size_t global = (size_t)((items + local - 1) / local * local);
    const cl_mem mems[] = {call->in, call->other, call->out};
    const cl_ulong count = call->count;
    cl_int code = clSetKernelArg(call->kernel, 3, sizeof count, &count);
    for (cl_uint i = 0; i < 3 && !code; i++)
        code = clSetKernelArg(call->kernel, i, sizeof mems[i], &mems[i]);
    if (!code)
        code = clEnqueueNDRangeKernel(session->queue, call->kernel, 1, NULL, &global, &local, 0, NULL, event);
    return !code || fault_opencl(fault, code, "clEnqueueNDRangeKernel", "an unfused kernel");
}
