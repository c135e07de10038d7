/* Cases of the forward norms. */
#include "check_case.h"

/* --------------------------------------------------------------------------------------- shapes, each with two dtypes */

static const struct {
    uint64_t rows, cols;
    long long group_size;
} shapes[] = {
    {1, 1, 0},    {5, 1, 0},    {3, 3, 0},     {7, 15, 0}, {9, 64, 0},    {4, 129, 0}, {2, 1000, 0}, {3, 1024, 0},
    {2, 4099, 0}, {2, 8192, 0}, {1, 65537, 0}, {6, 96, 8}, {5, 384, 128}, {3, 30, 5},  {0, 64, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, DTYPES_OF_SHAPE = 2 };

/* Options that the cases take in turn, so that each meets several shapes and dtypes. */
static const struct turn {
    char *gate;
    double weight_offset;
    enum pattern pattern;
    bool gate_first, weight, bias;
} turns[] = {
    {NULL, 0, PATTERN_CENTRED, false, true, true},      {"silu", 0, PATTERN_CENTRED, false, true, false},
    {NULL, 0, PATTERN_FAR, false, false, false},        {"sigmoid", 1, PATTERN_CENTRED, true, true, true},
    {NULL, 1, PATTERN_SPECIAL, false, true, false},     {"silu", 0, PATTERN_CENTRED, true, false, true},
    {"sigmoid", 0, PATTERN_SPECIAL, false, true, true},
};
enum { TURNS = sizeof turns / sizeof *turns };

/* --------------------------------------------------------------------------------- a dtype of its own for each tensor */

static const struct mix {
    clnorm_dtype x, y, weight, bias, z;
} mixes[] = {
    {CLNORM_BF16, CLNORM_BF16, CLNORM_F32, CLNORM_F16, CLNORM_F32},
    {CLNORM_F16, CLNORM_F32, CLNORM_BF16, CLNORM_F32, CLNORM_BF16},
    {CLNORM_F32, CLNORM_BF16, CLNORM_F16, CLNORM_BF16, CLNORM_F16},
    {CLNORM_F32, CLNORM_F16, CLNORM_F32, CLNORM_F32, CLNORM_F32},
    {CLNORM_F32, CLNORM_BF16, CLNORM_F64, CLNORM_F64, CLNORM_F32},
    {CLNORM_F64, CLNORM_F64, CLNORM_F32, CLNORM_F32, CLNORM_F64},
};
enum { MIXES = sizeof mixes / sizeof *mixes };

/* ----------------------------------------------------------------------------------------------------- forced configs */

/* A device may lack some of them. */
static char *const configs[] = {
    "keep=reread,lanes=1,vec=1,unroll=1",
    "keep=reread,lanes=1,vec=16,unroll=4",
    "keep=registers,lanes=4,vec=4,segments=16",
    "keep=registers,lanes=8,segments=4,vec=4,reduce=tree",
    "keep=registers,lanes=64,segments=1,vec=8,reduce=tree",
    "keep=reread,lanes=64,segments=1,vec=2,unroll=2,reduce=tree,iterations=2",
    "keep=registers,lanes=32,segments=2,reduce=shuffle",
    "keep=registers,lanes=128,segments=1,reduce=shuffle",
    "keep=reread,lanes=256,segments=1,vec=4,reduce=shuffle,stores=streaming",
    "keep=registers,lanes=128,segments=1,reduce=subgroup",
    "keep=reread,lanes=64,segments=1,reduce=subgroup",
    "keep=reread,lanes=64,segments=1,weights=kept",
    "keep=reread,lanes=128,segments=1,isa=ptx,weights=kept",
    "keep=registers,weights=late",
    "keep=registers,weights=early",
    "isa=portable",
    "isa=ptx",
};
enum { CONFIGS = sizeof configs / sizeof *configs };

static void apply(struct check_case *check_case, const struct turn *turn, const struct mix *mix) {
    check_case_add_input(check_case, "x", mix->x);
    if (turn->weight)
        check_case_add_input(check_case, "weight", mix->weight);
    if (turn->bias)
        check_case_add_input(check_case, "bias", mix->bias);
    if (turn->gate)
        check_case_add_input(check_case, "z", mix->z);
    check_case->pattern = turn->pattern;
    check_case->options.gate = turn->gate;
    check_case->options.gate_first = turn->gate_first;
    check_case->options.weight_offset = turn->weight ? turn->weight_offset : 0;
    check_case->options.dtype = (char *)clnorm_dtype_name(mix->y);
}

static struct check_case case_of_shape(int i) {
    const int shape = i / DTYPES_OF_SHAPE;
    const clnorm_dtype dtype = dtypes[(shape + i % DTYPES_OF_SHAPE) % DTYPES];
    struct check_case check_case = {.operation = i % 2 ? "rms_norm" : "layer_norm",
                                    .rows = shapes[shape].rows,
                                    .cols = shapes[shape].cols,
                                    .options = OPERATION_OPTIONS_INIT};
    check_case.options.group_size = shapes[shape].group_size;
    apply(&check_case, &turns[i % TURNS], &(struct mix){dtype, dtype, dtype, dtype, dtype});
    return check_case;
}

static struct check_case case_of_mix(int i) {
    struct check_case check_case = {
        .operation = i % 2 ? "rms_norm" : "layer_norm", .rows = 5, .cols = 320, .options = OPERATION_OPTIONS_INIT};
    apply(&check_case, &turns[i % 2 ? 1 : 3], &mixes[i / 2]);
    return check_case;
}

static struct check_case case_of_config(int i) {
    struct check_case check_case = {
        .operation = i % 2 ? "rms_norm" : "layer_norm", .rows = 5, .cols = 512, .options = OPERATION_OPTIONS_INIT};
    apply(&check_case, &turns[0], &mixes[0]);
    check_case.options.config = configs[i / 2];
    return check_case;
}

int check_norm_count(void) {
    return SHAPES * DTYPES_OF_SHAPE + 2 * MIXES + 2 * CONFIGS;
}

struct check_case check_norm_case(int i) {
    if (i < SHAPES * DTYPES_OF_SHAPE)
        return case_of_shape(i);
    i -= SHAPES * DTYPES_OF_SHAPE;
    return i < 2 * MIXES ? case_of_mix(i) : case_of_config(i - 2 * MIXES);
}
