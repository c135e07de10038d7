#include "check_case.h"

/* A row is a case, and what is not said is off. */
static const struct fp8_case {
    const char *operation;
    char *mode, *dtype, *scale_dtype, *accuracy, *config, *reduction, *gate, *quantize, *outputs;
    long long group_size;
    uint64_t rows, cols;
    clnorm_dtype x, x_scale, weight, dy; /* x: of dequantize its q */
    enum pattern pattern;
    bool transpose, stochastic, rstd;
    /* Of layer_norm, rms_norm and their backward: */
    clnorm_scaling scaling; /* of x */
    uint32_t scale_group;
    long long quantize_group;
    clnorm_dtype z, residual;
} cases[] = {
    {.operation = "quantize", .rows = 70, .cols = 144, .x = CLNORM_F32, .transpose = true},
    {.operation = "quantize", .rows = 5, .cols = 33, .x = CLNORM_BF16, .dtype = "f8e5m2", .pattern = PATTERN_SPECIAL},
    {.operation = "quantize", .rows = 9, .cols = 96, .x = CLNORM_F16, .mode = "row", .scale_dtype = "bf16"},
    {.operation = "quantize",
     .rows = 6,
     .cols = 100,
     .x = CLNORM_BF16,
     .mode = "group",
     .group_size = 32,
     .transpose = true,
     .pattern = PATTERN_SPECIAL},
    {.operation = "quantize", .rows = 6, .cols = 64, .x = CLNORM_F32, .stochastic = true, .config = "isa=portable"},
    {.operation = "quantize", .rows = 6, .cols = 64, .x = CLNORM_F32, .config = "isa=ptx"},
    {.operation = "dequantize", .rows = 6, .cols = 200, .x = CLNORM_F8_E4M3, .x_scale = CLNORM_F32},
    {.operation = "dequantize", .rows = 3, .cols = 31, .x = CLNORM_F8_E5M2, .x_scale = CLNORM_BF16, .dtype = "bf16"},
    {.operation = "fp8_rms_norm",
     .rows = 70,
     .cols = 1024,
     .group_size = 16,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_BF16,
     .weight = CLNORM_BF16},
    {.operation = "fp8_rms_norm",
     .rows = 5,
     .cols = 384,
     .group_size = 128,
     .x = CLNORM_F8_E5M2,
     .x_scale = CLNORM_F32,
     .weight = CLNORM_F32,
     .accuracy = "compatible"},
    {.operation = "fp8_rms_norm",
     .rows = 9,
     .cols = 160,
     .group_size = 32,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_F32,
     .weight = CLNORM_F32,
     .pattern = PATTERN_SPECIAL,
     .config = "isa=portable"},
    {.operation = "fp8_rms_norm_backward",
     .rows = 20,
     .cols = 1024,
     .group_size = 16,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_BF16,
     .weight = CLNORM_BF16,
     .dy = CLNORM_BF16,
     .rstd = true},
    {.operation = "fp8_rms_norm_backward",
     .rows = 40,
     .cols = 192,
     .group_size = 64,
     .x = CLNORM_F8_E5M2,
     .x_scale = CLNORM_F32,
     .weight = CLNORM_F32,
     .dy = CLNORM_F32,
     .rstd = true,
     .reduction = "locked"},
    {.operation = "layer_norm",
     .rows = 70,
     .cols = 384,
     .x = CLNORM_BF16,
     .weight = CLNORM_BF16,
     .quantize = "tensor",
     .outputs = "y_t,mean,rstd"},
    {.operation = "layer_norm",
     .rows = 5,
     .cols = 200,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_F32,
     .scaling = CLNORM_SCALING_TENSOR,
     .weight = CLNORM_F32,
     .quantize = "row"},
    {.operation = "rms_norm",
     .rows = 9,
     .cols = 256,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_BF16,
     .scaling = CLNORM_SCALING_GROUP,
     .scale_group = 32,
     .weight = CLNORM_BF16,
     .z = CLNORM_BF16,
     .gate = "silu",
     .residual = CLNORM_F32},
    {.operation = "rms_norm",
     .rows = 6,
     .cols = 130,
     .x = CLNORM_F8_E5M2,
     .x_scale = CLNORM_F32,
     .scaling = CLNORM_SCALING_ROW,
     .z = CLNORM_F16,
     .gate = "sigmoid",
     .quantize = "group",
     .quantize_group = 16,
     .outputs = "y_t",
     .config = "isa=portable"},
    {.operation = "layer_norm_backward",
     .rows = 40,
     .cols = 200,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_F32,
     .scaling = CLNORM_SCALING_TENSOR,
     .weight = CLNORM_F32,
     .dy = CLNORM_F32},
    {.operation = "layer_norm_backward",
     .rows = 9,
     .cols = 130,
     .x = CLNORM_F8_E5M2,
     .x_scale = CLNORM_F32,
     .scaling = CLNORM_SCALING_ROW,
     .weight = CLNORM_F16,
     .dy = CLNORM_F16,
     .residual = CLNORM_F32,
     .config = "isa=portable"},
    {.operation = "rms_norm_backward",
     .rows = 20,
     .cols = 384,
     .x = CLNORM_F8_E4M3,
     .x_scale = CLNORM_BF16,
     .scaling = CLNORM_SCALING_GROUP,
     .scale_group = 32,
     .weight = CLNORM_BF16,
     .dy = CLNORM_BF16,
     .z = CLNORM_BF16,
     .gate = "silu",
     .rstd = true},
};
enum { CASES = sizeof cases / sizeof *cases };

int check_fp8_count(void) {
    return CASES;
}

struct check_case check_fp8_case(int i) {
    const struct fp8_case *const from = &cases[i];
    struct check_case check_case = {.operation = from->operation,
                                    .rows = from->rows,
                                    .cols = from->cols,
                                    .pattern = from->pattern,
                                    .options = OPERATION_OPTIONS_INIT};
    const bool has_codes = from->x_scale && !from->group_size && !from->scaling;
    check_case_add_input(&check_case, has_codes ? "q" : "x", from->x);
    if (from->x_scale)
        check_case_add_input(&check_case, has_codes ? "scale" : "x_scale", from->x_scale);
    if (from->weight)
        check_case_add_input(&check_case, "weight", from->weight);
    if (from->rstd)
        check_case_add_input(&check_case, "rstd", CLNORM_F32);
    if (from->dy)
        check_case_add_input(&check_case, "dy", from->dy);
    if (from->z)
        check_case_add_input(&check_case, "z", from->z);
    if (from->residual)
        check_case_add_input(&check_case, "residual", from->residual);
    check_case.x = (clnorm_tensor){.dtype = from->x, .scaling = from->scaling, .scale_group = from->scale_group};
    check_case.options.gate = from->gate;
    check_case.options.quantize = from->quantize;
    check_case.options.quantize_group = from->quantize_group;
    check_case.options.outputs = from->outputs;
    check_case.options.group_size = from->group_size;
    check_case.options.mode = from->mode;
    check_case.options.dtype = from->dtype;
    check_case.options.scale_dtype = from->scale_dtype;
    check_case.options.accuracy = from->accuracy;
    check_case.options.config = from->config;
    check_case.options.reduction = from->reduction;
    check_case.options.transpose = from->transpose;
    check_case.options.stochastic = from->stochastic ? "7" : NULL;
    return check_case;
}
