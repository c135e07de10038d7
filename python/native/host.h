/* Calls of an operation on memory of the host, and on buffers of a caller's queue, each one C call for the binding. */
#ifndef CLN_PYTHON_HOST_H
#define CLN_PYTHON_HOST_H

#include "clnorm/clnorm.h"
#include "opencl_loader.h"

enum { CLN_MOST_TENSORS = 24 };

/* A tensor of a call: the place of its clnorm_buffer in clnorm_args, and the bytes that it spans. */
typedef struct cln_call_tensor {
    uint64_t place;  /* offsetof(clnorm_args, x) */
    uint64_t bytes;  /* from the first element to the end of the last; 0: nothing is read or written */
    uint64_t width;  /* bytes of a row; 0: its rows have several strides */
    uint64_t stride; /* bytes from row to row; 0 with a width of 0 */
    uint32_t read, written;
} cln_call_tensor;

/* An operation, its descriptor and its tensors. Threads share it, as it is constant. */
typedef struct cln_call {
    void *operation;  /* clnorm_norm_forward or any other one-call function */
    const void *desc; /* that function's descriptor */
    uint32_t count;   /* of tensors */
    uint32_t seeded;  /* the call has a seed */
    cln_call_tensor tensors[CLN_MOST_TENSORS];
} cln_call;

/* A device with a context, and a queue for each thread that calls at the same time. It lives as long as the process. */
typedef struct cln_host cln_host;

/* Returns 0, a negative OpenCL code, or a positive clnorm_status, whose detail is clnorm_error_detail. */
int cln_host_create(cl_device_id device, cln_host **host);

/* Asks the system for huge pages under new memory: the first access to it then causes fewer page faults. */
void cln_use_huge_pages(uintptr_t start, uint64_t bytes);

enum {
    CLN_OVERLAP = 1000,  /* + 32 · output + other tensor: an output lies over another tensor */
    CLN_NO_MEMORY = 2000 /* + tensor: its address is NULL */
};

/* Runs a call on the memory at pointers, [call->count] addresses as uintptr_t, and returns when the outputs are written. A
 * CPU works in that memory itself; inputs and outputs of another device are copied. Returns as cln_host_create, or a number
 * from CLN_OVERLAP on. */
int cln_host_run(cln_host *host, const cln_call *call, const void *pointers, uint64_t seed, uint64_t offset);

/* Enqueues a call. buffers: a cl_mem and a byte offset for each tensor, as uintptr_t. The caller releases *event. Returns a
 * clnorm_status. */
int cln_queue_run(clnorm_context *context, cl_command_queue queue, const cln_call *call, const void *buffers, uint64_t seed,
                  uint64_t offset, cl_uint waits, const cl_event *wait_list, cl_event *event);

#endif
