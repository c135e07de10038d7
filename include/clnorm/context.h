/* Contexts: one per (cl_context, cl_device_id), with device facts, compiled programs and caches. */
#ifndef CLNORM_CONTEXT_H
#define CLNORM_CONTEXT_H

#include "clnorm/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clnorm_context clnorm_context;

/* Called with one line of text, without a newline, for each new context, each program (built, or from which cache) and
 * each line of a build log, in the thread that caused it. */
typedef void (*clnorm_log_fn)(const char *line, void *user);

typedef struct clnorm_context_options {
    uint64_t size;     /* sizeof(clnorm_context_options) */
    clnorm_log_fn log; /* NULL: silent */
    void *log_user;
    /* The folder of the on-disk program cache. NULL: $CLNORM_CACHE_DIR, else $XDG_CACHE_HOME/clnorm, else
     * ~/.cache/clnorm. "" here, or CLNORM_CACHE=0 in the environment: nothing is kept on disk. */
    const char *cache_dir;
    /* 1: NVIDIA's driver reports the registers and memory of each kernel in its build log, which log gets line by line.
     * Kernels stay the same. A program from a cache, the driver's too, has no report. */
    uint32_t build_report;
    uint32_t reserved; /* 0 */
} clnorm_context_options;

#define CLNORM_CONTEXT_OPTIONS_INIT \
    { sizeof(clnorm_context_options), NULL, NULL, NULL, 0, 0 }
CLNORM_API void clnorm_context_options_init(clnorm_context_options *options);

/* Makes a context for one device of a cl_context, and retains the cl_context. options: NULL is CLNORM_CONTEXT_OPTIONS_INIT.
 * Reads the device's facts and tuning file, and compiles nothing.
 * CLNORM_INVALID_ARGUMENT: a NULL, or a device that is not one of the cl_context's. CLNORM_INVALID_VALUE: a flag of options
 * is neither 0 nor 1, or reserved is not 0. CLNORM_UNSUPPORTED: the device has no OpenCL 1.2. */
CLNORM_API clnorm_status clnorm_context_create(cl_context cl, cl_device_id device, const clnorm_context_options *options,
                                               clnorm_context **context);

/* Releases everything that the context made. NULL is allowed. Its plans must have been destroyed, and no other call may use
 * it any more. Commands that are still running keep what they need. */
CLNORM_API void clnorm_context_destroy(clnorm_context *context);

/* The facts of the context's device, valid as long as the context. NULL for NULL. */
CLNORM_API const clnorm_device_info *clnorm_context_device(const clnorm_context *context);

/* The folder of the on-disk program cache, "" when there is none, as for NULL; valid as long as the context. */
CLNORM_API const char *clnorm_context_cache_dir(const clnorm_context *context);

/* The path of a device's tuning file: measured configs as text, which `clnorm tune` writes and a new context reads. It is
 * $CLNORM_TUNING, else DEVICE.tuning in $XDG_CONFIG_HOME/clnorm or ~/.config/clnorm. There is none with CLNORM_TUNING=0,
 * and for NULL.
 *
 * A plan whose descriptor forces no knob takes the knobs of the file's row for its operation, dtypes and number of columns
 * (clnorm_plan_tuning_key). A row that names the dtype of x alone matches any wider dtype of other tensors. The library
 * chooses itself where the file has no such row, is for another driver or has an error. clnorm_plan_describe says which
 * row was used.
 *
 * Writes the path, "" for none, at most capacity bytes with the terminating NUL, and returns its length, as snprintf
 * does. Nothing is written to a NULL path. */
CLNORM_API size_t clnorm_tuning_path(const clnorm_device_info *device, char *path, size_t capacity);

/* The cache of compiled programs on disk needs no maintenance. The functions below list it and free its space. dir: the
 * cache's folder; NULL: the folder that the environment names, as in clnorm_context_options. */

/* Writes the path of the folder that the environment names, "" for none, at most capacity bytes with the terminating NUL,
 * and returns its length, as snprintf does. */
CLNORM_API size_t clnorm_cache_dir(char *path, size_t capacity);

/* A file of the cache. The strings are valid until the callback returns. */
typedef struct clnorm_cache_entry {
    const char *file;    /* its name within the folder */
    uint64_t size;       /* bytes */
    int64_t last_used;   /* seconds since 1970 */
    const char *source;  /* "norm_forward.cl"; source, device and options are "" where the file is unfinished or damaged */
    const char *device;  /* the name of the device that the program was built for */
    const char *options; /* build options */
} clnorm_cache_entry;

typedef void (*clnorm_cache_fn)(const clnorm_cache_entry *entry, void *user);

/* Calls each for every file of the cache, the latest used first. A folder that does not exist has no files.
 * CLNORM_INVALID_ARGUMENT: each is NULL, or the folder cannot be read, belongs to another user, may be written to by other
 * users, or is reached by another user's symbolic link. */
CLNORM_API clnorm_status clnorm_cache_list(const char *dir, clnorm_cache_fn each, void *user);

/* Removes every file of the cache. Other processes may use them at the same time. *removed: the number of files; removed
 * may be NULL. Fails as clnorm_cache_list does, and with CLNORM_INVALID_ARGUMENT where a file cannot be removed. */
CLNORM_API clnorm_status clnorm_cache_clear(const char *dir, size_t *removed);

#ifdef __cplusplus
}
#endif

#endif
