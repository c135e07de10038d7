/* Cases of tensors whose rows have outer dimensions: parts of packed tensors, views, expanded inputs. All have 30 rows, in
 * the order of a [2, 5, 3]. */
#include "check_case.h"

static const struct outer_case {
    char *operation;
    uint64_t cols;
    clnorm_dtype dtype;
    char *outer;
    const char *inputs[5]; /* besides the first */
    char *config;
    enum pattern pattern;
} cases[] = {
    {.operation = "rms_norm",
     .cols = 64,
     .dtype = CLNORM_BF16,
     .outer = "x=10:576,3:64;y=10:576,3:64",
     .inputs = {"weight"}},
    {.operation = "layer_norm",
     .cols = 129,
     .dtype = CLNORM_F32,
     .outer = "x=2:1935,5:129,3:645;residual=2:0,15:129;y=2:4000,5:700,3:200;residual_out=30:131",
     .inputs = {"weight", "bias", "residual"}},
    {.operation = "layer_norm",
     .cols = 96,
     .dtype = CLNORM_F16,
     .outer = "x=30:0;y=2:1440,5:96,3:480",
     .inputs = {"weight"},
     .config = "keep=registers,lanes=32,segments=2"},
    {.operation = "rms_norm",
     .cols = 1000,
     .dtype = CLNORM_F32,
     .outer = "x=2:15000,5:1000,3:5000;y=10:9000,3:1000",
     .config = "keep=reread,lanes=64,segments=1,vec=4"},
    {.operation = "rms_norm", .cols = 37, .dtype = CLNORM_F64, .outer = "x=10:333,3:37", .pattern = PATTERN_SPECIAL},
    {.operation = "layer_norm_backward",
     .cols = 64,
     .dtype = CLNORM_F32,
     .outer = "x=10:576,3:64;dy=2:960,5:64,3:320;dx=10:576,3:64",
     .inputs = {"dy", "weight", "bias"}},
    {.operation = "rms_norm_backward",
     .cols = 1000,
     .dtype = CLNORM_BF16,
     .outer = "x=2:15000,5:1000,3:5000;dy=30:0;residual=2:0,15:1000;dx=2:30100,5:6000,3:2000;dresidual=10:9000,3:1000",
     .inputs = {"dy", "weight", "residual"}},
    {.operation = "rms_norm_backward",
     .cols = 512,
     .dtype = CLNORM_F32,
     .outer = "x=10:4608,3:512;dy=2:7680,5:512,3:2560;dx=2:7680,5:512,3:2560",
     .inputs = {"dy", "weight"},
     .config = "accumulator=registers,tile=128,lanes=16,segments=1,vec=4,reduce=tree"},
    {.operation = "layer_norm_backward",
     .cols = 129,
     .dtype = CLNORM_F16,
     .outer = "x=10:1161,3:129;dy=10:1161,3:129;dx=10:1161,3:129",
     .inputs = {"dy", "weight"},
     .config = "accumulator=columns"},
    {.operation = "l2_norm", .cols = 64, .dtype = CLNORM_BF16, .outer = "x=10:576,3:64;y=2:960,5:64,3:320"},
    {.operation = "l2_norm_backward",
     .cols = 129,
     .dtype = CLNORM_F32,
     .outer = "x=10:1161,3:129;dy=30:0;dx=2:1935,5:129,3:645",
     .inputs = {"dy", "weight"}},
    {.operation = "softmax", .cols = 1000, .dtype = CLNORM_F32, .outer = "x=10:9000,3:1000;y=2:15000,5:1000,3:5000"},
    {.operation = "softmax_backward",
     .cols = 129,
     .dtype = CLNORM_F32,
     .outer = "y=10:1161,3:129;dx=2:1935,5:129,3:645",
     .inputs = {"dy"}},
    {.operation = "gelu", .cols = 37, .dtype = CLNORM_BF16, .outer = "x=10:333,3:37;y=2:555,5:37,3:185"},
    {.operation = "gelu_backward",
     .cols = 129,
     .dtype = CLNORM_F16,
     .outer = "x=2:0,15:129;dx=10:1161,3:129",
     .inputs = {"dy"}},
};
enum { CASES = sizeof cases / sizeof *cases };

int check_outer_count(void) {
    return CASES;
}

struct check_case check_outer_case(int i) {
    const struct outer_case *const row = &cases[i];
    struct check_case made = {.operation = row->operation,
                              .rows = 30,
                              .cols = row->cols,
                              .pattern = row->pattern,
                              .options = OPERATION_OPTIONS_INIT};
    check_case_add_input(&made, row->outer[0] == 'y' ? "y" : "x", row->dtype);
    for (int k = 0; row->inputs[k]; k++)
        check_case_add_input(&made, row->inputs[k], row->dtype);
    made.options.outer = row->outer;
    made.options.config = row->config;
    return made;
}
