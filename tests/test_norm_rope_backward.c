/* Gradients of norms with a rotated output. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "norm_backward_case.h"
#include "reference/format.h"
#include "refusal.h"

/* 7 rows of 3 heads, with dx, dweight and dbias. dims: 0 for whole heads. */
static struct norm_backward_case gradient_case(clnorm_rope form, clnorm_dtype dtype, uint64_t head, uint64_t dims) {
    struct norm_backward_case backward_case = {.desc = norm_backward_full_desc(CLNORM_RMS_NORM, 7, 3 * head, dtype),
                                               .seed = head + dims};
    clnorm_norm_backward_desc *const desc = &backward_case.desc;
    desc->y.dtype = CLNORM_DTYPE_NONE;
    desc->group_size = head;
    desc->rope = form;
    desc->rope_dims = dims;
    desc->rope_positions = 9;
    desc->rope_cos.dtype = desc->rope_sin.dtype = dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    return backward_case;
}

static void gradients_of_all_heads(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        uint64_t head, dims;
    } shapes[] = {{64, 0},  {80, 0}, {96, 0}, {128, 0}, {192, 0}, {256, 0}, {128, 64},
                  {96, 24}, {10, 6}, {2, 0},  {11, 2},  {17, 16}, {70, 0},  {515, 258}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (clnorm_dtype dtype = CLNORM_F32; dtype <= (fixture->device.fp64 ? CLNORM_F64 : CLNORM_BF16); dtype++) {
            if (i % 6 && i % 4 != dtype % 4) /* every sixth shape has all dtypes, others have one */
                continue;
            struct norm_backward_case backward_case =
                gradient_case(rope_forms[(i / 4 + dtype) % 2], dtype, shapes[i].head, shapes[i].dims);
            backward_case.desc.norm = (i / 8 + dtype) % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM;
            backward_case.desc.position_given = i % 3 == 0;
            backward_case.desc.rope_repeat = i % 4;
            backward_case.dx_place = i % 2 ? DX_OVER_X : DX_APART;
            assert_true(norm_backward_case_passes(fixture, &backward_case));
        }
}

static void gradient_paths(void **state) {
    const struct fixture *fixture = *state;
    static const char *const configs[] = {
        "vec=1,lanes=1,keep=reread,accumulator=memory",
        "vec=8,lanes=1,keep=reread,accumulator=memory",
        "vec=4,lanes=8,keep=reread,accumulator=local,segments=1",
        "vec=2,lanes=16,keep=registers,accumulator=registers,segments=2",
        "vec=4,lanes=32,keep=registers,accumulator=split,segments=1",
        "vec=4,lanes=8,keep=reread,accumulator=registers,segments=2",
        "vec=4,lanes=8,keep=registers,accumulator=registers,pipeline=2,segments=1",
        "vec=4,lanes=8,keep=registers,accumulator=columns,segments=1",
        "vec=4,lanes=8,keep=registers,accumulator=registers,segments=1,tile=64,row_split=two_passes",
        "vec=4,lanes=8,keep=registers,accumulator=registers,segments=1,tile=64,row_split=exchange,pipeline=3",
        "vec=4,lanes=8,keep=registers,accumulator=registers,segments=1,tile=64,row_split=two_passes,chunks=2",
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (unsigned bf16 = 0; bf16 < 2; bf16++) {
            struct norm_backward_case backward_case =
                gradient_case(rope_forms[(i + bf16) % 2], bf16 ? CLNORM_BF16 : CLNORM_F32, 160, 128);
            clnorm_norm_backward_desc *const desc = &backward_case.desc;
            desc->norm = (i / 2 + bf16) % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM;
            desc->rows = desc->rope_positions = 21;
            desc->rstd_given = (i / 4 + bf16) % 4 != 0;
            desc->mean_given = desc->rstd_given && desc->norm == CLNORM_LAYER_NORM;
            desc->config = config_of(configs[i]);
            assert_true(norm_backward_case_passes(fixture, &backward_case));
        }
}

static void fused_gradients(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 0; i < 16; i++) {
        struct norm_backward_case backward_case = gradient_case(rope_forms[i % 2], i % 3 ? CLNORM_F32 : CLNORM_F16, 64, 32);
        clnorm_norm_backward_desc *const desc = &backward_case.desc;
        const bool gate = i / 2 % 4 == 3;
        desc->residual.dtype = desc->dresidual.dtype = desc->dresidual_out.dtype =
            gate || i / 2 % 4 == 0 ? CLNORM_DTYPE_NONE : desc->x.dtype;
        desc->dropout = gate || i % 4 ? 0 : 0.25;
        desc->row_scale = !gate && i % 4 == 1;
        desc->gate = gate ? CLNORM_GATE_SIGMOID : CLNORM_GATE_NONE;
        desc->gate_first = gate;
        desc->dz.dtype = gate ? desc->x.dtype : CLNORM_DTYPE_NONE;
        desc->weight_offset = i % 2;
        desc->accumulate = i % 5 == 0;
        desc->weight_rows = i % 3 ? 0 : 7;
        desc->dy.stride = i % 3 ? 0 : 3 * 64 + 3;
        desc->rope_cos.stride = i % 3 ? 0 : 17;
        backward_case.shift.rope = i % 4 == 3;
        backward_case.shift.dy = i % 5 == 3;
        if (i % 8 == 5 && norm_backward_locks(fixture)) {
            desc->reduction = CLNORM_REDUCTION_LOCKED;
            desc->slots = 3;
        }
        assert_true(norm_backward_case_passes(fixture, &backward_case));
    }
}

/* A position outside the tables makes dx of its row NaN, and dweight and dbias of the rotated columns. */
static void wild_positions_give_nan(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 0; i < 4; i++) {
        struct norm_backward_case backward_case =
            gradient_case(rope_forms[i % 2], i / 2 ? CLNORM_BF16 : CLNORM_F32, 32, 24);
        backward_case.desc.position_given = 1;
        backward_case.wild_positions = true;
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run));
        assert_true(norm_backward_run_check(&run));
        assert_true(isnan(ref_load(run.dx.dtype, tensor_elements(&run.dx), 0)));
        assert_true(isnan(ref_load(run.dx.dtype, tensor_elements(&run.dx), 31)));
        assert_true(isnan(ref_load(run.dweight.dtype, tensor_elements(&run.dweight), 23)));
        assert_true(!isnan(ref_load(run.dweight.dtype, tensor_elements(&run.dweight), 24)));
        norm_backward_run_free(&run);
    }
}

/* With a rotation the lanes of a row read each other's dy, which dx would overwrite. */
static void dx_over_dy_is_refused(void **state) {
    const struct fixture *fixture = *state;
    for (int form = 0; form < 3; form++) {
        struct norm_backward_case backward_case =
            gradient_case(form < 2 ? rope_forms[form] : CLNORM_ROPE_NONE, CLNORM_F32, 64, 0);
        if (form == 2) {
            backward_case.desc.rope_positions = 0;
            backward_case.desc.rope_cos.dtype = backward_case.desc.rope_sin.dtype = CLNORM_DTYPE_NONE;
        }
        backward_case.dx_place = DX_OVER_DY;
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        const clnorm_status status = norm_backward_run_go(fixture, &run);
        assert_int_equal(status, form < 2 ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS);
        if (form < 2)
            assert_non_null(strstr(clnorm_error_detail(), "overlaps args.dy"));
        norm_backward_run_free(&run);
    }
}

static void refuses_gradients_of(const struct fixture *fixture, const clnorm_norm_backward_desc *desc, clnorm_status status,
                                 const char *text) {
    assert_int_equal(clnorm_norm_backward_validate(fixture->context, desc, NULL), status);
    assert_detail(text);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_backward_desc good = gradient_case(CLNORM_ROPE_NEOX, CLNORM_F32, 10, 6).desc;
    clnorm_norm_backward_desc desc = good;
    assert_int_equal(clnorm_norm_backward_validate(fixture->context, &desc, NULL), CLNORM_SUCCESS);
    desc.rope_dims = 12;
    refuses_gradients_of(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_dims is 12: expected at most group_size, 10");
    desc.rope_dims = 3;
    refuses_gradients_of(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.rope_dims is 3: expected an even number");
    desc = good;
    desc.rope_positions = 6;
    refuses_gradients_of(fixture, &desc, CLNORM_INVALID_SHAPE,
                         "desc.rope_positions is 6: expected at least rows / rope_repeat, 7");
    desc = good;
    desc.rope = CLNORM_ROPE_NONE;
    refuses_gradients_of(fixture, &desc, CLNORM_INVALID_VALUE,
                         "desc.rope_dims is set: expected none with a desc.rope of 0");
    desc = good;
    desc.activation = CLNORM_ACTIVATION_GELU;
    refuses_gradients_of(fixture, &desc, CLNORM_UNSUPPORTED, "desc.activation is set: expected none with desc.rope");
    desc = good;
    desc.gate = CLNORM_GATE_SILU;
    refuses_gradients_of(fixture, &desc, CLNORM_UNSUPPORTED, "desc.gate is set: expected none with desc.rope");
    desc = good;
    desc.y.dtype = CLNORM_F32;
    refuses_gradients_of(fixture, &desc, CLNORM_UNSUPPORTED, "desc.y is set: expected none with desc.rope");
    desc.y_given = desc.rstd_given = 1;
    refuses_gradients_of(fixture, &desc, CLNORM_INVALID_VALUE, "desc.rope is set: expected none with y_given");
    desc = good;
    desc.config = config_of("vec=2");
    refuses_gradients_of(fixture, &desc, CLNORM_INVALID_VALUE, "desc.config.vec is 2: expected a divisor of rope_dims");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_all_heads), cmocka_unit_test(gradient_paths),
        cmocka_unit_test(fused_gradients),        cmocka_unit_test(wild_positions_give_nan),
        cmocka_unit_test(dx_over_dy_is_refused),  cmocka_unit_test(bad_descriptors_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
