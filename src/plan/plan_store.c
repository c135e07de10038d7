#include "plan/plan_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/context.h"
#include "base/status.h"
#include "plan/plan.h"

enum { MOST_PLANS = 64 };

struct entry {
    clnorm_plan *plan;
    unsigned references; /* one for the store while it has the entry, and one for each enqueue under way */
    uint64_t used;       /* the store's clock when it was last looked up */
    const void *kind;    /* of descriptor */
    uint64_t hash;       /* of desc */
    size_t size;         /* bytes of desc */
    unsigned char desc[];
};

struct cln_plan_store {
    pthread_mutex_t lock; /* guards everything here, and the references and used of every entry */
    uint64_t clock;       /* look-ups so far */
    size_t count;
    struct entry *entries[MOST_PLANS];
};

clnorm_status cln_plan_store_create(struct cln_plan_store **store) {
    struct cln_plan_store *const made = calloc(1, sizeof *made);
    if (!made || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, making a plan store");
    }
    *store = made;
    return CLNORM_SUCCESS;
}

static void destroy_entry(struct entry *entry) {
    if (!entry)
        return;
    clnorm_plan_destroy(entry->plan);
    free(entry);
}

void cln_plan_store_destroy(struct cln_plan_store *store) {
    if (!store)
        return;
    for (size_t i = 0; i < store->count; i++)
        destroy_entry(store->entries[i]);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

static clnorm_status make_entry(clnorm_context *context, const struct cln_plan_source *source, uint64_t hash,
                                struct entry **entry) {
    struct entry *const made = calloc(1, sizeof *made + source->size);
    if (!made)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, storing a plan");
    made->references = 1;
    made->kind = source->kind;
    made->hash = hash;
    made->size = source->size;
    memcpy(made->desc, source->desc, source->size);
    const clnorm_status status = source->make(context, source->kind, source->desc, &made->plan);
    if (status != CLNORM_SUCCESS) {
        destroy_entry(made);
        return status;
    }
    *entry = made;
    return CLNORM_SUCCESS;
}

/* Returns a reference to the entry of a descriptor, or NULL when there is none. The caller holds the lock. */
static struct entry *find(struct cln_plan_store *store, const struct cln_plan_source *source, uint64_t hash) {
    for (size_t i = 0; i < store->count; i++) {
        struct entry *const entry = store->entries[i];
        if (entry->hash == hash && entry->kind == source->kind && entry->size == source->size &&
            memcmp(entry->desc, source->desc, source->size) == 0) {
            entry->references++;
            entry->used = ++store->clock;
            return entry;
        }
    }
    return NULL;
}

/* Inserts an entry, for which the store takes a reference, and returns the entry that is evicted for it, or NULL. The
 * caller holds the lock. */
static struct entry *insert(struct cln_plan_store *store, struct entry *entry) {
    struct entry *dropped = NULL;
    size_t place = store->count;
    if (store->count == MOST_PLANS) {
        place = 0;
        for (size_t i = 1; i < store->count; i++)
            if (store->entries[i]->used < store->entries[place]->used)
                place = i;
        dropped = store->entries[place];
    } else {
        store->count++;
    }
    entry->references++;
    entry->used = ++store->clock;
    store->entries[place] = entry;
    return dropped;
}

static void release(struct cln_plan_store *store, struct entry *entry) {
    if (!entry)
        return;
    (void)pthread_mutex_lock(&store->lock);
    const bool last = --entry->references == 0;
    (void)pthread_mutex_unlock(&store->lock);
    if (last)
        destroy_entry(entry);
}

/* Returns a reference to the entry of a descriptor. A missing entry is made, outside the lock. */
static clnorm_status acquire(clnorm_context *context, const struct cln_plan_source *source, struct entry **entry) {
    struct cln_plan_store *const store = context->plans;
    const uint64_t hash = XXH3_64bits(source->desc, source->size);
    (void)pthread_mutex_lock(&store->lock);
    struct entry *found = find(store, source, hash);
    (void)pthread_mutex_unlock(&store->lock);
    if (!found) {
        struct entry *made = NULL;
        const clnorm_status status = make_entry(context, source, hash, &made);
        if (status != CLNORM_SUCCESS)
            return status;
        (void)pthread_mutex_lock(&store->lock);
        found = find(store, source, hash); /* another thread may have inserted it meanwhile */
        struct entry *const surplus = found ? made : insert(store, made);
        (void)pthread_mutex_unlock(&store->lock);
        release(store, surplus);
        found = found ? found : made;
    }
    *entry = found;
    return CLNORM_SUCCESS;
}

/* Enqueues with a workspace of its own. OpenCL keeps that until the commands have completed. */
static clnorm_status enqueue_with_workspace(clnorm_context *context, clnorm_plan *plan, cl_command_queue queue,
                                            clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                            cl_event *event) {
    cl_int code = CL_SUCCESS;
    const uint64_t size = clnorm_plan_workspace_size(plan);
    if (size > SIZE_MAX)
        return cln_fail(CLNORM_OUT_OF_DEVICE_MEMORY, "a workspace of %llu bytes is too large for a buffer of this host",
                        (unsigned long long)size);
    const cl_mem workspace = clCreateBuffer(context->cl, CL_MEM_READ_WRITE, (size_t)size, NULL, &code);
    if (code != CL_SUCCESS)
        return cln_fail_opencl(code, "clCreateBuffer of the workspace");
    args->workspace = (clnorm_buffer){workspace, 0};
    const clnorm_status status = clnorm_plan_enqueue(plan, queue, args, num_wait, wait_list, event);
    (void)clReleaseMemObject(workspace);
    return status;
}

clnorm_status cln_plan_store_enqueue(clnorm_context *context, const struct cln_plan_source *source, cl_command_queue queue,
                                     const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                     cl_event *event) {
    clnorm_args complete;
    struct entry *entry = NULL;
    clnorm_status status = cln_args_take(args, &complete);
    if (!status)
        status = acquire(context, source, &entry);
    if (status)
        return status;
    if (!complete.workspace.mem && clnorm_plan_workspace_size(entry->plan) > 0)
        status = enqueue_with_workspace(context, entry->plan, queue, &complete, num_wait, wait_list, event);
    else
        status = clnorm_plan_enqueue(entry->plan, queue, &complete, num_wait, wait_list, event);
    release(context->plans, entry);
    return status;
}
