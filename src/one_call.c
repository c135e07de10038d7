#include "one_call.h"

#include <string.h>

#include "status.h"

clnorm_status cln_descriptor_check(const struct cln_descriptor *kind, const void *desc) {
    if (!desc)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "desc is NULL");
    const size_t size = *(const size_t *)desc;
    if (size != kind->size)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "desc.size is %zu: expected %zu, start from %s", size, kind->size,
                        kind->init);
    return CLNORM_SUCCESS;
}

clnorm_status cln_one_call(clnorm_context *context, const struct cln_descriptor *kind, cln_plan_maker maker,
                           const void *desc, cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                           const cl_event *wait_list, cl_event *event) {
    if (!context)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "context is NULL");
    const clnorm_status status = cln_descriptor_check(kind, desc);
    if (status)
        return status;
    _Alignas(max_align_t) unsigned char key[CLN_DESCRIPTOR_MOST]; /* the store compares bytes */
    memcpy(key, desc, kind->size);
    memset(key + kind->gap, 0, kind->gap_end - kind->gap);
    return cln_plan_store_enqueue(context, maker, key, kind->size, queue, args, num_wait, wait_list, event);
}
