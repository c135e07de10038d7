/* Queries and keys of attention: each head has a row of weights and is rotated after the norm. Heads also lie in a packed
 * tensor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "knob.h"
#include "norm_backward_case.h"
#include "norm_case.h"
#include "outer_case.h"

/* [B, S, 3, H, D], of which a third is normalised. */
enum { B = 2, S = 5, H = 4, D = 32, POSITIONS = B * S, ROWS = POSITIONS * H, TOKEN = H * D, HEAD = S * D };

/* Configs of the forward and the backward, one for each kind of kernel; "" is the library's choice. */
static const char *const forwards[] = {"", "vec=4,lanes=8,segments=4,keep=registers,weights=early",
                                       "vec=4,lanes=4,segments=1,keep=reread,unroll=2", "vec=4,lanes=1,keep=reread"};
static const char *const backwards[] = {
    "",
    "vec=4,lanes=1,keep=reread,accumulator=memory",
    "vec=4,lanes=8,keep=registers,accumulator=registers,segments=4,pipeline=2,prefetch=next",
    "vec=2,lanes=16,keep=reread,accumulator=local,segments=1",
    "vec=4,lanes=4,keep=registers,accumulator=registers,segments=1,tile=16,row_split=two_passes",
    "vec=4,lanes=4,keep=registers,accumulator=split,segments=1,tile=16,row_split=exchange,pipeline=3"};

enum { FORWARDS = sizeof forwards / sizeof *forwards, BACKWARDS = sizeof backwards / sizeof *backwards };

static void rotated_heads(void **state) {
    for (unsigned i = 0; i < 2 * FORWARDS; i++) {
        struct norm_case norm_case = {.desc = norm_desc_of(i % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, ROWS, D),
                                      .seed = i};
        clnorm_norm_desc *const desc = &norm_case.desc;
        desc->x.dtype = desc->weight.dtype = desc->bias.dtype = i < FORWARDS ? CLNORM_BF16 : CLNORM_F32;
        desc->weight_rows = desc->rope_repeat = H;
        desc->rope = rope_forms[i % 2];
        desc->rope_dims = i % FORWARDS < 2 ? D / 2 : 0;
        desc->rope_positions = POSITIONS;
        desc->rope_cos.dtype = desc->rope_sin.dtype = CLNORM_F32;
        desc->config = config_of(forwards[i % FORWARDS]);
        assert_true(norm_case_passes(*state, &norm_case));
    }
}

static void gradients_of_rotated_heads(void **state) {
    for (unsigned i = 0; i < 2 * BACKWARDS; i++) {
        const clnorm_dtype dtype = i < BACKWARDS ? CLNORM_F32 : CLNORM_BF16;
        struct norm_backward_case c = {
            .desc = norm_backward_full_desc(i % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, ROWS, D, dtype), .seed = i};
        c.desc.y.dtype = CLNORM_DTYPE_NONE;
        c.desc.weight_rows = c.desc.rope_repeat = H;
        c.desc.rope = rope_forms[i % 2];
        c.desc.rope_dims = i % 3 ? 0 : D / 2;
        c.desc.rope_positions = POSITIONS;
        c.desc.rope_cos.dtype = c.desc.rope_sin.dtype = CLNORM_F32;
        c.desc.config = config_of(backwards[i % BACKWARDS]);
        assert_true(norm_backward_case_passes(*state, &c));
    }
}

/* ----------------------------------------------------------------------------------------------- in a packed tensor */

static struct outer_layout packed(const char *name) {
    return (struct outer_layout){name, {{POSITIONS, (uint64_t)3 * TOKEN}, {H, D}}, 0};
}

static struct outer_layout turned(const char *name) { /* a view of [B, H, S, D] */
    return (struct outer_layout){name, {{B, (uint64_t)S * TOKEN}, {S, D}, {H, HEAD}}, 0};
}

static const struct outer_layout end = {NULL, {{0, 0}}, 0};

static void packed_heads(void **state) {
    for (unsigned i = 0; i < FORWARDS; i++) {
        struct outer_desc any = outer_desc_of(&cln_norm_forward, ROWS, D);
        clnorm_norm_desc *const desc = (void *)any.bytes;
        desc->norm = CLNORM_RMS_NORM;
        desc->weight.dtype = CLNORM_F32;
        desc->weight_rows = H;
        desc->weight.stride = D + 4;
        desc->config = config_of(forwards[i]);
        const struct outer_layout layouts[] = {packed("x"), turned("y"), end};
        assert_true(outer_case_passes(*state, &cln_norm_forward, &any, layouts, NULL, NULL));
    }
}

static void gradients_of_packed_heads(void **state) {
    for (unsigned i = 0; i < BACKWARDS; i++) {
        struct outer_desc any = outer_desc_of(&cln_norm_backward, ROWS, D);
        clnorm_norm_backward_desc *const desc = (void *)any.bytes;
        desc->norm = CLNORM_RMS_NORM;
        desc->weight.dtype = desc->dx.dtype = desc->dweight.dtype = CLNORM_F32;
        desc->rstd_given = 1;
        desc->weight_rows = i % 2 ? H : B; /* by head, or by sample */
        desc->weight_repeat = i % 2 ? 1 : S * H;
        desc->config = config_of(backwards[i]);
        const struct outer_layout layouts[] = {packed("x"), turned("dy"), packed("dx"), end};
        assert_true(outer_case_passes(*state, &cln_norm_backward, &any, layouts, NULL, NULL));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotated_heads),
        cmocka_unit_test(gradients_of_rotated_heads),
        cmocka_unit_test(packed_heads),
        cmocka_unit_test(gradients_of_packed_heads),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
