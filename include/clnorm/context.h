/* Contexts: one per (cl_context, cl_device_id), with device facts, compiled programs and caches. */
#ifndef CLNORM_CONTEXT_H
#define CLNORM_CONTEXT_H

#include "clnorm/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clnorm_context clnorm_context;

/* Called with one line, without a newline, for each choice, build and cache hit, in the thread that made it. */
typedef void (*clnorm_log_fn)(const char *line, void *user);

typedef struct clnorm_context_options {
    uint64_t size;     /* sizeof(clnorm_context_options) */
    clnorm_log_fn log; /* NULL: silent */
    void *log_user;
    /* Where compiled programs are kept between processes. NULL: $CLNORM_CACHE_DIR, else $XDG_CACHE_HOME/clnorm, else
     * ~/.cache/clnorm. CLNORM_CACHE=0 in the environment, or "" here, keeps none. */
    const char *cache_dir;
    /* 1: asks the driver for the registers and memory of each kernel, where it can tell (NVIDIA's can). They come in its
     * build log, which goes to log line by line. Kernels stay the same; those from a cache, also the driver's, have no such
     * log. */
    uint32_t build_report;
    uint32_t reserved; /* 0 */
} clnorm_context_options;

#define CLNORM_CONTEXT_OPTIONS_INIT \
    { sizeof(clnorm_context_options), NULL, NULL, NULL, 0, 0 }
CLNORM_API void clnorm_context_options_init(clnorm_context_options *options);

/* Makes the library ready for one device of a cl_context, which it retains. options may be NULL.
 * CLNORM_INVALID_VALUE: a flag of options is neither 0 nor 1, or reserved is not 0. */
CLNORM_API clnorm_status clnorm_context_create(cl_context cl, cl_device_id device, const clnorm_context_options *options,
                                               clnorm_context **context);

/* Releases everything that the context made. NULL is allowed. Its plans must have been destroyed; commands that are still
 * running keep what they need. */
CLNORM_API void clnorm_context_destroy(clnorm_context *context);

/* The facts of its device, valid as long as the context. */
CLNORM_API const clnorm_device_info *clnorm_context_device(const clnorm_context *context);

/* The folder of the on-disk program cache, "" when there is none; valid as long as the context. */
CLNORM_API const char *clnorm_context_cache_dir(const clnorm_context *context);

/* The text file of measured configs for a device, as `clnorm tune` writes it and a new context reads it: $CLNORM_TUNING,
 * else DEVICE.tuning in $XDG_CONFIG_HOME/clnorm or ~/.config/clnorm. A plan whose descriptor forces no knob takes those of
 * the file's row for its operation, dtypes and group_size (clnorm_plan_tuning_key). A row with x's dtype alone is for
 * whatever is wider beside it. Without a row, or where the file is of another driver or cannot be understood, it has the
 * library's own choice. clnorm_plan_describe says which. CLNORM_TUNING=0 reads none.
 * Writes the path, "" for none, as snprintf does, and returns its length. */
CLNORM_API size_t clnorm_tuning_path(const clnorm_device_info *device, char *path, size_t capacity);

/* The cache of compiled programs on disk needs no maintenance. The functions below list it and free its space. dir: a
 * folder as in clnorm_context_options; NULL: the one that the environment names. */

/* Writes the folder that the environment names, "" for none, as snprintf does: at most capacity bytes with the terminating
 * NUL. Returns the length that the whole path has. */
CLNORM_API size_t clnorm_cache_dir(char *path, size_t capacity);

/* A file of the cache. The strings are valid until the callback returns. */
typedef struct clnorm_cache_entry {
    const char *file;    /* its name within the folder */
    uint64_t size;       /* bytes */
    int64_t last_used;   /* seconds since 1970 */
    const char *source;  /* "norm_forward.cl"; "", as are the next two, where the file is unfinished or damaged */
    const char *device;  /* the name of the device that it was built for */
    const char *options; /* build options */
} clnorm_cache_entry;

typedef void (*clnorm_cache_fn)(const clnorm_cache_entry *entry, void *user);

/* Calls each for every file of the cache, the latest used first. A folder that does not exist has none.
 * CLNORM_INVALID_ARGUMENT: a folder that cannot be read, that other users may write to, or that is reached by another
 * user's symbolic link. */
CLNORM_API clnorm_status clnorm_cache_list(const char *dir, clnorm_cache_fn each, void *user);

/* Removes them all, also while other processes use them. *removed: how many there were; may be NULL. */
CLNORM_API clnorm_status clnorm_cache_clear(const char *dir, size_t *removed);

#ifdef __cplusplus
}
#endif

#endif
