/* The OpenCL loader that the wheel opens at run time: the file that CLNORM_OPENCL names, else libOpenCL.so.1. */
#ifndef CLN_PYTHON_OPENCL_LOADER_H
#define CLN_PYTHON_OPENCL_LOADER_H

/* Opens it, once; "" when that went well, else why not. */
const char *cln_loader_failure(void);

#endif
