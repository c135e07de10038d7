/* Times oneDNN's layer norm on a CPU. Each measurement is a JSON line with the keys of `clnorm bench`.
 *
 *   cc -O2 tools/peers/onednn.c -o onednn -ldnnl && ./onednn [f32|bf16] [ROWSxCOLS …]
 *
 * For oneDNN 2 (Debian 12: libdnnl-dev). Forward writes mean and variance, as in training; backward writes dx, dscale and
 * dshift. Weights and statistics are f32. us is the least of many runs; limit_us is the least time of a memcpy on one
 * thread that reads and writes half of the least traffic each. */
#include "onednn_call.h"

struct shape {
    long rows, cols;
};

static const struct shape usual_shapes[] = {{16384, 256}, {8192, 768}, {4096, 1024}, {4096, 4096}, {1024, 8192}};

static void measure(struct shape shape, const char *dtype) {
    dnnl_memory_desc_t data, statistics, weights;
    const dnnl_dims_t data_dims = {shape.rows, shape.cols}, rows = {shape.rows}, cols = {shape.cols};
    check(dnnl_memory_desc_init_by_tag(&data, 2, data_dims, type_of(dtype), dnnl_ab), "data");
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
    report("layer_norm", shape.rows, shape.cols, dtype, x_size, 2, &forward, "");

    add_argument(&backward, DNNL_ARG_SRC, &data);
    add_argument(&backward, DNNL_ARG_DIFF_DST, &data);
    add_argument(&backward, DNNL_ARG_DIFF_SRC, &data);
    add_argument(&backward, DNNL_ARG_MEAN, &statistics);
    add_argument(&backward, DNNL_ARG_VARIANCE, &statistics);
    add_argument(&backward, DNNL_ARG_SCALE, &weights);
    add_argument(&backward, DNNL_ARG_SHIFT, &weights);
    add_argument(&backward, DNNL_ARG_DIFF_SCALE, &weights);
    add_argument(&backward, DNNL_ARG_DIFF_SHIFT, &weights);
    report("layer_norm_backward", shape.rows, shape.cols, dtype, x_size, 3, &backward, "");

    free_call(&forward);
    free_call(&backward);
    check(dnnl_primitive_desc_destroy(forward_desc), "forward");
    check(dnnl_primitive_desc_destroy(backward_desc), "backward");
}

int main(int argc, char **argv) {
    open_engine();
    int next = 1;
    const char *const dtype = dtype_argument(argc, argv, &next);
    if (next == argc)
        for (size_t i = 0; i < sizeof usual_shapes / sizeof *usual_shapes; i++)
            measure(usual_shapes[i], dtype);
    for (; next < argc; next++) {
        struct shape shape;
        int end = 0;
        if (sscanf(argv[next], "%ldx%ld%n", &shape.rows, &shape.cols, &end) != 2 || argv[next][end] || shape.rows < 1 ||
            shape.cols < 1) {
            fprintf(stderr, "'%s': expected ROWSxCOLS, both 1 or more\n", argv[next]);
            return 2;
        }
        measure(shape, dtype);
    }
    close_engine();
    return 0;
}
