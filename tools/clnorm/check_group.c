/* Cases of group and instance norm. */
#include <string.h>

#include "check_case.h"

static const struct group_case {
    char *operation;
    uint64_t rows, cols, spatial;
    long long groups; /* 0: instance norm */
    char *layout;
    clnorm_dtype x, output;
    bool affine, residual;
    enum pattern pattern;
    char *activation, *config;
} cases[] = {
    {"group_norm", 2, 64, 49, 8, "first", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, "silu", NULL},
    {"group_norm", 2, 64, 49, 8, "last", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, "silu", NULL},
    {"group_norm", 1, 1, 1, 1, "first", CLNORM_F16, CLNORM_F32, false, false, PATTERN_CENTRED, NULL, NULL},
    {"group_norm", 3, 3, 7, 1, "last", CLNORM_F16, CLNORM_F16, true, false, PATTERN_CENTRED, NULL, NULL},
    {"group_norm", 2, 320, 256, 32, "first", CLNORM_BF16, CLNORM_BF16, true, true, PATTERN_CENTRED, "silu", NULL},
    {"group_norm", 2, 320, 256, 32, "last", CLNORM_BF16, CLNORM_BF16, true, true, PATTERN_CENTRED, "gelu", NULL},
    {"group_norm", 1, 8, 40000, 2, "first", CLNORM_F32, CLNORM_BF16, true, false, PATTERN_FAR, NULL, NULL},
    {"group_norm", 1, 8, 40000, 2, "last", CLNORM_F32, CLNORM_F16, true, false, PATTERN_FAR, NULL, NULL},
    {"group_norm", 2, 32, 96, 4, "first", CLNORM_F64, CLNORM_F64, true, false, PATTERN_CENTRED, "gelu_tanh", NULL},
    {"group_norm", 0, 8, 4, 2, "first", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, NULL, NULL},
    {"group_norm", 3, 16, 64, 4, "first", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, NULL,
     "vec=4,lanes=16,segments=2"},
    {"group_norm", 3, 16, 64, 4, "first", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, NULL,
     "vec=4,lanes=8,segments=2,chunks=12"},
    {"group_norm", 3, 48, 100, 4, "last", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, NULL,
     "vec=4,lanes=8,segments=4,chunks=7"},
    {"group_norm", 3, 48, 100, 4, "last", CLNORM_BF16, CLNORM_BF16, true, false, PATTERN_CENTRED, NULL, "isa=portable"},
    {"instance_norm", 3, 17, 33, 0, "first", CLNORM_BF16, CLNORM_F32, true, false, PATTERN_CENTRED, NULL, NULL},
    {"instance_norm", 3, 17, 33, 0, "last", CLNORM_BF16, CLNORM_F32, true, false, PATTERN_CENTRED, NULL, NULL},
    {"group_norm_backward", 2, 64, 49, 8, "first", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, "silu", NULL},
    {"group_norm_backward", 2, 64, 49, 8, "last", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, "silu", NULL},
    {"group_norm_backward", 2, 320, 256, 32, "first", CLNORM_BF16, CLNORM_BF16, true, false, PATTERN_CENTRED, NULL, NULL},
    {"group_norm_backward", 2, 320, 256, 32, "last", CLNORM_BF16, CLNORM_BF16, true, false, PATTERN_CENTRED, "gelu", NULL},
    {"group_norm_backward", 1, 8, 40000, 2, "first", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, NULL, NULL},
    {"group_norm_backward", 2, 32, 96, 4, "first", CLNORM_F64, CLNORM_F64, true, false, PATTERN_CENTRED, "gelu_tanh", NULL},
    {"group_norm_backward", 3, 16, 64, 4, "first", CLNORM_F32, CLNORM_F32, false, false, PATTERN_CENTRED, NULL,
     "vec=4,lanes=16,segments=2"},
    {"group_norm_backward", 3, 16, 64, 4, "first", CLNORM_F16, CLNORM_F32, true, false, PATTERN_CENTRED, NULL,
     "vec=4,lanes=8,segments=2,chunks=12"},
    {"group_norm_backward", 3, 48, 100, 4, "last", CLNORM_F32, CLNORM_F32, true, false, PATTERN_CENTRED, NULL,
     "vec=4,lanes=8,segments=4,chunks=7"},
    {"instance_norm_backward", 3, 17, 33, 0, "first", CLNORM_BF16, CLNORM_F32, true, false, PATTERN_CENTRED, NULL, NULL},
};
enum { CASES = sizeof cases / sizeof *cases };

/* With 8-bit tensors or gradients of a residual: a row is a case, and what is not said is off. */
static const struct more_case {
    char *operation;
    uint64_t rows, cols, spatial;
    long long groups; /* 0: instance norm */
    char *layout, *dtype, *quantize, *activation, *config;
    double quantize_scale;
    clnorm_dtype x, x_scale, dy, weight, residual, dresidual_out;
    clnorm_scaling scaling; /* of x */
    enum pattern pattern;
} more[] = {
    {.operation = "group_norm",
     .rows = 2,
     .cols = 64,
     .spatial = 49,
     .groups = 8,
     .layout = "first",
     .x = CLNORM_F32,
     .weight = CLNORM_F32,
     .activation = "silu",
     .quantize = "tensor"},
    {.operation = "group_norm",
     .rows = 3,
     .cols = 320,
     .spatial = 256,
     .groups = 32,
     .layout = "last",
     .x = CLNORM_BF16,
     .weight = CLNORM_BF16,
     .residual = CLNORM_BF16,
     .quantize = "row",
     .dtype = "f8e5m2"},
    {.operation = "group_norm",
     .rows = 1,
     .cols = 8,
     .spatial = 40000,
     .groups = 2,
     .layout = "first",
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_F32,
     .scaling = CLNORM_SCALING_TENSOR,
     .weight = CLNORM_F32,
     .quantize = "tensor",
     .quantize_scale = 0.02},
    {.operation = "instance_norm",
     .rows = 3,
     .cols = 17,
     .spatial = 33,
     .layout = "last",
     .x = CLNORM_F8_E5M2,
     .x_scale = CLNORM_BF16,
     .scaling = CLNORM_SCALING_ROW,
     .weight = CLNORM_BF16,
     .dtype = "bf16"},
    {.operation = "group_norm",
     .rows = 4,
     .cols = 16,
     .spatial = 64,
     .groups = 4,
     .layout = "first",
     .x = CLNORM_F32,
     .quantize = "row",
     .pattern = PATTERN_SPECIAL,
     .config = "isa=portable"},
    {.operation = "group_norm_backward",
     .rows = 2,
     .cols = 64,
     .spatial = 49,
     .groups = 8,
     .layout = "first",
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_F32,
     .scaling = CLNORM_SCALING_ROW,
     .dy = CLNORM_F32,
     .weight = CLNORM_F32,
     .dresidual_out = CLNORM_BF16,
     .activation = "silu"},
    {.operation = "group_norm_backward",
     .rows = 3,
     .cols = 48,
     .spatial = 100,
     .groups = 4,
     .layout = "last",
     .x = CLNORM_BF16,
     .dy = CLNORM_BF16,
     .weight = CLNORM_BF16,
     .dresidual_out = CLNORM_F32},
};
enum { MORE = sizeof more / sizeof *more };

int check_group_count(void) {
    return CASES + MORE;
}

static void add_input(struct check_case *check_case, const char *role, clnorm_dtype dtype) {
    if (dtype)
        check_case_add_input(check_case, role, dtype);
}

static struct check_case more_case_of(const struct more_case *from) {
    struct check_case made = {.operation = from->operation,
                              .rows = from->rows,
                              .cols = from->cols,
                              .spatial = from->spatial,
                              .pattern = from->pattern,
                              .x = {.dtype = from->x, .scaling = from->scaling},
                              .options = OPERATION_OPTIONS_INIT};
    add_input(&made, "x", from->x);
    add_input(&made, "x_scale", from->x_scale);
    add_input(&made, "dy", from->dy);
    add_input(&made, "weight", from->weight);
    add_input(&made, "bias", from->weight);
    add_input(&made, "residual", from->residual);
    add_input(&made, "dresidual_out", from->dresidual_out);
    made.options.groups = from->groups;
    made.options.layout = from->layout;
    made.options.dtype = from->dtype;
    made.options.quantize = from->quantize;
    made.options.quantize_scale = from->quantize_scale;
    made.options.activation = from->activation;
    made.options.config = from->config;
    return made;
}

struct check_case check_group_case(int i) {
    if (i >= CASES)
        return more_case_of(&more[i - CASES]);
    const struct group_case *const row = &cases[i];
    struct check_case made = {.operation = row->operation,
                              .rows = row->rows,
                              .cols = row->cols,
                              .spatial = row->spatial,
                              .pattern = row->pattern,
                              .options = OPERATION_OPTIONS_INIT};
    check_case_add_input(&made, "x", row->x);
    if (strstr(row->operation, "backward"))
        check_case_add_input(&made, "dy", row->x);
    if (row->affine) {
        check_case_add_input(&made, "weight", row->x);
        check_case_add_input(&made, "bias", row->x);
    }
    if (row->residual)
        check_case_add_input(&made, "residual", row->x);
    made.options.groups = row->groups;
    made.options.layout = row->layout;
    made.options.dtype = (char *)clnorm_dtype_name(row->output);
    made.options.activation = row->activation;
    made.options.config = row->config;
    return made;
}
