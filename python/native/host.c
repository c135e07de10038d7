#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include "host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef clnorm_status (*operation_fn)(clnorm_context *, cl_command_queue, const void *, const clnorm_args *, cl_uint,
                                      const cl_event *, cl_event *);

enum { MOST_QUEUES = 64 };

struct cln_host {
    cl_device_id device;
    cl_context cl;
    clnorm_context *context;
    bool in_place; /* the device works in the host's memory */
    bool mapped;   /* the host may read what a kernel wrote there only after mapping it; PoCL's CPUs need no mapping */
    pthread_mutex_t lock;
    unsigned idle; /* number of queues that no thread uses; they come first in queues */
    cl_command_queue queues[MOST_QUEUES];
};

/* Memory of the host that one buffer of a call covers: that of a tensor, or of several that overlap. */
struct region {
    char *start, *end;
    bool read, written;
    cl_mem mem;
};

struct regions {
    unsigned count;
    struct region region[CLN_MOST_TENSORS];
};

int cln_host_create(cl_device_id device, cln_host **host) {
    cln_host *const made = calloc(1, sizeof *made);
    if (!made || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return CLNORM_OUT_OF_HOST_MEMORY;
    }
    cl_device_type type = 0;
    cl_int code = clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (!code)
        made->cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code) {
        free(made);
        return code;
    }
    made->device = device;
    made->in_place = type & CL_DEVICE_TYPE_CPU;
    const clnorm_status status = clnorm_context_create(made->cl, device, NULL, &made->context);
    if (status) {
        (void)clReleaseContext(made->cl);
        free(made);
        return status;
    }
    made->mapped = clnorm_context_device(made->context)->family != CLNORM_PLATFORM_POCL;
    *host = made;
    return CLNORM_SUCCESS;
}

static cl_command_queue take_queue(cln_host *host, cl_int *code) {
    (void)pthread_mutex_lock(&host->lock);
    cl_command_queue queue = host->idle ? host->queues[--host->idle] : NULL;
    (void)pthread_mutex_unlock(&host->lock);
    return queue ? queue : clCreateCommandQueue(host->cl, host->device, 0, code);
}

static void return_queue(cln_host *host, cl_command_queue queue) {
    (void)pthread_mutex_lock(&host->lock);
    const bool kept = host->idle < MOST_QUEUES;
    if (kept)
        host->queues[host->idle++] = queue;
    (void)pthread_mutex_unlock(&host->lock);
    if (!kept)
        (void)clReleaseCommandQueue(queue);
}

/* pointers: uintptr_t in a bytes object of Python, where they may be unaligned. */
static char *pointer_of(const void *pointers, uint32_t index) {
    uintptr_t address = 0;
    memcpy(&address, (const char *)pointers + index * sizeof address, sizeof address);
    return (char *)address;
}

/* Whether two tensors whose bytes overlap are different columns of the same rows. True for tensors of several strides,
 * which the library checks itself. */
static bool are_beside(const cln_call_tensor *low, const cln_call_tensor *high, size_t distance) {
    if (!low->width || !high->width)
        return true;
    const uint64_t column = low->stride ? distance % low->stride : 0;
    return low->stride == high->stride && column >= low->width && column + high->width <= low->stride;
}

/* CLN_NO_MEMORY with a tensor whose memory its owner has released, as PyTorch's FSDP does; 0: none. */
static int find_null(const cln_call *call, const void *pointers) {
    for (uint32_t i = 0; i < call->count; i++)
        if (call->tensors[i].bytes && !pointer_of(pointers, i))
            return (int)(CLN_NO_MEMORY + i);
    return 0;
}

/* CLN_OVERLAP with an output that overlaps another tensor; 0: none. An output may be exactly an input. */
static int find_overlap(const cln_call *call, const void *pointers) {
    for (uint32_t i = 0; i < call->count; i++)
        for (uint32_t k = 0; call->tensors[i].written && k < call->count; k++) {
            const cln_call_tensor *const a = &call->tensors[i], *const b = &call->tensors[k];
            const char *const at = pointer_of(pointers, i), *const other = pointer_of(pointers, k);
            if (i == k || !a->bytes || !b->bytes || (at == other && !b->written) || at + a->bytes <= other ||
                other + b->bytes <= at)
                continue;
            if (at < other ? !are_beside(a, b, (size_t)(other - at)) : !are_beside(b, a, (size_t)(at - other)))
                return (int)(CLN_OVERLAP + 32 * i + k);
        }
    return 0;
}

/* Adds a tensor to the regions; regions that it connects become one. */
static void add_region(struct regions *regions, char *start, const cln_call_tensor *tensor) {
    struct region whole = {start, start + tensor->bytes, tensor->read, tensor->written, NULL};
    unsigned kept = 0;
    for (unsigned i = 0; i < regions->count; i++) {
        const struct region *const other = &regions->region[i];
        if (other->end <= whole.start || whole.end <= other->start) {
            regions->region[kept++] = *other;
            continue;
        }
        whole.start = other->start < whole.start ? other->start : whole.start;
        whole.end = other->end > whole.end ? other->end : whole.end;
        whole.read |= other->read;
        whole.written |= other->written;
    }
    regions->region[kept] = whole;
    regions->count = kept + 1;
}

static cl_int make_buffers(const cln_host *host, struct regions *regions) {
    cl_int code = CL_SUCCESS;
    for (unsigned i = 0; i < regions->count && !code; i++) {
        struct region *const region = &regions->region[i];
        const cl_mem_flags access = !region->written ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
        const cl_mem_flags memory = host->in_place ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR;
        region->mem =
            clCreateBuffer(host->cl, access | memory, (size_t)(region->end - region->start), region->start, &code);
    }
    return code;
}

/* Makes the writes of a kernel to the host's memory visible to the host. */
static cl_int map_region(cl_command_queue queue, const struct region *region) {
    cl_int code = CL_SUCCESS;
    // Blocking: rusticl cannot unmap a region before its mapping is complete.
    void *const mapped = clEnqueueMapBuffer(queue, region->mem, CL_TRUE, CL_MAP_READ, 0,
                                            (size_t)(region->end - region->start), 0, NULL, NULL, &code);
    return code ? code : clEnqueueUnmapMemObject(queue, region->mem, mapped, 0, NULL, NULL);
}

/* Copies an output back. Gaps between rows of one stride are left out, as other threads may write there meanwhile; gaps of
 * several strides are overwritten with their contents from before the call. It reads into temporary memory, because
 * NVIDIA's driver returns CL_INVALID_VALUE from clEnqueueReadBufferRect for such rows. */
static cl_int read_output(cl_command_queue queue, const struct region *region, const cln_call_tensor *tensor, char *start) {
    const size_t offset = (size_t)(start - region->start), bytes = (size_t)tensor->bytes;
    const size_t width = (size_t)tensor->width, stride = (size_t)tensor->stride;
    if (!width || width == stride || bytes <= width)
        return clEnqueueReadBuffer(queue, region->mem, CL_FALSE, offset, bytes, start, 0, NULL, NULL);
    char *const with_gaps = malloc(bytes);
    if (!with_gaps)
        return CL_OUT_OF_HOST_MEMORY;
    const cl_int code = clEnqueueReadBuffer(queue, region->mem, CL_TRUE, offset, bytes, with_gaps, 0, NULL, NULL);
    for (size_t row = 0; row < bytes && !code; row += stride)
        memcpy(start + row, with_gaps + row, width);
    free(with_gaps);
    return code;
}

static const struct region *region_of(const struct regions *regions, const char *start) {
    for (unsigned i = 0; i < regions->count; i++)
        if (regions->region[i].start <= start && start < regions->region[i].end)
            return &regions->region[i];
    return NULL;
}

/* Waits, and makes the outputs visible to the host. */
static cl_int collect(const cln_host *host, cl_command_queue queue, const cln_call *call, const void *pointers,
                      const struct regions *regions) {
    cl_int code = CL_SUCCESS;
    for (unsigned i = 0; i < regions->count && host->in_place && host->mapped && !code; i++)
        if (regions->region[i].written)
            code = map_region(queue, &regions->region[i]);
    for (uint32_t i = 0; i < call->count && !host->in_place && !code; i++) {
        char *const start = pointer_of(pointers, i);
        if (call->tensors[i].written && call->tensors[i].bytes)
            code = read_output(queue, region_of(regions, start), &call->tensors[i], start);
    }
    const cl_int finished = clFinish(queue);
    return code ? code : finished;
}

static void set_arguments(const cln_call *call, const void *pointers, const struct regions *regions, clnorm_args *args) {
    for (uint32_t i = 0; i < call->count; i++) {
        char *const start = pointer_of(pointers, i);
        clnorm_buffer *const buffer = (clnorm_buffer *)(void *)((char *)args + call->tensors[i].place);
        const struct region *const region = call->tensors[i].bytes ? region_of(regions, start) : NULL;
        if (region) {
            buffer->mem = region->mem;
            buffer->offset = (uint64_t)(start - region->start);
        }
    }
}

static int run_over(cln_host *host, const cln_call *call, const void *pointers, const struct regions *regions,
                    const clnorm_seed *seed) {
    clnorm_args args = CLNORM_ARGS_INIT;
    set_arguments(call, pointers, regions, &args);
    args.seed = call->seeded ? seed : NULL;
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = take_queue(host, &code);
    if (!queue)
        return code;
    const clnorm_status status = ((operation_fn)call->operation)(host->context, queue, call->desc, &args, 0, NULL, NULL);
    code = status ? clFinish(queue) : collect(host, queue, call, pointers, regions);
    return_queue(host, queue);
    return status ? (int)status : code;
}

int cln_host_run(cln_host *host, const cln_call *call, const void *pointers, uint64_t seed, uint64_t offset) {
    const int null = find_null(call, pointers);
    if (null)
        return null;
    const int overlap = find_overlap(call, pointers);
    if (overlap)
        return overlap;
    struct regions regions = {0};
    for (uint32_t i = 0; i < call->count; i++)
        if (call->tensors[i].bytes)
            add_region(&regions, pointer_of(pointers, i), &call->tensors[i]);
    const clnorm_seed numbers = {seed, offset};
    int result = make_buffers(host, &regions);
    if (!result)
        result = run_over(host, call, pointers, &regions, &numbers);
    for (unsigned i = 0; i < regions.count; i++)
        if (regions.region[i].mem)
            (void)clReleaseMemObject(regions.region[i].mem);
    return result;
}

void cln_use_huge_pages(uintptr_t start, uint64_t bytes) {
    enum { PAGE = 4096 };
    const uintptr_t first = (start + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = (start + (uintptr_t)bytes) / PAGE * PAGE;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE); /* optional: a system without huge pages fails here */
}

int cln_queue_run(clnorm_context *context, cl_command_queue queue, const cln_call *call, const void *buffers, uint64_t seed,
                  uint64_t offset, cl_uint waits, const cl_event *wait_list, cl_event *event) {
    clnorm_args args = CLNORM_ARGS_INIT;
    for (uint32_t i = 0; i < call->count; i++) {
        clnorm_buffer *const buffer = (clnorm_buffer *)(void *)((char *)&args + call->tensors[i].place);
        buffer->mem = call->tensors[i].bytes ? (cl_mem)(void *)pointer_of(buffers, 2 * i) : NULL;
        buffer->offset = (uint64_t)(uintptr_t)pointer_of(buffers, 2 * i + 1);
    }
    const clnorm_seed numbers = {seed, offset};
    args.seed = call->seeded ? &numbers : NULL;
    return (int)((operation_fn)call->operation)(context, queue, call->desc, &args, waits, wait_list, event);
}
