#include "program/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/context.h"
#include "base/log.h"
#include "base/status.h"
#include "program/program_build.h"

struct program {
    XXH128_hash_t id; /* of source and options */
    cl_program program;
};

struct cln_program_store {
    pthread_mutex_t lock;     /* held to look up and to insert, never during a build */
    struct program *programs; /* in the order of their ids */
    size_t count, capacity;
};

clnorm_status cln_program_store_create(struct cln_program_store **store) {
    struct cln_program_store *const made = calloc(1, sizeof *made);
    if (!made || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, making a program store");
    }
    *store = made;
    return CLNORM_SUCCESS;
}

void cln_program_store_destroy(struct cln_program_store *store) {
    if (!store)
        return;
    for (size_t i = 0; i < store->count; i++)
        (void)clReleaseProgram(store->programs[i].program);
    free(store->programs);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

static XXH128_hash_t identify(const struct cln_source *source, const char *options) {
    return XXH3_128bits_withSeed(options, strlen(options), source->digest);
}

/* The index of an id, or the one at which it would be inserted. */
static size_t find(const struct cln_program_store *store, const XXH128_hash_t *id, bool *found) {
    size_t low = 0, high = store->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (XXH128_cmp(&store->programs[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < store->count && XXH128_isEqual(store->programs[low].id, *id);
    return low;
}

static clnorm_status retain(cl_program program) {
    const cl_int code = clRetainProgram(program);
    return code == CL_SUCCESS ? CLNORM_SUCCESS : cln_fail_opencl(code, "clRetainProgram");
}

/* Looks up a stored program and takes a reference for the caller. *program is NULL when it is not stored. */
static clnorm_status recall(struct cln_program_store *store, const XXH128_hash_t *id, cl_program *program) {
    bool found = false;
    (void)pthread_mutex_lock(&store->lock);
    const size_t i = find(store, id, &found);
    *program = found ? store->programs[i].program : NULL;
    const clnorm_status status = found ? retain(*program) : CLNORM_SUCCESS;
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* Inserts a program, for which the store takes a reference. */
static clnorm_status insert(struct cln_program_store *store, size_t i, const XXH128_hash_t *id, cl_program program) {
    if (store->count == store->capacity) {
        const size_t capacity = store->capacity ? store->capacity * 2 : 16;
        struct program *const programs = realloc(store->programs, capacity * sizeof *programs);
        if (!programs)
            return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, storing a program");
        store->programs = programs;
        store->capacity = capacity;
    }
    const clnorm_status status = retain(program);
    if (status != CLNORM_SUCCESS)
        return status;
    memmove(&store->programs[i + 1], &store->programs[i], (store->count - i) * sizeof *store->programs);
    store->programs[i] = (struct program){*id, program};
    store->count++;
    return CLNORM_SUCCESS;
}

/* Stores a program. Where another thread has stored a program of this id, *program becomes that one. The caller's reference
 * to the old *program becomes one to the new; after a failure it is released. */
static clnorm_status share(struct cln_program_store *store, const XXH128_hash_t *id, cl_program *program) {
    const cl_program mine = *program;
    bool found = false;
    (void)pthread_mutex_lock(&store->lock);
    const size_t i = find(store, id, &found);
    const cl_program stored = found ? store->programs[i].program : mine;
    const clnorm_status status = found ? retain(stored) : insert(store, i, id, mine);
    (void)pthread_mutex_unlock(&store->lock);
    if (found || status != CLNORM_SUCCESS)
        (void)clReleaseProgram(mine);
    *program = stored;
    return status;
}

static double milliseconds(void) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

clnorm_status cln_program_get(clnorm_context *context, const struct cln_source *source, const char *options,
                              cl_program *program) {
    const double start = milliseconds();
    const XXH128_hash_t id = identify(source, options);
    const char *origin = "from memory";
    cl_program found = NULL;
    clnorm_status status = recall(context->programs, &id, &found);
    if (status == CLNORM_SUCCESS && !found) {
        const bool on_disk = cln_program_on_disk(context);
        origin = "from disk";
        found = on_disk ? cln_program_load(context, source, options) : NULL;
        if (!found) {
            origin = "built";
            status = cln_program_build(context, source, options, &found);
            if (status == CLNORM_SUCCESS && on_disk)
                cln_program_keep(context, source, options, found);
        }
        if (status == CLNORM_SUCCESS)
            status = share(context->programs, &id, &found);
    }
    if (status != CLNORM_SUCCESS)
        return status;
    cln_log(context, "program %s: %s in %.2f ms, %s", source->name, origin, milliseconds() - start, options);
    *program = found;
    return CLNORM_SUCCESS;
}
