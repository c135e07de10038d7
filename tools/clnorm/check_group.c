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

int check_group_count(void) {
    return CASES;
}

struct check_case check_group_case(int i) {
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
