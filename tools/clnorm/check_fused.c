/* Cases of what is done in one pass with the norm. */
#include "check_case.h"

static const struct fused_case {
    char *operation;
    uint64_t rows, cols;
    long long group_size; /* 0: cols */
    enum pattern pattern;
    clnorm_dtype x, residual, later; /* later: of dresidual_out */
    bool row_scale, s_given;
    double dropout;
    char *activation, *gate, *config;
    char *quantize, *dtype;
    long long quantize_group;
    double quantize_scale;
    long long weight_rows, weight_repeat; /* 0: a weight of [cols] */
    char *rope;
    long long rope_dims, rope_heads;
    clnorm_dtype table; /* of rope_cos and rope_sin; 0: F32 */
    bool position;
} cases[] = {
    {.operation = "rms_norm", .rows = 9, .cols = 1000, .x = CLNORM_BF16, .residual = CLNORM_F32},
    {.operation = "layer_norm", .rows = 7, .cols = 129, .x = CLNORM_F32, .residual = CLNORM_BF16, .dropout = 0.1},
    {.operation = "rms_norm",
     .rows = 5,
     .cols = 4096,
     .x = CLNORM_BF16,
     .residual = CLNORM_BF16,
     .row_scale = true,
     .dropout = 0.5,
     .activation = "gelu",
     .gate = "silu"},
    {.operation = "layer_norm", .rows = 6, .cols = 63, .group_size = 21, .x = CLNORM_F16, .dropout = 0.3},
    {.operation = "layer_norm",
     .rows = 9,
     .cols = 512,
     .pattern = PATTERN_SPECIAL,
     .x = CLNORM_F32,
     .residual = CLNORM_F16,
     .activation = "silu"},
    {.operation = "rms_norm",
     .rows = 9,
     .cols = 512,
     .x = CLNORM_F32,
     .residual = CLNORM_F32,
     .dropout = 0.2,
     .activation = "gelu_tanh",
     .config = "keep=reread,lanes=64,segments=1,vec=4"},
    {.operation = "rms_norm", .rows = 3, .cols = 96, .x = CLNORM_F64, .residual = CLNORM_F64, .activation = "gelu"},
    {.operation = "rms_norm", .rows = 9, .cols = 1000, .x = CLNORM_BF16, .residual = CLNORM_F32, .quantize = "row"},
    {.operation = "layer_norm",
     .rows = 5,
     .cols = 300,
     .pattern = PATTERN_SPECIAL,
     .x = CLNORM_F32,
     .dropout = 0.2,
     .quantize = "group",
     .quantize_group = 64},
    {.operation = "rms_norm",
     .rows = 5,
     .cols = 1024,
     .x = CLNORM_BF16,
     .gate = "silu",
     .quantize = "group",
     .quantize_group = 128,
     .config = "keep=registers,lanes=64,segments=1,vec=8"},
    {.operation = "layer_norm",
     .rows = 7,
     .cols = 96,
     .group_size = 48,
     .x = CLNORM_F16,
     .quantize = "tensor",
     .quantize_scale = 0.0078,
     .dtype = "f8e5m2"},
    {.operation = "rms_norm", .rows = 96, .cols = 128, .x = CLNORM_BF16, .weight_rows = 8},
    {.operation = "layer_norm",
     .rows = 21,
     .cols = 129,
     .x = CLNORM_F32,
     .dropout = 0.1,
     .activation = "silu",
     .weight_rows = 3,
     .weight_repeat = 7},
    {.operation = "rms_norm",
     .rows = 6,
     .cols = 512,
     .x = CLNORM_F16,
     .quantize = "row",
     .config = "keep=reread,lanes=64,segments=1,vec=4",
     .weight_rows = 6},
    {.operation = "rms_norm",
     .rows = 9,
     .cols = 1024,
     .group_size = 128,
     .x = CLNORM_BF16,
     .rope = "neox",
     .position = true},
    {.operation = "rms_norm", .rows = 33, .cols = 80, .x = CLNORM_F16, .rope = "neox", .rope_heads = 8},
    {.operation = "layer_norm",
     .rows = 7,
     .cols = 288,
     .group_size = 96,
     .x = CLNORM_F32,
     .rope = "interleaved",
     .rope_dims = 32,
     .table = CLNORM_BF16,
     .position = true},
    {.operation = "rms_norm",
     .rows = 5,
     .cols = 512,
     .group_size = 256,
     .x = CLNORM_BF16,
     .residual = CLNORM_BF16,
     .rope = "neox",
     .config = "keep=reread,lanes=8,segments=1,vec=8"},
    {.operation = "rms_norm_backward",
     .rows = 9,
     .cols = 1024,
     .group_size = 128,
     .x = CLNORM_BF16,
     .rope = "neox",
     .position = true},
    {.operation = "layer_norm_backward",
     .rows = 21,
     .cols = 96,
     .group_size = 48,
     .x = CLNORM_F32,
     .rope = "interleaved",
     .rope_dims = 24,
     .rope_heads = 3},
    {.operation = "rms_norm_backward", .rows = 9, .cols = 1000, .x = CLNORM_BF16, .residual = CLNORM_F32},
    {.operation = "layer_norm_backward",
     .rows = 21,
     .cols = 512,
     .x = CLNORM_BF16,
     .residual = CLNORM_BF16,
     .later = CLNORM_F32,
     .row_scale = true,
     .dropout = 0.4,
     .activation = "gelu",
     .gate = "silu"},
    {.operation = "layer_norm_backward",
     .rows = 21,
     .cols = 129,
     .x = CLNORM_F32,
     .later = CLNORM_F32,
     .s_given = true,
     .dropout = 0.1,
     .activation = "silu"},
    {.operation = "rms_norm_backward",
     .rows = 5,
     .cols = 512,
     .x = CLNORM_F32,
     .residual = CLNORM_F16,
     .dropout = 0.2,
     .activation = "gelu_tanh",
     .config = "accumulator=registers,tile=128,lanes=16,segments=1,vec=4,reduce=tree"},
};
enum { CASES = sizeof cases / sizeof *cases };

int check_fused_count(void) {
    return CASES;
}

struct check_case check_fused_case(int i) {
    const struct fused_case *const row = &cases[i];
    const bool backward = row->operation[row->operation[0] == 'r' ? 8 : 10] == '_';
    struct check_case made = {.operation = row->operation,
                              .rows = row->rows,
                              .cols = row->cols,
                              .pattern = row->pattern,
                              .options = OPERATION_OPTIONS_INIT};
    check_case_add_input(&made, "x", row->x);
    check_case_add_input(&made, "weight", row->x);
    if (backward)
        check_case_add_input(&made, "dy", row->x);
    if (row->gate)
        check_case_add_input(&made, "z", row->x);
    if (row->residual)
        check_case_add_input(&made, "residual", row->residual);
    if (row->row_scale)
        check_case_add_input(&made, "row_scale", row->x);
    if (row->later)
        check_case_add_input(&made, "dresidual_out", row->later);
    const clnorm_dtype table = row->table ? row->table : CLNORM_F32;
    if (row->rope) {
        check_case_add_input(&made, "rope_cos", table);
        check_case_add_input(&made, "rope_sin", table);
    }
    if (row->position)
        check_case_add_input(&made, "position", CLNORM_F32);
    made.options.rope = row->rope;
    made.options.rope_dims = row->rope_dims;
    made.options.rope_heads = row->rope_heads;
    made.options.group_size = row->group_size;
    made.options.gate = row->gate;
    made.options.dropout = row->dropout;
    made.options.seed = "42";
    made.options.activation = row->activation;
    made.options.s_given = row->s_given;
    made.options.config = row->config;
    made.options.quantize = row->quantize;
    made.options.quantize_group = row->quantize_group;
    made.options.quantize_scale = row->quantize_scale;
    made.options.dtype = row->dtype;
    made.options.weight_rows = row->weight_rows;
    made.options.weight_repeat = row->weight_repeat;
    return made;
}
