#include "check_cases.h"

/* Every operation meets every shape, with an element type for its input and one for its output. */
static const char *const names[] = {"softmax", "softmax_backward", "gelu", "gelu_backward"};

static const struct row_shape {
    uint64_t rows, cols;
    enum pattern pattern;
    clnorm_dtype input, output;
    char *approximate; /* of gelu */
    char *config;
} shapes[] = {
    {5, 64, PATTERN_CENTRED, CLNORM_F32, CLNORM_F32, NULL, NULL},
    {0, 64, PATTERN_CENTRED, CLNORM_F32, CLNORM_F32, "tanh", NULL},
    {3, 1, PATTERN_CENTRED, CLNORM_F16, CLNORM_F32, "tanh", NULL},
    {9, 1000, PATTERN_SPECIAL, CLNORM_BF16, CLNORM_BF16, "none", NULL},
    {7, 4099, PATTERN_SPECIAL, CLNORM_F32, CLNORM_F16, "tanh", NULL},
    {2, 65537, PATTERN_FAR, CLNORM_F32, CLNORM_BF16, NULL, NULL},
    {3, 129, PATTERN_CENTRED, CLNORM_F64, CLNORM_F64, "none", NULL},
    {5, 512, PATTERN_CENTRED, CLNORM_BF16, CLNORM_F32, "tanh", "lanes=64,vec=4"},
    {3, 1000, PATTERN_CENTRED, CLNORM_F32, CLNORM_BF16, "tanh", "chunks=24"},
    {5, 64, PATTERN_CENTRED, CLNORM_F32, CLNORM_F32, NULL, "isa=portable"}, /* where it is usual, as the first */
    {5, 512, PATTERN_CENTRED, CLNORM_BF16, CLNORM_BF16, "tanh", "isa=ptx"},
};
enum { NAMES = sizeof names / sizeof *names, SHAPES = sizeof shapes / sizeof *shapes };

int check_rows_count(void) {
    return NAMES * SHAPES;
}

struct check_case check_rows_case(int i) {
    const struct row_shape *const shape = &shapes[i / NAMES];
    const int name = i % NAMES;
    struct check_case made = {.operation = names[name],
                              .rows = shape->rows,
                              .cols = shape->cols,
                              .pattern = shape->pattern,
                              .options = OPERATION_OPTIONS_INIT};
    check_case_add_input(&made, name == 1 ? "y" : "x", shape->input);
    if (name % 2)
        check_case_add_input(&made, "dy", shape->input);
    made.options.dtype = (char *)clnorm_dtype_name(shape->output);
    made.options.approximate = name >= 2 ? shape->approximate : NULL;
    made.options.config = shape->config;
    return made;
}
