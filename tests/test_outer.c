/* Tensors with outer dimensions: parts of packed tensors, transposed views and expanded inputs, in every operation that
 * takes them, on every kind of kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "knob.h"
#include "outer_case.h"

/* B · S · H = 30 rows. */
enum { B = 2, S = 5, H = 3, BS = B * S, SH = S * H, ROWS = B * S * H };

/* How a tensor's rows lie, in the order [B, S, H]. d: columns. */
static struct outer_layout packed(const char *name, uint64_t d, uint64_t shift) { /* a third of [B, S, 3, H, D] */
    return (struct outer_layout){name, {{BS, d * 3 * H}, {H, d}}, shift};
}

static struct outer_layout wide(const char *name, uint64_t d, uint64_t shift) { /* gaps everywhere */
    return (struct outer_layout){name, {{B, (d * 2 * H + 5) * S + 7}, {S, d * 2 * H + 5}, {H, d * 2}}, shift};
}

static struct outer_layout turned(const char *name, uint64_t d, uint64_t shift) { /* a view of [B, H, S, D] */
    return (struct outer_layout){name, {{B, d * SH}, {S, d}, {H, d * S}}, shift};
}

static struct outer_layout of_one_sample(const char *name, uint64_t d, uint64_t shift) { /* expanded over the batch */
    return (struct outer_layout){name, {{B, 0}, {SH, d}}, shift};
}

static struct outer_layout of_one_row(const char *name, uint64_t shift) { /* expanded over all rows */
    return (struct outer_layout){name, {{ROWS, 0}}, shift};
}

static struct outer_layout of_one_head(const char *name, uint64_t d, uint64_t shift) { /* expanded over the heads */
    return (struct outer_layout){name, {{B, d * 2 * S + 3}, {S, d * 2}, {H, 0}}, shift};
}

static struct outer_layout dense(const char *name, uint64_t d, uint64_t shift) { /* collapses to one stride */
    return (struct outer_layout){name, {{B, d * SH}, {S, d * H}, {H, d}}, shift};
}

static const struct outer_layout end = {NULL, {{0, 0}}, 0};

static const struct {
    clnorm_dtype dtype;
    uint64_t cols;
} shapes[] = {{CLNORM_F32, 64}, {CLNORM_F16, 37}, {CLNORM_BF16, 300}, {CLNORM_F64, 37}, {CLNORM_BF16, 1}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool has(const struct fixture *fixture, clnorm_dtype dtype) {
    return dtype != CLNORM_F64 || fixture->device.fp64;
}

static void set_dtypes(const struct cln_operation *operation, struct outer_desc *desc, clnorm_dtype dtype) {
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        clnorm_tensor *const tensor = outer_tensor(operation, desc, operation->tensors[i].name);
        if (tensor->dtype)
            tensor->dtype = dtype;
    }
}

/* ----------------------------------------------------------------------------------------------------------- forward */

/* x, y, residual, residual_out and z, whose layouts will differ; and every option that depends on the row. */
static struct outer_desc full_forward(uint64_t cols, clnorm_norm norm, const struct cln_config *config) {
    struct outer_desc any = outer_desc_of(&cln_norm_forward, ROWS, cols);
    clnorm_norm_desc *const desc = (void *)any.bytes;
    desc->norm = norm;
    desc->group_size = cols % 4 == 0 ? cols / 4 : 0;
    desc->weight.dtype = desc->residual.dtype = desc->residual_out.dtype = desc->z.dtype = CLNORM_F32;
    desc->gate = CLNORM_GATE_SILU;
    desc->row_scale = desc->save_rstd = 1;
    desc->dropout = 0.25;
    desc->config = forced(*config);
    return any;
}

static void forward_on(void **state, const struct cln_config *config, unsigned first, unsigned end_shape) {
    const struct fixture *fixture = *state;
    for (unsigned i = first; i < end_shape; i++) {
        const clnorm_dtype dtype = shapes[i].dtype;
        const uint64_t d = shapes[i].cols;
        if (!has(fixture, dtype))
            continue;
        struct outer_desc desc = full_forward(d, i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, config);
        set_dtypes(&cln_norm_forward, &desc, dtype);
        const struct outer_layout layouts[] = {packed("x", d, i % 3),           turned("y", d, 0),
                                               of_one_sample("residual", d, 0), wide("residual_out", d, 1),
                                               of_one_head("z", d, 0),          end};
        assert_true(outer_case_passes(fixture, &cln_norm_forward, &desc, layouts, NULL, NULL));
    }
}

static void forward_as_chosen(void **state) {
    forward_on(state, &(const struct cln_config){0}, 0, SHAPES);
}

/* Configs that a driver with CLN_DEFECT_SHARED_SEGMENTS refuses. */
static void forward_shared(void **state, const struct cln_config *config, unsigned first, unsigned end_shape) {
    const struct fixture *fixture = *state;
    if (cln_driver_defect(&fixture->device, CLN_DEFECT_SHARED_SEGMENTS))
        skip();
    forward_on(state, config, first, end_shape);
}

static void forward_in_registers(void **state) {
    forward_shared(state, &(const struct cln_config){.lanes = 64, .segments = 2, .keep = CLN_KEEP_REGISTERS}, 0, 2);
}

static void forward_reread(void **state) {
    forward_shared(state, &(const struct cln_config){.lanes = 8, .segments = 2, .keep = CLN_KEEP_REREAD, .unroll = 2}, 1,
                   3);
}

static void forward_in_chunks(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t d = 300;
    const struct cln_config config = {.lanes = 4, .chunks = 3};
    if (cln_driver_defect(&fixture->device, CLN_DEFECT_SHARED_SEGMENTS))
        skip();
    struct outer_desc desc = full_forward(d, CLNORM_LAYER_NORM, &config);
    ((clnorm_norm_desc *)(void *)desc.bytes)->group_size = 0;
    const struct outer_layout layouts[] = {of_one_row("x", 0), wide("y", d, 0), turned("z", d, 0), end};
    assert_true(outer_case_passes(fixture, &cln_norm_forward, &desc, layouts, NULL, NULL));
}

/* Scales follow the row's number, wherever its codes lie. */
static void forward_in_8_bits(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t d = 64;
    for (unsigned i = 0; i < 2; i++) {
        struct outer_desc any = outer_desc_of(&cln_norm_forward, ROWS, d);
        clnorm_norm_desc *const desc = (void *)any.bytes;
        desc->norm = CLNORM_RMS_NORM;
        desc->x = (clnorm_tensor){
            .dtype = CLNORM_F8_E4M3, .scaling = i ? CLNORM_SCALING_ROW : CLNORM_SCALING_GROUP, .scale_group = i ? 0 : 16};
        desc->y = (clnorm_tensor){.dtype = i ? CLNORM_BF16 : CLNORM_F8_E5M2,
                                  .scaling = i ? CLNORM_SCALING_NONE : CLNORM_SCALING_TENSOR};
        desc->weight.dtype = CLNORM_F32;
        KNOB(desc->config, keep) = CLN_KEEP_REGISTERS; /* else the dense call would have the kernels of FP8 RMS norm */
        const struct outer_layout layouts[] = {packed("x", d, 0), turned("y", d, 0), end};
        assert_true(outer_case_passes(fixture, &cln_norm_forward, &any, layouts, NULL, NULL));
    }
}

/* ---------------------------------------------------------------------------------------------------------- backward */

static struct outer_desc full_backward(uint64_t cols, clnorm_norm norm, const struct cln_config *config) {
    struct outer_desc any = outer_desc_of(&cln_norm_backward, ROWS, cols);
    clnorm_norm_backward_desc *const desc = (void *)any.bytes;
    desc->norm = norm;
    desc->group_size = cols % 4 == 0 && !config->tile ? cols / 4 : 0;
    desc->weight.dtype = desc->bias.dtype = desc->residual.dtype = desc->dresidual_out.dtype = CLNORM_F32;
    desc->dx.dtype = desc->dresidual.dtype = desc->dweight.dtype = desc->dbias.dtype = desc->y.dtype = CLNORM_F32;
    desc->z.dtype = desc->dz.dtype = CLNORM_F32;
    desc->gate = CLNORM_GATE_SILU;
    desc->row_scale = 1;
    desc->dropout = 0.25;
    desc->config = forced(*config);
    return any;
}

static void backward_of(void **state, const struct cln_config *config, unsigned i) {
    const struct fixture *fixture = *state;
    const clnorm_dtype dtype = shapes[i].dtype;
    const uint64_t d = config->tile ? 64 : shapes[i].cols;
    if (!has(fixture, dtype))
        return;
    struct outer_desc desc = full_backward(d, i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, config);
    clnorm_norm_backward_desc *const own = (void *)desc.bytes;
    own->rstd_given = config->lanes > 0; /* with a chosen config a kernel of the forward computes it */
    own->mean_given = own->rstd_given && own->norm == CLNORM_LAYER_NORM;
    set_dtypes(&cln_norm_backward, &desc, dtype);
    const struct outer_layout layouts[] = {packed("x", d, i % 3),
                                           turned("dy", d, 0),
                                           of_one_head("z", d, 0),
                                           of_one_sample("residual", d, 0),
                                           of_one_row("dresidual_out", 0),
                                           wide("dx", d, i % 2),
                                           packed("dz", d, 0),
                                           dense("y", d, 0),
                                           turned("dresidual", d, 1),
                                           end};
    assert_true(outer_case_passes(fixture, &cln_norm_backward, &desc, layouts, NULL, NULL));
}

static void backward_as_chosen(void **state) {
    for (unsigned i = 0; i < SHAPES; i += 2) /* backward_on_every_kernel has the others */
        backward_of(state, &(const struct cln_config){0}, i);
}

/* One for each kind of kernel: every keep and accumulator, pipelines, whole segments, and tiles with sums from a kernel of
 * their own. */
static void backward_on_every_kernel(void **state) {
    static const struct cln_config configs[] = {
        {.lanes = 8, .segments = 2, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_REGISTERS, .pipeline = 1},
        {.lanes = 8,
         .segments = 1,
         .keep = CLN_KEEP_REGISTERS,
         .accumulator = CLN_ACCUMULATOR_REGISTERS,
         .pipeline = 2,
         .run_length = 2,
         .groups_per_cu = 1,
         .prefetch = CLN_PREFETCH_NEXT},
        {.lanes = 8, .segments = 1, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_REGISTERS},
        {.lanes = 8, .segments = 2, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_SPLIT},
        {.lanes = 4, .segments = 1, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_LOCAL, .unroll = 3},
        {.lanes = 1, .segments = 1, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_MEMORY, .unroll = 2},
        {.lanes = 4, .segments = 1, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_LOCAL, .tile = 16, .chunks = 2},
        {.lanes = 4, .segments = 4, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_COLUMNS},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        backward_of(state, &configs[i], (unsigned)i % (SHAPES - 1));
}

static void backward_in_teams(void **state) {
    const struct fixture *fixture = *state;
    const struct cln_config any = {0};
    const bool any_vec = cln_config_element_aligned(&fixture->device, &any); /* else vec must divide the odd strides */
    const struct cln_config config = {.vec = any_vec ? 4 : 1,
                                      .lanes = 4,
                                      .segments = 1,
                                      .tile = 16,
                                      .accumulator = CLN_ACCUMULATOR_REGISTERS,
                                      .pipeline = 3,
                                      .run_length = 7,
                                      .groups_per_cu = 1,
                                      .keep = CLN_KEEP_REGISTERS,
                                      .row_split = CLN_ROW_SPLIT_EXCHANGE};
    backward_of(state, &config, 0);
}

/* From y in place of x, and from an x of 8 bits. */
static void backward_from_y_and_codes(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t d = 37;
    struct outer_desc any = outer_desc_of(&cln_norm_backward, ROWS, d);
    clnorm_norm_backward_desc *const desc = (void *)any.bytes;
    desc->dx.dtype = desc->dweight.dtype = desc->weight.dtype = desc->y.dtype = CLNORM_F32;
    desc->y_given = desc->rstd_given = 1;
    const struct outer_layout layouts[] = {turned("y", d, 0), of_one_row("dy", 0), packed("dx", d, 0), end};
    assert_true(outer_case_passes(fixture, &cln_norm_backward, &any, layouts, NULL, NULL));
    desc->y_given = 0;
    desc->mean_given = 1;
    desc->y.dtype = CLNORM_DTYPE_NONE;
    desc->x = (clnorm_tensor){.dtype = CLNORM_F8_E5M2, .scaling = CLNORM_SCALING_ROW};
    desc->dy.dtype = CLNORM_F32;
    const struct outer_layout of_codes[] = {wide("x", d, 0), turned("dx", d, 0), end};
    assert_true(outer_case_passes(fixture, &cln_norm_backward, &any, of_codes, NULL, NULL));
}

/* Heads of a packed tensor with a row of weights each, with both reductions of their gradients. */
static void heads_have_weights(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t d = 37;
    struct outer_desc any = outer_desc_of(&cln_norm_forward, ROWS, d);
    clnorm_norm_desc *const forward = (void *)any.bytes;
    forward->weight.dtype = forward->bias.dtype = CLNORM_F32;
    forward->weight_rows = H;
    const struct outer_layout layouts[] = {packed("x", d, 0), turned("y", d, 0), end};
    assert_true(outer_case_passes(fixture, &cln_norm_forward, &any, layouts, NULL, NULL));
    any = outer_desc_of(&cln_norm_backward, ROWS, d);
    clnorm_norm_backward_desc *const desc = (void *)any.bytes;
    desc->weight.dtype = desc->bias.dtype = desc->dx.dtype = desc->dweight.dtype = desc->dbias.dtype = CLNORM_F32;
    desc->weight_rows = H;
    const struct outer_layout of_gradients[] = {packed("x", d, 0), turned("dy", d, 0), packed("dx", d, 1), end};
    assert_true(outer_case_passes(fixture, &cln_norm_backward, &any, of_gradients, NULL, NULL));
    desc->reduction = CLNORM_REDUCTION_LOCKED;
    desc->slots = 1;
    KNOB(desc->config, groups_per_cu) = 1;
    KNOB(desc->config, run_length) = ROWS; /* one work-group for a row of weights: sums have a fixed order */
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, desc, &plan);
    clnorm_plan_destroy(plan);
    if (status == CLNORM_UNSUPPORTED)
        assert_non_null(strstr(clnorm_error_detail(), "fence"));
    else
        assert_true(outer_case_passes(fixture, &cln_norm_backward, &any, of_gradients, NULL, NULL));
}

/* ---------------------------------------------------------------------------------------------------- other operations */

/* Of an operation and its gradient, each shape has one. */
static void l2_norm(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 0; i < SHAPES; i += 2) {
        const clnorm_dtype dtype = shapes[i].dtype;
        const uint64_t d = shapes[i].cols;
        struct outer_desc desc = outer_desc_of(&cln_l2_norm, ROWS, d);
        outer_tensor(&cln_l2_norm, &desc, "weight")->dtype = CLNORM_F32;
        set_dtypes(&cln_l2_norm, &desc, dtype);
        ((clnorm_l2_norm_desc *)(void *)desc.bytes)->save_norm = 1;
        ((clnorm_l2_norm_desc *)(void *)desc.bytes)->group_size = d % 4 == 0 ? d / 4 : 0;
        const struct outer_layout layouts[] = {packed("x", d, i % 3), turned("y", d, 0), end};
        assert_true(outer_case_passes(fixture, &cln_l2_norm, &desc, layouts, NULL, NULL));
    }
}

static void l2_norm_gradient(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 1; i < SHAPES; i += 2) {
        const clnorm_dtype dtype = shapes[i].dtype;
        const uint64_t d = shapes[i].cols;
        if (!has(fixture, dtype))
            continue;
        struct outer_desc back = outer_desc_of(&cln_l2_norm_backward, ROWS, d);
        outer_tensor(&cln_l2_norm_backward, &back, "weight")->dtype = CLNORM_F32;
        outer_tensor(&cln_l2_norm_backward, &back, "dweight")->dtype = CLNORM_F32;
        set_dtypes(&cln_l2_norm_backward, &back, dtype);
        ((clnorm_l2_norm_backward_desc *)(void *)back.bytes)->norm_given = i % 4 == 1;
        const struct outer_layout of_back[] = {wide("x", d, 0), of_one_sample("dy", d, 0), packed("dx", d, i % 2), end};
        assert_true(outer_case_passes(fixture, &cln_l2_norm_backward, &back, of_back, NULL, NULL));
    }
}

/* Softmax and GELU. keep: 0 for the library's choice. */
static void rows_of(const struct fixture *fixture, const struct cln_operation *operation, clnorm_dtype dtype, uint64_t d,
                    uint32_t keep) {
    struct outer_desc desc = outer_desc_of(operation, ROWS, d);
    set_dtypes(operation, &desc, dtype);
    KNOB(*(clnorm_config *)(void *)(desc.bytes + operation->config), keep) = keep;
    const bool backward = operation->tensor_count == 3;
    const struct outer_layout layouts[] = {packed(operation->tensors[0].name, d, 1),
                                           turned(operation->tensors[operation->tensor_count - 1].name, d, 0),
                                           of_one_head(backward ? "dy" : NULL, d, 0), end};
    assert_true(outer_case_passes(fixture, operation, &desc, layouts, NULL, NULL));
}

static void softmax_and_gelu(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 0; i < SHAPES; i++) {
        const clnorm_dtype dtype = shapes[i].dtype;
        if (!has(fixture, dtype))
            continue;
        rows_of(fixture, i % 2 ? &cln_softmax_forward : &cln_softmax_backward, dtype, shapes[i].cols,
                i / 2 % 2 ? CLN_KEEP_REREAD : 0);
        rows_of(fixture, i % 2 ? &cln_gelu_backward : &cln_gelu_forward, dtype, shapes[i].cols, 0);
    }
}

/* ---------------------------------------------------------------------------------------------------------- in place */

static void outputs_lie_over_inputs(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t d = 48;
    const struct cln_config columns = {.lanes = 4, .segments = 4, .accumulator = CLN_ACCUMULATOR_COLUMNS};
    const struct outer_layout forward[] = {packed("x", d, 0), packed("y", d, 0), end};
    struct outer_desc desc = outer_desc_of(&cln_norm_forward, ROWS, d);
    assert_true(outer_case_passes(fixture, &cln_norm_forward, &desc, forward, "y", "x"));
    const struct outer_layout backward[] = {turned("x", d, 0), wide("dy", d, 0), wide("dx", d, 0), end};
    for (unsigned i = 0; i < 2; i++) {
        struct outer_desc back = outer_desc_of(&cln_norm_backward, ROWS, d);
        clnorm_norm_backward_desc *const b = (void *)back.bytes;
        b->dx.dtype = b->dweight.dtype = b->weight.dtype = CLNORM_F32;
        if (i)
            b->config = forced(columns);
        assert_true(outer_case_passes(fixture, &cln_norm_backward, &back, backward, "dx", "dy"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_as_chosen),
        cmocka_unit_test(forward_in_registers),
        cmocka_unit_test(forward_reread),
        cmocka_unit_test(forward_in_chunks),
        cmocka_unit_test(forward_in_8_bits),
        cmocka_unit_test(backward_as_chosen),
        cmocka_unit_test(backward_on_every_kernel),
        cmocka_unit_test(backward_in_teams),
        cmocka_unit_test(backward_from_y_and_codes),
        cmocka_unit_test(heads_have_weights),
        cmocka_unit_test(l2_norm),
        cmocka_unit_test(l2_norm_gradient),
        cmocka_unit_test(softmax_and_gelu),
        cmocka_unit_test(outputs_lie_over_inputs),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
