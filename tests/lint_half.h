/* vload_half and vstore_half are core OpenCL C, but the header of some clang versions declares them only with cl_khr_fp16.
 * Included before a kernel by lint_kernels.sh. */
#define HALF_ACCESS(n)                                                                                       \
    float##n __attribute__((overloadable)) vload_half##n(size_t offset, const private half *p);              \
    float##n __attribute__((overloadable)) vload_half##n(size_t offset, const global half *p);               \
    void __attribute__((overloadable)) vstore_half##n##_rte(float##n value, size_t offset, private half *p); \
    void __attribute__((overloadable)) vstore_half##n##_rte(float##n value, size_t offset, global half *p);
HALF_ACCESS()
HALF_ACCESS(2)
HALF_ACCESS(4)
HALF_ACCESS(8)
HALF_ACCESS(16)
#undef HALF_ACCESS
