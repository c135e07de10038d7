/* Times oneDNN's group norm on a CPU. Each measurement is a JSON line with the keys of tools/peers/group_norm.py.
 *
 *   cc -O2 tools/peers/onednn_group_norm.c -o onednn_group_norm -ldnnl
 *   ./onednn_group_norm [f32|bf16] [NxCxHxW/GROUPS …]
 *
 * For oneDNN 3 (Debian 13: libdnnl-dev). Each shape is measured in both layouts. Forward writes mean and variance, as in
 * training; backward writes dx, dscale and dshift. Weights and statistics are f32. us is the least of many runs; limit_us
 * is the least time of a memcpy on one thread that reads and writes half of the least traffic each. */
#include "onednn_call.h"

struct shape {
    long dims[4]; /* N, C, H, W */
    long groups;
};

static const struct shape usual_shapes[] = {{{8, 320, 32, 32}, 32},
                                            {{2, 64, 128, 128}, 32},
                                            {{2, 320, 64, 64}, 32},
                                            {{8, 640, 16, 16}, 32},
                                            {{16, 256, 56, 56}, 32}};

static dnnl_memory_desc_t described(int rank, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t format) {
    dnnl_memory_desc_t desc;
    check(dnnl_memory_desc_create_with_tag(&desc, rank, dims, type, format), "dnnl_memory_desc_create_with_tag");
    return desc;
}

static void measure(const struct shape *shape, const char *dtype, int last) {
    const long *const d = shape->dims;
    const dnnl_dims_t dims = {d[0], d[1], d[2], d[3]}, segments = {d[0], shape->groups}, channels = {d[1]};
    const dnnl_memory_desc_t data = described(4, dims, type_of(dtype), last ? dnnl_nhwc : dnnl_nchw);
    const dnnl_memory_desc_t statistics = described(2, segments, dnnl_f32, dnnl_ab);
    const dnnl_memory_desc_t weights = described(1, channels, dnnl_f32, dnnl_a);
    const long rows = d[0] * shape->groups, cols = d[1] / shape->groups * d[2] * d[3];
    char more[160];
    snprintf(more, sizeof more, ", \"shape\": [%ld, %ld, %ld, %ld], \"groups\": %ld, \"layout\": \"%s\"", d[0], d[1], d[2],
             d[3], shape->groups, last ? "last" : "first");
    const float eps = 1e-5f;
    const unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_primitive_desc_t forward_desc, backward_desc;
    struct call forward = {.primitive = NULL}, backward = {.primitive = NULL};
    check(dnnl_group_normalization_forward_primitive_desc_create(&forward_desc, engine, dnnl_forward_training, data, data,
                                                                 shape->groups, eps, flags, NULL),
          "forward");
    check(dnnl_primitive_create(&forward.primitive, forward_desc), "forward");
    check(dnnl_group_normalization_backward_primitive_desc_create(&backward_desc, engine, dnnl_backward, data, data, data,
                                                                  shape->groups, eps, flags, forward_desc, NULL),
          "backward");
    check(dnnl_primitive_create(&backward.primitive, backward_desc), "backward");

    const size_t x_size = dnnl_memory_desc_get_size(data);
    add_argument(&forward, DNNL_ARG_SRC, data);
    add_argument(&forward, DNNL_ARG_DST, data);
    add_argument(&forward, DNNL_ARG_MEAN, statistics);
    add_argument(&forward, DNNL_ARG_VARIANCE, statistics);
    add_argument(&forward, DNNL_ARG_SCALE, weights);
    add_argument(&forward, DNNL_ARG_SHIFT, weights);
    report("group_norm", rows, cols, dtype, x_size, 2, &forward, more);

    add_argument(&backward, DNNL_ARG_SRC, data);
    add_argument(&backward, DNNL_ARG_DIFF_DST, data);
    add_argument(&backward, DNNL_ARG_DIFF_SRC, data);
    add_argument(&backward, DNNL_ARG_MEAN, statistics);
    add_argument(&backward, DNNL_ARG_VARIANCE, statistics);
    add_argument(&backward, DNNL_ARG_SCALE, weights);
    add_argument(&backward, DNNL_ARG_DIFF_SCALE, weights);
    add_argument(&backward, DNNL_ARG_DIFF_SHIFT, weights);
    report("group_norm_backward", rows, cols, dtype, x_size, 3, &backward, more);

    free_call(&forward);
    free_call(&backward);
    check(dnnl_primitive_desc_destroy(forward_desc), "forward");
    check(dnnl_primitive_desc_destroy(backward_desc), "backward");
    check(dnnl_memory_desc_destroy(data), "data");
    check(dnnl_memory_desc_destroy(statistics), "statistics");
    check(dnnl_memory_desc_destroy(weights), "weights");
}

int main(int argc, char **argv) {
    open_engine();
    int next = 1;
    const char *const dtype = dtype_argument(argc, argv, &next);
    if (next == argc)
        for (size_t i = 0; i < 2 * sizeof usual_shapes / sizeof *usual_shapes; i++)
            measure(&usual_shapes[i / 2], dtype, i % 2);
    for (; next < argc; next++) {
        struct shape shape;
        long *const d = shape.dims;
        int end = 0;
        if (sscanf(argv[next], "%ldx%ldx%ldx%ld/%ld%n", d, d + 1, d + 2, d + 3, &shape.groups, &end) != 5 ||
            argv[next][end] || d[0] < 1 || d[1] < 1 || d[2] < 1 || d[3] < 1 || shape.groups < 1 || d[1] % shape.groups) {
            fprintf(stderr, "'%s': expected NxCxHxW/GROUPS, all 1 or more, GROUPS a divisor of C\n", argv[next]);
            return 2;
        }
        for (int last = 0; last < 2; last++)
            measure(&shape, dtype, last);
    }
    close_engine();
    return 0;
}
