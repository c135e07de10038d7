/* Norms with a rotated output: both forms, on every kind of kernel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "norm_case.h"
#include "reference/format.h"
#include "refusal.h"

/* 5 rows of 3 heads. dims: 0 for whole heads. */
static struct norm_case rope_case(clnorm_rope form, clnorm_dtype dtype, uint64_t head, uint64_t dims) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, 5, 3 * head), .seed = head + dims};
    clnorm_norm_desc *const desc = &norm_case.desc;
    desc->group_size = head;
    desc->x.dtype = desc->weight.dtype = dtype;
    desc->rope = form;
    desc->rope_dims = dims;
    desc->rope_positions = 9;
    desc->rope_cos.dtype = desc->rope_sin.dtype = dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    return norm_case;
}

static void heads_of_all_sizes(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        uint64_t head, dims;
    } shapes[] = {{64, 0},  {80, 0},    {96, 0},  {128, 0},  {192, 0},   {256, 0},  {128, 64},
                  {96, 24}, {10, 6},    {2, 0},   {11, 2},   {17, 16},   {70, 0},   {33, 32},
                  {6, 4},   {1000, 10}, {130, 0}, {1024, 0}, {515, 258}, {4096, 0}, {64, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (clnorm_dtype dtype = CLNORM_F32; dtype <= (fixture->device.fp64 ? CLNORM_F64 : CLNORM_BF16); dtype++) {
            const bool every_dtype = i % 7 == 0 && !fixture_is_quick(); /* others have one */
            if (!every_dtype && i % 4 != dtype % 4)
                continue;
            struct norm_case norm_case = rope_case(rope_forms[(i / 4 + dtype) % 2], dtype, shapes[i].head, shapes[i].dims);
            norm_case.desc.norm = (i / 8 + dtype) % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM;
            norm_case.desc.position_given = i % 3 == 0;
            if (i % 3 < 2)
                norm_case.desc.bias.dtype = dtype;
            assert_true(norm_case_passes(fixture, &norm_case));
        }
}

/* Several rows at a position; tables of 16 bits, and with strides; rows with strides; a y of another dtype. */
static void tables_and_positions(void **state) {
    const struct fixture *fixture = *state;
    static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16};
    for (unsigned i = 0; i < 18; i++) {
        struct norm_case norm_case = rope_case(rope_forms[i % 2], dtypes[i % 3], i % 5 ? 32 : 12, i % 7 ? 0 : 8);
        clnorm_norm_desc *const desc = &norm_case.desc;
        desc->rows = 1 + i;
        desc->position_given = i / 2 % 2;
        desc->rope_repeat = i / 4 % 4; /* 0: 1 */
        desc->rope_positions = 40;
        desc->rope_cos.dtype = dtypes[i / 3 % 3];
        desc->rope_sin.dtype = dtypes[i / 9 % 3];
        desc->rope_cos.stride = i % 4 ? 0 : 32;
        desc->rope_sin.stride = i % 4 ? 0 : 33;
        desc->x.stride = i % 3 ? 0 : 3 * desc->group_size + 5;
        desc->y.stride = i % 3 ? 0 : 3 * desc->group_size + 8;
        desc->y.dtype = i % 6 ? CLNORM_DTYPE_NONE : CLNORM_F32;
        norm_case.shift.x = i % 4 == 3;
        norm_case.shift.rope = i % 5 == 4;
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

/* Where y is x, each lane must read both columns of a pair before it writes one. */
static void in_place(void **state) {
    const struct fixture *fixture = *state;
    static const char *const configs[] = {"", "vec=4,lanes=8,keep=registers", "vec=4,lanes=8,keep=reread,unroll=3",
                                          "vec=2,lanes=1,keep=registers", "vec=4,lanes=4,keep=local,segments=1"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (int form = 0; form < 2; form++) {
            struct norm_case norm_case = rope_case(rope_forms[form], CLNORM_F32, 128, 64);
            norm_case.in_place = true;
            norm_case.desc.rows = 40;
            norm_case.desc.rope_positions = 40;
            norm_case.desc.config = config_of(configs[i]);
            assert_true(norm_case_passes(fixture, &norm_case));
        }
}

static void kernel_paths(void **state) {
    const struct fixture *fixture = *state;
    static const char *const configs[] = {
        "vec=1,lanes=1,keep=registers",
        "vec=1,lanes=1,keep=reread",
        "vec=2,lanes=2,keep=registers,segments=4",
        "vec=2,lanes=8,keep=reread,unroll=4,segments=2",
        "vec=4,lanes=4,keep=registers,weights=early",
        "vec=4,lanes=2,keep=reread,unroll=16,iterations=3",
        "vec=8,lanes=4,keep=registers,stores=streaming",
        "vec=8,lanes=4,keep=local,segments=1,local_vectors=1",
        "vec=8,lanes=1,keep=reread,unroll=1",
        "vec=2,lanes=4,keep=registers,segments=8,iterations=2",
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (unsigned bf16 = 0; bf16 < 2; bf16++) {
            struct norm_case norm_case = rope_case(rope_forms[(i + bf16) % 2], bf16 ? CLNORM_BF16 : CLNORM_F32, 160, 128);
            norm_case.desc.norm = (i / 2 + bf16) % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM;
            norm_case.desc.bias.dtype = i % 3 ? CLNORM_F32 : CLNORM_DTYPE_NONE;
            norm_case.desc.config = config_of(configs[i]);
            assert_true(norm_case_passes(fixture, &norm_case));
        }
}

/* With the options that go with a rotation. */
static void fused(void **state) {
    const struct fixture *fixture = *state;
    static const char *const configs[] = {"", "vec=2,lanes=4,keep=registers", "vec=4,lanes=4,keep=reread"};
    for (unsigned i = 0; i < 16; i++) {
        struct norm_case norm_case = rope_case(rope_forms[i % 2], i % 3 ? CLNORM_F32 : CLNORM_F16, 64, i % 5 ? 0 : 32);
        clnorm_norm_desc *const desc = &norm_case.desc;
        const bool gate = i / 4 % 3 == 2;
        desc->residual.dtype = gate || i / 4 % 3 == 0 ? CLNORM_DTYPE_NONE : desc->x.dtype;
        desc->residual_out.dtype = desc->residual.dtype ? CLNORM_F32 : CLNORM_DTYPE_NONE;
        desc->dropout = gate || i % 2 ? 0 : 0.25;
        desc->row_scale = !gate && i % 4 == 1;
        desc->gate = gate ? CLNORM_GATE_SILU : CLNORM_GATE_NONE;
        desc->gate_first = gate;
        desc->weight_offset = i % 2;
        desc->save_rstd = 1;
        desc->weight_rows = i % 3 ? 0 : 5;
        desc->config = config_of(configs[i / 2 % 3]);
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

/* A y of 8 bits with a given scale, and its transposed copy. */
static void codes(void **state) {
    const struct fixture *fixture = *state;
    for (int form = 0; form < 2; form++) {
        struct norm_case norm_case = rope_case(rope_forms[form], CLNORM_BF16, 64, 0);
        norm_case.desc.rope_positions = norm_case.desc.rows = 20;
        norm_case.desc.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR, .scale = 0.0625};
        norm_case.desc.y_t.dtype = CLNORM_F8_E4M3;
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

/* A position outside the tables makes the rotated columns of its row NaN, and no others. */
static void wild_positions(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 0; i < 8; i++) {
        struct norm_case norm_case = rope_case(rope_forms[i % 2], i / 2 % 2 ? CLNORM_BF16 : CLNORM_F32, 32, 24);
        norm_case.desc.rows = 11;
        norm_case.desc.position_given = 1;
        norm_case.desc.rope_repeat = 1 + i / 4;
        norm_case.wild_positions = true;
        struct norm_run run = norm_run_make(&norm_case);
        assert_int_equal(norm_run_go(fixture, &run), CLNORM_SUCCESS);
        assert_true(norm_run_verify(fixture, &run));
        assert_true(isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 0)));
        assert_true(isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 23)));
        assert_true(!isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 24)));
        norm_run_free(&run);
    }
}

/* Hugging Face's apply_rotary_pos_emb: q · cos + rotate_half(q) · sin, with cos and sin of cat(angles, angles), and
 * rotate_half(q) = cat(−q[half:], q[:half]). The head has 4 columns of ±1, which RMS norm leaves as they are. */
static void as_hugging_face(void **state) {
    const struct fixture *fixture = *state;
    const double x[4] = {1, -1, 1, 1}, angle[2] = {0.5, 1.25};
    struct norm_case norm_case = rope_case(CLNORM_ROPE_NEOX, CLNORM_F32, 4, 0);
    norm_case.desc.rows = 1;
    norm_case.desc.cols = 4;
    norm_case.desc.eps = 0;
    norm_case.desc.weight.dtype = CLNORM_DTYPE_NONE;
    norm_case.desc.rope_positions = 1;
    struct norm_run run = norm_run_make(&norm_case);
    for (uint64_t i = 0; i < 4; i++)
        ref_store(CLNORM_F32, tensor_elements(&run.x), i, x[i]);
    for (uint64_t i = 0; i < 2; i++) {
        ref_store(CLNORM_F32, tensor_elements(&run.rope.cos), i, cos(angle[i]));
        ref_store(CLNORM_F32, tensor_elements(&run.rope.sin), i, sin(angle[i]));
    }
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &run));
    const double rotate_half[4] = {-x[2], -x[3], x[0], x[1]};
    for (uint64_t i = 0; i < 4; i++) {
        const double expected = x[i] * cos(angle[i % 2]) + rotate_half[i] * sin(angle[i % 2]);
        assert_true(fabs(ref_load(CLNORM_F32, tensor_elements(&run.y), i) - expected) < 1e-6);
    }
    norm_run_free(&run);
}

static void refuses(const struct fixture *fixture, const clnorm_norm_desc *desc, clnorm_status status, const char *text) {
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, desc, NULL), status);
    assert_detail(text);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_desc good = rope_case(CLNORM_ROPE_NEOX, CLNORM_F32, 10, 6).desc;
    clnorm_norm_desc desc = good;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &desc, NULL), CLNORM_SUCCESS);
    desc.rope = 3;
    refuses(fixture, &desc, CLNORM_INVALID_ENUM, "desc.rope is 3: expected a clnorm_rope");
    desc = good;
    desc.rope_dims = 12;
    refuses(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_dims is 12: expected at most group_size, 10");
    desc.rope_dims = 5;
    refuses(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_dims is 5: expected an even number");
    desc = good;
    desc.rope_positions = 0;
    refuses(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_positions is 0");
    desc.rope_positions = 4;
    refuses(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_positions is 4: expected at least rows / rope_repeat, 5");
    desc.rope_repeat = 2;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &desc, NULL), CLNORM_SUCCESS);
    desc.rope_repeat = UINT64_MAX;
    refuses(fixture, &desc, CLNORM_INVALID_VALUE, "desc.rope_repeat is 18446744073709551615");
    desc = good;
    desc.rope_cos.dtype = CLNORM_DTYPE_NONE;
    refuses(fixture, &desc, CLNORM_INVALID_ENUM, "desc.rope_cos.dtype is none");
    desc.rope_cos.dtype = CLNORM_F8_E4M3;
    refuses(fixture, &desc, CLNORM_UNSUPPORTED, "desc.rope_cos.dtype is f8e4m3");
    desc = good;
    desc.rope_sin.stride = 2;
    refuses(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_sin.stride is 2: expected at least rope_dims / 2, 3");
    desc = good;
    desc.position_given = 2;
    refuses(fixture, &desc, CLNORM_INVALID_VALUE, "desc.position_given is 2: expected 0 or 1");
    desc = good;
    desc.rope = CLNORM_ROPE_NONE;
    refuses(fixture, &desc, CLNORM_INVALID_VALUE, "desc.rope_dims is set: expected none with a desc.rope of 0");
    desc = good;
    desc.activation = CLNORM_ACTIVATION_SILU;
    refuses(fixture, &desc, CLNORM_UNSUPPORTED, "desc.activation is set: expected none with desc.rope");
    desc = good;
    desc.gate = CLNORM_GATE_SILU;
    refuses(fixture, &desc, CLNORM_UNSUPPORTED, "desc.gate is set: expected none with desc.rope");
    desc = good;
    desc.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    refuses(fixture, &desc, CLNORM_UNSUPPORTED, "desc.y.scaling is set: expected none with desc.rope");
}

static void impossible_knobs_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_rope form;
        const char *config, *says;
    } impossible[] = {
        {CLNORM_ROPE_NEOX, "vec=8", "desc.config.vec is 8: expected a divisor of rope_dims"},
        {CLNORM_ROPE_INTERLEAVED, "vec=16", "desc.config.vec is 16: expected a divisor of rope_dims"},
        {CLNORM_ROPE_NEOX, "vec=4,lanes=2", "desc.config.lanes is 2"},
        {CLNORM_ROPE_INTERLEAVED, "vec=1,lanes=2", "desc.config.lanes is 2"},
        {CLNORM_ROPE_NEOX, "vec=2,chunks=2", "desc.config.chunks is 2: expected 1 with a rope"},
    };
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        clnorm_norm_desc desc = rope_case(impossible[i].form, CLNORM_F32, 32, 24).desc;
        desc.config = config_of(impossible[i].config);
        refuses(fixture, &desc, CLNORM_INVALID_VALUE, impossible[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_all_sizes),
        cmocka_unit_test(tables_and_positions),
        cmocka_unit_test(in_place),
        cmocka_unit_test(kernel_paths),
        cmocka_unit_test(fused),
        cmocka_unit_test(codes),
        cmocka_unit_test(wild_positions),
        cmocka_unit_test(as_hugging_face),
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(impossible_knobs_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
