/* The OpenCL loader that the wheel opens at run time: the file that CLNORM_OPENCL names, else libOpenCL.so.1. */
#ifndef CLN_PYTHON_OPENCL_LOADER_H
#define CLN_PYTHON_OPENCL_LOADER_H

/* Opens the loader once. Returns "", or the reason why it could not be opened. */
const char *cln_loader_failure(void);

#endif
