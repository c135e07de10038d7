#include "device/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "device/device_facts.h"

/* CL_PLATFORM_NOT_FOUND_KHR: the loader knows of no implementation. */
enum { PLATFORM_NOT_FOUND = -1001 };

static clnorm_status report(struct cln_unread unread) {
    if (unread.code == CLN_NO_MEMORY)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, reading %s", unread.what);
    char action[96];
    (void)snprintf(action, sizeof action, "reading %s", unread.what);
    return cln_fail_opencl(unread.code, action);
}

static cl_int list_ids(cl_platform_id platform, cl_uint capacity, void *ids, cl_uint *count) {
    const cl_int code = platform ? clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, capacity, ids, count)
                                 : clGetPlatformIDs(capacity, ids, count);
    if (code != CL_DEVICE_NOT_FOUND && code != PLATFORM_NOT_FOUND)
        return code;
    *count = 0;
    return CL_SUCCESS;
}

/* The devices of a platform, or all platforms where platform is NULL, in a new allocation; NULL when there are none. */
static cl_int get_ids(cl_platform_id platform, void **ids, cl_uint *count) {
    cl_uint found = 0;
    *ids = NULL;
    *count = 0;
    cl_int code = list_ids(platform, 0, NULL, &found);
    if (code != CL_SUCCESS || found == 0)
        return code;
    void *const list = calloc(found, sizeof(void *));
    if (!list)
        return CLN_NO_MEMORY;
    cl_uint written = 0;
    code = list_ids(platform, found, list, &written);
    if (code != CL_SUCCESS || written == 0) {
        free(list);
        return code;
    }
    *ids = list;
    *count = written < found ? written : found;
    return CL_SUCCESS;
}

/* The index of an id in the list of get_ids; UINT_MAX when it is not in the list. */
static cl_int find_id(cl_platform_id platform, const void *id, unsigned *index) {
    void *ids = NULL;
    cl_uint count = 0;
    const cl_int code = get_ids(platform, &ids, &count);
    *index = UINT_MAX;
    for (cl_uint i = 0; i < count && *index == UINT_MAX; i++)
        if (((void **)ids)[i] == id)
            *index = i;
    free(ids);
    return code;
}

struct listing {
    clnorm_device_info *infos;
    size_t count;
    struct cln_unread unread; /* the first platform or device that was left out, or a lack of memory */
};

static void leave_out(struct listing *listing, cl_int code, const char *what) {
    if (code != CL_SUCCESS && (code == CLN_NO_MEMORY || listing->unread.code == CL_SUCCESS))
        listing->unread = (struct cln_unread){code, what};
}

static void add_devices(struct listing *listing, cl_platform_id platform, unsigned platform_index) {
    void *ids = NULL;
    cl_uint count = 0;
    leave_out(listing, get_ids(platform, &ids, &count), "the devices of a platform");
    if (count == 0)
        return;
    clnorm_device_info *const infos = realloc(listing->infos, (listing->count + count) * sizeof *infos);
    if (!infos) {
        leave_out(listing, CLN_NO_MEMORY, "the devices of a platform");
        free(ids);
        return;
    }
    listing->infos = infos;
    for (cl_uint i = 0; i < count; i++) {
        clnorm_device_info *const info = &infos[listing->count];
        *info = (clnorm_device_info){
            .size = sizeof *info,
            .platform = platform,
            .device = ((cl_device_id *)ids)[i],
            .platform_index = platform_index,
            .device_index = i,
        };
        const struct cln_unread unread = cln_device_read(info);
        leave_out(listing, unread.code, unread.what);
        listing->count += unread.code == CL_SUCCESS;
    }
    free(ids);
}

static uint64_t speed(const clnorm_device_info *info) {
    return (uint64_t)info->compute_units * (info->clock_mhz ? info->clock_mhz : 1);
}

/* Best first. Devices that are equally good stay in the order of the platforms. */
static int compare(const void *left, const void *right) {
    const clnorm_device_info *const a = left, *const b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (speed(a) != speed(b))
        return speed(a) > speed(b) ? -1 : 1;
    if (a->platform_index != b->platform_index)
        return a->platform_index < b->platform_index ? -1 : 1;
    return a->device_index < b->device_index ? -1 : 1;
}

clnorm_status cln_device_all(clnorm_device_info **infos, size_t *count, struct cln_unread *left_out) {
    struct listing listing = {NULL, 0, {CL_SUCCESS, NULL}};
    void *platforms = NULL;
    cl_uint platform_count = 0;
    leave_out(&listing, get_ids(NULL, &platforms, &platform_count), "the OpenCL platforms");
    for (cl_uint i = 0; i < platform_count; i++)
        add_devices(&listing, ((cl_platform_id *)platforms)[i], i);
    free(platforms);

    const bool failed = listing.unread.code == CLN_NO_MEMORY || (listing.unread.code != CL_SUCCESS && listing.count == 0);
    if (failed || listing.count == 0) {
        free(listing.infos);
        listing.infos = NULL;
    }
    if (failed)
        return report(listing.unread);
    if (listing.infos)
        qsort(listing.infos, listing.count, sizeof *listing.infos, compare);
    *infos = listing.infos;
    *count = listing.count;
    *left_out = listing.unread;
    return CLNORM_SUCCESS;
}

void clnorm_device_info_init(clnorm_device_info *info) {
    static const clnorm_device_info initial = CLNORM_DEVICE_INFO_INIT;
    if (info)
        *info = initial;
}

const struct cln_struct cln_device_info_struct = {"info", "CLNORM_DEVICE_INFO_INIT", sizeof(clnorm_device_info)};

clnorm_status clnorm_device_list(cl_device_id *devices, size_t capacity, size_t *count) {
    if (!count)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "count is NULL");
    if (!devices && capacity > 0)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "devices is NULL though capacity is %zu", capacity);
    clnorm_device_info *all = NULL;
    struct cln_unread left_out;
    const clnorm_status status = cln_device_all(&all, count, &left_out);
    for (size_t i = 0; all && i < *count && i < capacity; i++)
        devices[i] = all[i].device;
    free(all);
    return status;
}

cl_device_id cln_device_whole(cl_device_id device) {
    cl_device_id parent = NULL;
    while (clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL) == CL_SUCCESS && parent)
        device = parent;
    return device;
}

clnorm_status clnorm_device_describe(cl_device_id device, clnorm_device_info *info) {
    if (!device)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "device is NULL");
    const clnorm_status status = cln_struct_check(&cln_device_info_struct, info);
    if (status)
        return status;
    clnorm_device_info read = {.size = sizeof read, .device = device};
    cl_int code = clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof read.platform, &read.platform, NULL);
    if (code == CL_SUCCESS)
        code = find_id(NULL, read.platform, &read.platform_index);
    if (code == CL_SUCCESS)
        code = find_id(read.platform, cln_device_whole(device), &read.device_index);
    struct cln_unread unread = {code, "the platform of a device"};
    if (code == CL_SUCCESS)
        unread = cln_device_read(&read);
    if (unread.code != CL_SUCCESS)
        return report(unread);
    cln_struct_give(&cln_device_info_struct, &read, info);
    return CLNORM_SUCCESS;
}
