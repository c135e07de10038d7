/* What the programs that time oneDNN share: a primitive with its arguments, its least time, and that of a copy. A program
 * includes it once, and is one file for the compiler. */
#ifndef PEERS_ONEDNN_CALL_H
#define PEERS_ONEDNN_CALL_H

#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_RUNS = 20, MOST_RUNS = 300, ARGUMENTS = 9, ALIGNMENT = 4096 };
static const double MEASURED_US = 1e6;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check(dnnl_status_t status, const char *what) {
    if (status == dnnl_success)
        return;
    fprintf(stderr, "%s: oneDNN status %d\n", what, (int)status);
    exit(1);
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* A primitive and its arguments, or a memcpy. */
struct call {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ARGUMENTS];
    int count;
    void *to, *from; /* of the memcpy; primitive is NULL then */
    size_t size;
};

static void execute(const struct call *call) {
    if (!call->primitive) {
        memcpy(call->to, call->from, call->size);
        return;
    }
    check(dnnl_primitive_execute(call->primitive, stream, call->count, call->arguments), "dnnl_primitive_execute");
    check(dnnl_stream_wait(stream), "dnnl_stream_wait");
}

static double least_us(const struct call *call) {
    execute(call);
    double least = 1e30;
    const double end = now_us() + MEASURED_US;
    for (int run = 0; run < LEAST_RUNS || (run < MOST_RUNS && now_us() < end); run++) {
        const double begin = now_us();
        execute(call);
        const double us = now_us() - begin;
        least = us < least ? us : least;
    }
    return least;
}

/* Memory filled with 1.0 and 0.5 of bf16 in turn; f32 reads the same bytes as 0.5 and a little more. */
static void *allocate(size_t size) {
    const unsigned char pattern[] = {0x80, 0x3f, 0x00, 0x3f};
    unsigned char *const bytes = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!bytes) {
        fprintf(stderr, "no memory for %zu bytes\n", size);
        exit(1);
    }
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern[i % sizeof pattern];
    return bytes;
}

/* desc: a memory descriptor, as oneDNN's version passes it. */
static void add_argument(struct call *call, int role, const void *desc) {
    dnnl_memory_t memory;
    check(dnnl_memory_create(&memory, desc, engine, allocate(dnnl_memory_desc_get_size(desc))), "dnnl_memory_create");
    call->arguments[call->count++] = (dnnl_exec_arg_t){role, memory};
}

static void free_call(struct call *call) {
    for (int i = 0; i < call->count; i++) {
        void *data = NULL;
        check(dnnl_memory_get_data_handle(call->arguments[i].memory, &data), "dnnl_memory_get_data_handle");
        check(dnnl_memory_destroy(call->arguments[i].memory), "dnnl_memory_destroy");
        free(data);
    }
    if (call->primitive)
        check(dnnl_primitive_destroy(call->primitive), "dnnl_primitive_destroy");
    free(call->to);
    free(call->from);
}

/* The least time of a memcpy on one thread that reads and writes half of the bytes each. */
static double copy_us(size_t bytes) {
    struct call copy = {.to = allocate(bytes / 2), .from = allocate(bytes / 2), .size = bytes / 2};
    const double us = least_us(&copy);
    free_call(&copy);
    return us;
}

/* Prints a measurement: a JSON line with the keys of `clnorm bench`. moved: tensors of x's size, in bytes, in the least
 * traffic. more: other members, each after a comma. */
static void report(const char *op, long rows, long cols, const char *dtype, size_t x_size, int moved,
                   const struct call *call, const char *more) {
    const size_t bytes = x_size * (size_t)moved;
    const double us = least_us(call), limit_us = copy_us(bytes);
    const dnnl_version_t *const version = dnnl_version();
    printf("{\"op\": \"%s\", \"provider\": \"onednn\", \"rows\": %ld, \"cols\": %ld, \"dtype\": \"%s\", \"us\": %.2f, "
           "\"limit_us\": %.2f, \"gb_s\": %.1f, \"version\": \"oneDNN %d.%d.%d\"%s}\n",
           op, rows, cols, dtype, us, limit_us, (double)bytes / us * 1e-3, version->major, version->minor, version->patch,
           more);
    fflush(stdout);
}

/* The dtype that the first argument may name; else f32. *next: the index of the next argument, 1 at first. */
static const char *dtype_argument(int argc, char **argv, int *next) {
    const char *const word = *next < argc ? argv[*next] : "";
    const int bf16 = !strcmp(word, "bf16");
    *next += bf16 || !strcmp(word, "f32");
    return bf16 ? "bf16" : "f32";
}

static dnnl_data_type_t type_of(const char *dtype) {
    return strcmp(dtype, "bf16") ? dnnl_f32 : dnnl_bf16;
}

static void open_engine(void) {
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "dnnl_engine_create");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "dnnl_stream_create");
}

static void close_engine(void) {
    check(dnnl_stream_destroy(stream), "dnnl_stream_destroy");
    check(dnnl_engine_destroy(engine), "dnnl_engine_destroy");
}

#endif
