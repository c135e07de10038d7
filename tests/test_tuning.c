/* Tuning files: rows that a plan takes, rows and files that are not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "scratch.h"

struct state {
    struct fixture *fixture;
    char *dir;
};

static int set_up(void **state) {
    static struct state made;
    void *fixture = NULL;
    if (fixture_setup(&fixture))
        return 1;
    made.fixture = fixture;
    made.dir = scratch_make();
    *state = &made;
    return 0;
}

static int tear_down(void **state) {
    struct state *const made = *state;
    void *fixture = made->fixture;
    scratch_remove(made->dir);
    return fixture_teardown(&fixture);
}

static void write_file(const struct state *state, const char *device, const char *driver, const char *rows) {
    char text[4096];
    const int length =
        snprintf(text, sizeof text, "# a remark\nclnorm tuning 1\ndevice %s\n\ndriver %s\n%s", device, driver, rows);
    assert_in_range(length, 0, sizeof text - 1);
    const char *const path = scratch_path(state->dir, "device.tuning");
    scratch_write(path, text, (size_t)length);
    assert_int_equal(setenv("CLNORM_TUNING", path, 1), 0);
}

/* The config and description of a plan in a new context. */
struct outcome {
    struct cln_config config;
    char text[16384]; /* the plan's description */
};

static struct outcome plan_with(const struct state *state, const clnorm_norm_desc *desc) {
    clnorm_context *context = NULL;
    clnorm_plan *plan = NULL;
    struct outcome outcome;
    assert_int_equal(clnorm_context_create(state->fixture->cl, state->fixture->device.device, NULL, &context), 0);
    assert_int_equal(clnorm_norm_forward_plan_create(context, desc, &plan), CLNORM_SUCCESS);
    outcome.config = chosen_knobs(plan);
    assert_in_range(clnorm_plan_describe(plan, outcome.text, sizeof outcome.text), 1, sizeof outcome.text - 1);
    clnorm_plan_destroy(plan);
    clnorm_context_destroy(context);
    return outcome;
}

static void write_rows(const struct state *made, const char *rows) {
    write_file(made, made->fixture->device.name, made->fixture->device.driver, rows);
}

static clnorm_norm_desc usual_desc(void) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = 8;
    desc.cols = 96;
    return desc;
}

static void assert_note(const struct outcome *outcome, const char *part) {
    if (!strstr(outcome->text, "config: ") || !strstr(outcome->text, part))
        fail_msg("\"%s\" is not in: %s", part, outcome->text);
}

/* A GPU's config may be from the library's database. */
static void assert_no_file(const struct outcome *outcome) {
    assert_true(!strstr(outcome->text, "tuned by ") && !strstr(outcome->text, "is not used"));
}

static void test_rows_are_taken(void **state) {
    const struct state *const made = *state;
    write_rows(made,
               "layer_norm f32 96: unroll=3\nrms_norm f32 96: vec=1,unroll=5 # a remark\nrms_norm f32 96: vec=2,unroll=7\n"
               "rms_norm bf16 96: unroll=9\nrms_norm_gated f32 96: unroll=10\nrms_norm f32 48: unroll=11");
    clnorm_norm_desc desc = usual_desc();
    struct outcome outcome = plan_with(made, &desc);
    assert_int_equal(outcome.config.unroll, 7); /* the last row of the key */
    assert_int_equal(outcome.config.vec, 2);
    assert_note(&outcome, "tuned by line 8 of ");

    desc.rows = 100000; /* a row is for any number of rows */
    outcome = plan_with(made, &desc);
    assert_int_equal(outcome.config.unroll, 7);

    desc.group_size = 48;
    outcome = plan_with(made, &desc);
    assert_int_equal(outcome.config.unroll, 11);

    KNOB(desc.config, vec) = 1; /* with a forced knob no row is used */
    outcome = plan_with(made, &desc);
    assert_int_equal(outcome.config.vec, 1);
    assert_int_not_equal(outcome.config.unroll, 11);
    assert_no_file(&outcome);

    desc = usual_desc();
    desc.cols = 95;
    outcome = plan_with(made, &desc);
    assert_no_file(&outcome);
}

static void test_backward_rows_are_taken(void **state) {
    const struct state *const made = *state;
    const clnorm_device_info *const device = &made->fixture->device;
    write_rows(made, "rms_norm_backward f32 96: run_length=3\n");
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = 8;
    desc.cols = 96;
    desc.dx.dtype = CLNORM_F32;
    clnorm_context *context = NULL;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_context_create(made->fixture->cl, device->device, NULL, &context), 0);
    assert_int_equal(clnorm_norm_backward_plan_create(context, &desc, &plan), CLNORM_SUCCESS);
    assert_int_equal(chosen_knobs(plan).run_length, 3);
    clnorm_plan_destroy(plan);
    clnorm_context_destroy(context);
}

static void test_rows_of_other_operations_are_taken(void **state) {
    const struct state *const made = *state;
    const clnorm_device_info *const device = &made->fixture->device;
    write_rows(made, "softmax f32 96: iterations=3\ngelu_backward bf16 96: iterations=5\n"
                     "l2_norm f32 96: iterations=7\nl2_norm f32 32: iterations=9\n"
                     "quantize f32 96: iterations=11\nquantize f32 16: iterations=13\n");
    clnorm_softmax_desc softmax = CLNORM_SOFTMAX_DESC_INIT;
    clnorm_gelu_backward_desc gelu = CLNORM_GELU_BACKWARD_DESC_INIT;
    softmax.rows = gelu.rows = 8;
    softmax.cols = gelu.cols = 96;
    gelu.x.dtype = CLNORM_BF16;
    clnorm_l2_norm_desc l2 = CLNORM_L2_NORM_DESC_INIT;
    l2.rows = 8;
    l2.cols = 96;
    l2.group_size = 32;
    clnorm_quantize_desc quantize = CLNORM_QUANTIZE_DESC_INIT;
    quantize.rows = 8;
    quantize.cols = 96;
    quantize.q.scaling = CLNORM_SCALING_GROUP;
    quantize.q.scale_group = 16;
    clnorm_context *context = NULL;
    clnorm_plan *plans[4] = {NULL, NULL, NULL, NULL};
    char key[64];
    assert_int_equal(clnorm_context_create(made->fixture->cl, device->device, NULL, &context), 0);
    assert_int_equal(clnorm_softmax_forward_plan_create(context, &softmax, &plans[0]), CLNORM_SUCCESS);
    assert_int_equal(clnorm_gelu_backward_plan_create(context, &gelu, &plans[1]), CLNORM_SUCCESS);
    assert_int_equal(clnorm_l2_norm_plan_create(context, &l2, &plans[2]), CLNORM_SUCCESS);
    assert_int_equal(clnorm_quantize_plan_create(context, &quantize, &plans[3]), CLNORM_SUCCESS);
    assert_int_equal(chosen_knobs(plans[0]).iterations, 3);
    assert_int_equal(chosen_knobs(plans[1]).iterations, 5);
    assert_int_equal(chosen_knobs(plans[2]).iterations, 9);  /* of its segments */
    assert_int_equal(chosen_knobs(plans[3]).iterations, 13); /* of its scales */
    assert_int_equal(clnorm_plan_tuning_key(plans[1], key, sizeof key), strlen("gelu_backward bf16 96 few"));
    assert_string_equal(key, "gelu_backward bf16 96 few");
    assert_int_equal(clnorm_plan_tuning_key(NULL, key, sizeof key), 0);
    assert_string_equal(key, "");
    for (int i = 0; i < 4; i++)
        clnorm_plan_destroy(plans[i]);
    clnorm_context_destroy(context);
}

/* The knobs of a plan, whose tuning key must be this one. Destroys the plan. */
static struct cln_config take_knobs(clnorm_plan *plan, const char *key) {
    char text[64];
    (void)clnorm_plan_tuning_key(plan, text, sizeof text);
    assert_string_equal(text, key);
    const struct cln_config knobs = chosen_knobs(plan);
    clnorm_plan_destroy(plan);
    return knobs;
}

static uint32_t iterations_of_image(clnorm_context *context, uint64_t spatial, uint64_t groups, clnorm_layout layout,
                                    const char *key) {
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = 2;
    desc.cols = 32;
    desc.spatial = spatial;
    desc.groups = groups;
    desc.layout = layout;
    assert_int_equal(clnorm_group_norm_plan_create(context, &desc, &plan), CLNORM_SUCCESS);
    return take_knobs(plan, key).iterations;
}

/* A row of group norm is for images of one size, number of groups and layout. */
static void test_images_have_rows_of_their_own(void **state) {
    const struct state *const made = *state;
    const clnorm_device_info *const device = &made->fixture->device;
    write_rows(made, "group_norm f32 32x100/4: iterations=5\ngroup_norm f32 32x100/4 last few: iterations=7\n"
                     "group_norm f32 32x200/4: iterations=9\n");
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(made->fixture->cl, device->device, NULL, &context), 0);
    const clnorm_layout first = CLNORM_LAYOUT_FIRST, last = CLNORM_LAYOUT_LAST;
    assert_int_equal(iterations_of_image(context, 100, 4, first, "group_norm f32 32x100/4 few"), 5);
    assert_int_equal(iterations_of_image(context, 100, 4, last, "group_norm f32 32x100/4 last few"), 7);
    assert_int_equal(iterations_of_image(context, 200, 4, first, "group_norm f32 32x200/4 few"), 9);
    assert_int_not_equal(iterations_of_image(context, 100, 8, first, "group_norm f32 32x100/8 few"), 5);
    assert_int_not_equal(iterations_of_image(context, 200, 4, last, "group_norm f32 32x200/4 last few"), 9);
    clnorm_context_destroy(context);
}

struct mixed_case {
    clnorm_dtype x, y;
    uint32_t unroll; /* of the row */
    const char *key;
};

/* The unroll of the case's plan, whose tuning key must be that of the case. */
static uint32_t unroll_of(clnorm_context *context, const struct mixed_case *made) {
    clnorm_norm_desc desc = usual_desc();
    clnorm_plan *plan = NULL;
    desc.x.dtype = made->x;
    desc.y.dtype = made->y;
    if (made->x >= CLNORM_F8_E4M3)
        desc.x.scaling = CLNORM_SCALING_ROW;
    if (made->y >= CLNORM_F8_E4M3)
        desc.y.scaling = CLNORM_SCALING_ROW;
    assert_int_equal(clnorm_norm_forward_plan_create(context, &desc, &plan), CLNORM_SUCCESS);
    return take_knobs(plan, made->key).unroll;
}

/* A key's second dtype is that of a matrix with wider elements than x. A row without one matches any. A row that names the
 * dtype, or few rows, comes first. */
static void test_rows_of_two_dtypes(void **state) {
    const struct state *const made = *state;
    const clnorm_device_info *const device = &made->fixture->device;
    write_rows(made, "rms_norm bf16/f32 96: unroll=3\nrms_norm bf16/f32 96 few: unroll=5\nrms_norm bf16 96 few: unroll=7\n"
                     "rms_norm f8e4m3/bf16 96: unroll=9\nrms_norm f8e4m3 96 few: unroll=10\n"
                     "rms_norm f16 96: unroll=11\nrms_norm_quantized bf16 96: unroll=12\n"
                     "rms_norm f32 96: unroll=13\nrms_norm f32/bf16 96: unroll=14\n");
    static const struct mixed_case cases[] = {
        {CLNORM_BF16, CLNORM_F32, 5, "rms_norm bf16/f32 96 few"},
        {CLNORM_BF16, CLNORM_BF16, 7, "rms_norm bf16 96 few"},
        {CLNORM_BF16, CLNORM_F16, 7, "rms_norm bf16 96 few"},
        {CLNORM_F8_E4M3, CLNORM_BF16, 9, "rms_norm f8e4m3/bf16 96 few"},
        {CLNORM_F8_E4M3, CLNORM_F32, 10, "rms_norm f8e4m3/f32 96 few"},
        {CLNORM_F16, CLNORM_F32, 11, "rms_norm f16/f32 96 few"},
        {CLNORM_BF16, CLNORM_F8_E4M3, 12, "rms_norm_quantized bf16 96 few"},
        {CLNORM_F32, CLNORM_BF16, 13, "rms_norm f32 96 few"},
    };
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(made->fixture->cl, device->device, NULL, &context), CLNORM_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t unroll = unroll_of(context, &cases[i]);
        if (unroll != cases[i].unroll)
            fail_msg("%s: unroll is %u, expected %u", cases[i].key, unroll, cases[i].unroll);
    }
    clnorm_context_destroy(context);
}

/* A row that the device does not support leaves a note, and the error detail as it was. */
static void test_unsupported_rows_are_not_used(void **state) {
    const struct state *const made = *state;
    assert_int_equal(clnorm_context_create(NULL, NULL, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    char before[256];
    (void)snprintf(before, sizeof before, "%s", clnorm_error_detail());
    const clnorm_norm_desc desc = usual_desc();
    write_rows(made, "rms_norm f32 96: prefetch=none\n"); /* a knob of the backward */
    struct outcome outcome = plan_with(made, &desc);
    assert_note(&outcome, "is not used: desc.config.prefetch is none");
    write_rows(made, "rms_norm f32 96: lanes=1024,segments=1024\n");
    outcome = plan_with(made, &desc);
    assert_note(&outcome, "is not used: desc.config.lanes x segments is 1024 x 1024");
    assert_string_equal(clnorm_error_detail(), before);
    assert_int_equal(setenv("CLNORM_TUNING", "0", 1), 0);
    const struct outcome own = plan_with(made, &desc);
    assert_memory_equal(&outcome.config, &own.config, sizeof own.config);
    assert_no_file(&own);
}

static void test_other_files_are_not_used(void **state) {
    const struct state *const made = *state;
    const clnorm_device_info *const device = &made->fixture->device;
    char long_row[1200];
    (void)snprintf(long_row, sizeof long_row, "%*s", (int)sizeof long_row - 1, "");
    const struct {
        const char *device, *driver, *rows, *says;
    } cases[] = {
        {"another", device->driver, "", "line 3: expected \"device "},
        {device->name, "0.0", "", "line 5: expected \"driver "},
        {device->name, device->driver, "rms_norm f32 96 vec=1\n", "line 6: expected OPERATION"},
        {device->name, device->driver, "rms_norm f32 96: vec=x\n", "line 6: vec=x"},
        {device->name, device->driver, "rms_norm f32 96: unroll=7 keep=reread # 1 us\n", "line 6: unroll=7 keep=reread: "},
        {device->name, device->driver, "rms_norm f32 96: unroll=7\nrubbish\n", "line 7: expected OPERATION"},
        {device->name, device->driver, long_row, "too long"},
    };
    const clnorm_norm_desc desc = usual_desc();
    assert_int_equal(setenv("CLNORM_TUNING", "0", 1), 0);
    const struct outcome own = plan_with(made, &desc);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(made, cases[i].device, cases[i].driver, cases[i].rows);
        const struct outcome outcome = plan_with(made, &desc);
        assert_note(&outcome, cases[i].says);
        assert_memory_equal(&outcome.config, &own.config, sizeof own.config);
    }
    scratch_write(scratch_path(made->dir, "device.tuning"), "", 0);
    const struct outcome outcome = plan_with(made, &desc);
    assert_note(&outcome, "line 1: the head of the file ends here");
    static const char begun[] = "# a\n# b\n# c\nclnorm tuning 1\n";
    scratch_write(scratch_path(made->dir, "device.tuning"), begun, strlen(begun));
    const struct outcome second = plan_with(made, &desc);
    assert_note(&second, "line 4: the head of the file ends here");
}

/* A file of 100,000 rows is used. */
static void test_many_rows_are_read(void **state) {
    const struct state *const made = *state;
    enum { MANY = 100000 };
    write_rows(made, "");
    FILE *const file = fopen(scratch_path(made->dir, "device.tuning"), "a");
    assert_non_null(file);
    for (int i = 1; i <= MANY; i++)
        assert_true(fprintf(file, "rms_norm f32 %d: unroll=%d\n", i, i == 96 ? 3 : 5) > 0);
    assert_int_equal(fclose(file), 0);
    const clnorm_norm_desc desc = usual_desc();
    assert_int_equal(plan_with(made, &desc).config.unroll, 3);
}

/* A pipe, where opening would wait for a writer, a folder and a link to itself leave notes. A missing file leaves none. */
static void test_other_kinds_of_files_are_not_used(void **state) {
    const struct state *const made = *state;
    const clnorm_norm_desc desc = usual_desc();
    const char *const fifo = scratch_path(made->dir, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(setenv("CLNORM_TUNING", fifo, 1), 0);
    (void)alarm(60);
    struct outcome outcome = plan_with(made, &desc);
    (void)alarm(0);
    assert_note(&outcome, "fifo is not used: it is not a regular file");
    assert_int_equal(setenv("CLNORM_TUNING", made->dir, 1), 0);
    outcome = plan_with(made, &desc);
    assert_note(&outcome, "is not used: it is not a regular file");
    const char *const loop = scratch_path(made->dir, "loop");
    assert_int_equal(symlink(loop, loop), 0);
    assert_int_equal(setenv("CLNORM_TUNING", loop, 1), 0);
    outcome = plan_with(made, &desc);
    assert_note(&outcome, "loop is not used: Too many levels of symbolic links");
    assert_int_equal(setenv("CLNORM_TUNING", scratch_path(made->dir, "none"), 1), 0);
    outcome = plan_with(made, &desc);
    assert_no_file(&outcome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_taken),
        cmocka_unit_test(test_backward_rows_are_taken),
        cmocka_unit_test(test_rows_of_other_operations_are_taken),
        cmocka_unit_test(test_images_have_rows_of_their_own),
        cmocka_unit_test(test_rows_of_two_dtypes),
        cmocka_unit_test(test_unsupported_rows_are_not_used),
        cmocka_unit_test(test_other_files_are_not_used),
        cmocka_unit_test(test_many_rows_are_read),
        cmocka_unit_test(test_other_kinds_of_files_are_not_used),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
