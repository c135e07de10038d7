/* Times oneDNN's layer norm on a CPU. Each measurement is a JSON line with the keys of `clnorm bench`.
 *
 *   cc -O2 tools/peers/onednn.c -o onednn -ldnnl && ./onednn [f32|bf16] [ROWSxCOLS …]
 *
 * For oneDNN 2 (Debian 12: libdnnl-dev). Forward writes mean and variance, as in training; backward writes dx, dscale and
 * dshift. Weights and statistics are f32. us is the least of many runs; limit_us is the least time of a memcpy on one
 * thread that reads and writes half of the least traffic each. */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_RUNS = 20, MOST_RUNS = 300, ARGUMENTS = 9, ALIGNMENT = 4096 };
static const double MEASURED_US = 1e6;

struct shape {
    long rows, cols;
};

static const struct shape usual_shapes[] = {{16384, 256}, {8192, 768}, {4096, 1024}, {4096, 4096}, {1024, 8192}};

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

static void add_argument(struct call *call, int role, const dnnl_memory_desc_t *desc) {
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

/* moved: tensors of x's size in the least traffic. */
static void report(const char *op, struct shape shape, const char *dtype, size_t x_size, int moved,
                   const struct call *call) {
    const size_t bytes = x_size * (size_t)moved;
    struct call copy = {.to = allocate(bytes / 2), .from = allocate(bytes / 2), .size = bytes / 2};
    const double us = least_us(call);
    const double limit_us = least_us(&copy);
    free_call(&copy);
    const dnnl_version_t *const version = dnnl_version();
    printf("{\"op\": \"%s\", \"provider\": \"onednn\", \"rows\": %ld, \"cols\": %ld, \"dtype\": \"%s\", \"us\": %.2f, "
           "\"limit_us\": %.2f, \"gb_s\": %.1f, \"version\": \"oneDNN %d.%d.%d\"}\n",
           op, shape.rows, shape.cols, dtype, us, limit_us, (double)bytes / us * 1e-3, version->major, version->minor,
           version->patch);
    fflush(stdout);
}

static void measure(struct shape shape, dnnl_data_type_t type, const char *dtype) {
    dnnl_memory_desc_t data, statistics, weights;
    const dnnl_dims_t data_dims = {shape.rows, shape.cols}, rows = {shape.rows}, cols = {shape.cols};
    check(dnnl_memory_desc_init_by_tag(&data, 2, data_dims, type, dnnl_ab), "data");
    check(dnnl_memory_desc_init_by_tag(&statistics, 1, rows, dnnl_f32, dnnl_a), "statistics");
    check(dnnl_memory_desc_init_by_tag(&weights, 1, cols, dnnl_f32, dnnl_a), "weights");

    const float eps = 1e-5f;
    const unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_layer_normalization_desc_t forward_op, backward_op;
    dnnl_primitive_desc_t forward_desc, backward_desc;
    struct call forward = {.primitive = NULL}, backward = {.primitive = NULL};
    check(dnnl_layer_normalization_forward_desc_init(&forward_op, dnnl_forward_training, &data, &statistics, eps, flags),
          "forward");
    check(dnnl_primitive_desc_create(&forward_desc, &forward_op, NULL, engine, NULL), "forward");
    check(dnnl_primitive_create(&forward.primitive, forward_desc), "forward");
    check(dnnl_layer_normalization_backward_desc_init(&backward_op, dnnl_backward, &data, &data, &statistics, eps, flags),
          "backward");
    check(dnnl_primitive_desc_create(&backward_desc, &backward_op, NULL, engine, forward_desc), "backward");
    check(dnnl_primitive_create(&backward.primitive, backward_desc), "backward");

    const size_t x_size = dnnl_memory_desc_get_size(&data);
    add_argument(&forward, DNNL_ARG_SRC, &data);
    add_argument(&forward, DNNL_ARG_DST, &data);
    add_argument(&forward, DNNL_ARG_MEAN, &statistics);
    add_argument(&forward, DNNL_ARG_VARIANCE, &statistics);
    add_argument(&forward, DNNL_ARG_SCALE, &weights);
    add_argument(&forward, DNNL_ARG_SHIFT, &weights);
    report("layer_norm", shape, dtype, x_size, 2, &forward);

    add_argument(&backward, DNNL_ARG_SRC, &data);
    add_argument(&backward, DNNL_ARG_DIFF_DST, &data);
    add_argument(&backward, DNNL_ARG_DIFF_SRC, &data);
    add_argument(&backward, DNNL_ARG_MEAN, &statistics);
    add_argument(&backward, DNNL_ARG_VARIANCE, &statistics);
    add_argument(&backward, DNNL_ARG_SCALE, &weights);
    add_argument(&backward, DNNL_ARG_SHIFT, &weights);
    add_argument(&backward, DNNL_ARG_DIFF_SCALE, &weights);
    add_argument(&backward, DNNL_ARG_DIFF_SHIFT, &weights);
    report("layer_norm_backward", shape, dtype, x_size, 3, &backward);

    free_call(&forward);
    free_call(&backward);
    check(dnnl_primitive_desc_destroy(forward_desc), "forward");
    check(dnnl_primitive_desc_destroy(backward_desc), "backward");
}

int main(int argc, char **argv) {
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "dnnl_engine_create");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "dnnl_stream_create");
    int next = 1;
    const int bf16 = next < argc && !strcmp(argv[next], "bf16");
    if (next < argc && (bf16 || !strcmp(argv[next], "f32")))
        next++;
    const dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
    const char *const dtype = bf16 ? "bf16" : "f32";
    if (next == argc)
        for (size_t i = 0; i < sizeof usual_shapes / sizeof *usual_shapes; i++)
            measure(usual_shapes[i], type, dtype);
    for (; next < argc; next++) {
        struct shape shape;
        int end = 0;
        if (sscanf(argv[next], "%ldx%ld%n", &shape.rows, &shape.cols, &end) != 2 || argv[next][end] || shape.rows < 1 ||
            shape.cols < 1) {
            fprintf(stderr, "'%s': expected ROWSxCOLS, both 1 or more\n", argv[next]);
            return 2;
        }
        measure(shape, type, dtype);
    }
    check(dnnl_stream_destroy(stream), "dnnl_stream_destroy");
    check(dnnl_engine_destroy(engine), "dnnl_engine_destroy");
    return 0;
}
