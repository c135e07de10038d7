#include "check_case.h"

/* A row is a case, and what is not said is off. */
static const struct backward_case {
    char *outputs; /* NULL: what comes with the inputs */
    char *gate, *reduction, *config;
    long long group_size, slots, weight_rows, weight_repeat;
    double weight_offset;
    uint64_t rows, cols;
    enum pattern pattern;
    clnorm_dtype x;
    clnorm_dtype dy, z; /* CLNORM_DTYPE_NONE: as x */
    clnorm_dtype weight, bias;
    bool rms, gate_first, statistics, recompute, from_y;
} cases[] = {
    {.rows = 5, .cols = 64, .x = CLNORM_F32, .weight = CLNORM_F32, .bias = CLNORM_F32, .statistics = true},
    {.rows = 0, .cols = 64, .x = CLNORM_F32, .weight = CLNORM_F32, .bias = CLNORM_F32, .statistics = true},
    {.rows = 3, .cols = 1, .x = CLNORM_F32, .weight = CLNORM_F32, .bias = CLNORM_F32},
    {.rms = true, .rows = 9, .cols = 1000, .x = CLNORM_BF16, .weight = CLNORM_BF16},
    {.rows = 2, .cols = 65537, .x = CLNORM_BF16, .weight = CLNORM_F32, .bias = CLNORM_F32, .statistics = true},
    {.rows = 300, .cols = 33, .pattern = PATTERN_FAR, .x = CLNORM_F16, .weight = CLNORM_F16, .bias = CLNORM_F16},
    {.rms = true, .rows = 5, .cols = 320, .pattern = PATTERN_SPECIAL, .x = CLNORM_F32, .weight = CLNORM_F32},
    {.rms = true, .rows = 4, .cols = 96, .group_size = 8, .x = CLNORM_F64, .weight = CLNORM_F64, .gate = "silu"},
    {.rows = 7,
     .cols = 30,
     .group_size = 5,
     .x = CLNORM_BF16,
     .dy = CLNORM_F32,
     .z = CLNORM_F16,
     .weight = CLNORM_F16,
     .bias = CLNORM_BF16,
     .weight_offset = 1,
     .gate = "sigmoid",
     .recompute = true},
    {.rows = 7, .cols = 129, .x = CLNORM_F32, .z = CLNORM_BF16, .weight = CLNORM_F32, .gate = "silu", .gate_first = true},
    {.rms = true, .rows = 5, .cols = 256, .x = CLNORM_BF16, .weight = CLNORM_F32, .outputs = "dx", .statistics = true},
    {.rows = 33, .cols = 64, .x = CLNORM_F32, .statistics = true, .outputs = "dbias,y"},
    {.rows = 40, .cols = 129, .x = CLNORM_BF16, .outputs = "dweight", .reduction = "locked"},
    {.rms = true, .rows = 70, .cols = 33, .x = CLNORM_BF16, .weight = CLNORM_F32, .reduction = "locked", .slots = 1},
    {.rms = true,
     .rows = 64,
     .cols = 96,
     .group_size = 8,
     .x = CLNORM_F16,
     .weight = CLNORM_F32,
     .bias = CLNORM_F32,
     .gate = "silu",
     .reduction = "locked",
     .slots = 2},
    {.rms = true, .rows = 600, .cols = 128, .x = CLNORM_BF16, .weight = CLNORM_BF16, .weight_rows = 8},
    {.rows = 60,
     .cols = 129,
     .x = CLNORM_F32,
     .weight = CLNORM_F32,
     .bias = CLNORM_BF16,
     .weight_rows = 3,
     .weight_repeat = 20},
    {.rows = 36,
     .cols = 96,
     .group_size = 8,
     .x = CLNORM_F16,
     .weight = CLNORM_F32,
     .bias = CLNORM_F32,
     .weight_offset = 1,
     .reduction = "locked",
     .weight_rows = 4,
     .weight_repeat = 3},
    {.rms = true,
     .rows = 12,
     .cols = 512,
     .x = CLNORM_BF16,
     .weight = CLNORM_F32,
     .config = "accumulator=registers,keep=registers,lanes=16,segments=2,vec=4,reduce=tree",
     .weight_rows = 12},
    {.from_y = true, .rows = 5, .cols = 1000, .x = CLNORM_BF16, .weight = CLNORM_BF16, .bias = CLNORM_F32},
    {.from_y = true,
     .rms = true,
     .rows = 40,
     .cols = 96,
     .group_size = 8,
     .x = CLNORM_F16,
     .weight = CLNORM_F32,
     .reduction = "locked"},
    {.from_y = true, .rows = 2, .cols = 65537, .x = CLNORM_F32, .weight = CLNORM_F32, .bias = CLNORM_F32},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Ways to hold a row and to add up; a device does not have all of them. */
static const struct {
    char *config, *reduction;
} configs[] = {
    {"accumulator=memory,lanes=1,vec=1", "partial"},
    {"accumulator=memory,lanes=64,vec=4,reduce=tree", "partial"},
    {"accumulator=local,lanes=1,vec=16", "locked"},
    {"accumulator=local,lanes=64,vec=4,reduce=tree", "partial"},
    {"accumulator=registers,keep=registers,lanes=8,segments=4,vec=4,reduce=tree", "locked"},
    {"accumulator=registers,keep=registers,lanes=64,segments=1,vec=8,reduce=tree,run_length=2", "partial"},
    {"accumulator=registers,keep=reread,lanes=64,segments=2,vec=4,reduce=tree", "partial"},
    {"accumulator=registers,keep=registers,lanes=32,segments=2,reduce=shuffle", "locked"},
    {"accumulator=registers,keep=registers,lanes=128,segments=1,reduce=subgroup", "partial"},
    {"accumulator=registers,tile=128,lanes=16,segments=1,vec=4,reduce=tree", "locked"},
    {"accumulator=registers,tile=128,lanes=32,segments=1,vec=4,reduce=shuffle,stores=streaming", "partial"},
    {"isa=portable", "partial"},
    {"isa=ptx", "partial"},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

int check_backward_count(void) {
    return CASES + CONFIGS;
}

static struct check_case make(const struct backward_case *row) {
    static const char *const names[2][2] = {{"layer_norm_backward", "layer_norm_backward_from_y"},
                                            {"rms_norm_backward", "rms_norm_backward_from_y"}};
    struct check_case made = {.operation = names[row->rms][row->from_y],
                              .rows = row->rows,
                              .cols = row->cols,
                              .pattern = row->from_y ? PATTERN_APART : row->pattern,
                              .options = OPERATION_OPTIONS_INIT};
    check_case_add_input(&made, row->from_y ? "y" : "x", row->x);
    check_case_add_input(&made, "dy", row->dy ? row->dy : row->x);
    if (row->weight)
        check_case_add_input(&made, "weight", row->weight);
    if (row->bias)
        check_case_add_input(&made, "bias", row->bias);
    if (row->gate)
        check_case_add_input(&made, "z", row->z ? row->z : row->x);
    if (row->statistics && !row->rms)
        check_case_add_input(&made, "mean", statistics_dtype(row->x));
    if (row->statistics || row->from_y)
        check_case_add_input(&made, "rstd", statistics_dtype(row->x));
    made.options.group_size = row->group_size;
    made.options.gate = row->gate;
    made.options.gate_first = row->gate_first;
    made.options.weight_offset = row->weight_offset;
    made.options.config = row->config;
    made.options.outputs = row->outputs;
    made.options.recompute_output = row->recompute;
    made.options.reduction = row->reduction;
    made.options.weight_rows = row->weight_rows;
    made.options.weight_repeat = row->weight_repeat;
    if (row->slots)
        made.options.slots = row->slots;
    return made;
}

struct check_case check_backward_case(int i) {
    if (i < CASES)
        return make(&cases[i]);
    i -= CASES;
    const struct backward_case row = {.rms = i % 2,
                                      .rows = 300, /* more than a large GPU has work-groups: they go on */
                                      .cols = 512,
                                      .x = CLNORM_BF16,
                                      .weight = CLNORM_F32,
                                      .bias = CLNORM_F32,
                                      .statistics = true,
                                      .reduction = configs[i].reduction,
                                      .slots = 2,
                                      .config = configs[i].config};
    return make(&row);
}
