/* The configs that the model chooses for narrow rows and for a few wide ones, on a GPU that runs 32 work-items in step. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "clnorm/clnorm.h"
#include "config/config.h"
#include "made_up_devices.h"

static struct cln_workload workload_of(enum cln_knob_users users, uint64_t rows, uint64_t columns, uint64_t x_size,
                                       clnorm_norm norm) {
    return (struct cln_workload){
        .rows = rows,
        .groups = 1,
        .group_size = columns,
        .alignment = cln_lowest_bit(columns),
        .lead_vec = 16 / x_size,
        .x_size = x_size,
        .held_size = x_size,
        .norm = norm,
        .users = users,
        .real_size = 4,
        .local_size = x_size,
        .sums_rows = users == CLN_KNOBS_BACKWARD,
        .both_sums = users == CLN_KNOBS_BACKWARD && norm == CLNORM_LAYER_NORM,
    };
}

static struct cln_config choice_of(const struct cln_workload *work) {
    const clnorm_device_info device = made_up_device(MADE_UP_H200);
    const struct cln_config automatic = {0};
    struct cln_config config;
    if (cln_config_choose(&device, work, &automatic, &config) != CLNORM_SUCCESS)
        fail_msg("%" PRIu64 " columns: %s", work->group_size, clnorm_error_detail());
    return config;
}

static struct cln_config choice_of_rows(enum cln_knob_users users, uint64_t rows, uint64_t columns, uint64_t x_size,
                                        clnorm_norm norm) {
    const struct cln_workload work = workload_of(users, rows, columns, x_size, norm);
    return choice_of(&work);
}

/* The choice for 64 MiB of x. */
static struct cln_config choice(enum cln_knob_users users, uint64_t columns, uint64_t x_size, clnorm_norm norm) {
    return choice_of_rows(users, ((uint64_t)64 << 20) / (columns * x_size), columns, x_size, norm);
}

/* Rows of up to 64 bytes lie in the lines of their neighbours, so that few lanes read them as fast as many would. A
 * gradient has no lane without a vector, and less than half of a norm's lanes have none. */
static void lanes_are_as_few_as_columns(void **state) {
    static const enum cln_knob_users users[] = {CLN_KNOBS_FORWARD, CLN_KNOBS_BACKWARD};
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 1; columns * x_size <= 64; columns++)
            for (unsigned i = 0; i < 4; i++) {
                const struct cln_config c =
                    choice(users[i / 2], columns, x_size, i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM);
                const bool gradient = i / 2, idle = (uint64_t)c.lanes * c.vec > columns;
                if (c.lanes > 1 && (gradient ? idle : (uint64_t)c.lanes * c.vec >= 2 * columns))
                    fail_msg("%s of %" PRIu64 " columns of %" PRIu64 " bytes: vec %" PRIu32 ", lanes %" PRIu32,
                             gradient ? "gradient" : "norm", columns, x_size, c.vec, c.lanes);
            }
}

/* A compute unit starts one work-group after the other, and reads more than 500 bytes of x between two starts. */
static void work_groups_are_worth_their_start(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 1; columns <= 64; columns++) {
            const struct cln_config c = choice(CLN_KNOBS_FORWARD, columns, x_size, CLNORM_LAYER_NORM);
            if (c.segments * columns * x_size < 500 && c.lanes * c.segments < 256)
                fail_msg("%" PRIu64 " columns of %" PRIu64 " bytes: lanes %" PRIu32 ", segments %" PRIu32, columns, x_size,
                         c.lanes, c.segments);
        }
}

/* Rows of a few vectors that begin anywhere would mostly have partly filled ones. */
static void few_vectors_begin_at_their_size(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 1; columns * x_size < 128; columns++) {
            const struct cln_config c = choice(CLN_KNOBS_FORWARD, columns, x_size, CLNORM_LAYER_NORM);
            if (columns % c.vec)
                fail_msg("%" PRIu64 " columns of %" PRIu64 " bytes: vec %" PRIu32, columns, x_size, c.vec);
        }
}

/* A work-item's own instructions take as long as those of many elements, so that it has several. */
static void work_items_have_several_elements(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 1; columns <= 96; columns++) {
            const struct cln_config c = choice(CLN_KNOBS_FORWARD, columns, x_size, CLNORM_LAYER_NORM);
            if (c.vec == 1 && c.lanes > 1 && 2 * columns <= 5 * (uint64_t)c.lanes)
                fail_msg("%" PRIu64 " columns of %" PRIu64 " bytes: lanes %" PRIu32, columns, x_size, c.lanes);
        }
}

/* A work-group of its own takes longer for a row of 256 KiB than a second launch, wherever the row begins. */
static void few_wide_rows_are_shared(void **state) {
    (void)state;
    for (uint64_t columns = 65535; columns <= 65537; columns++)
        for (uint64_t rows = 1; rows <= 32; rows *= 2) {
            const struct cln_config c = choice_of_rows(CLN_KNOBS_FORWARD, rows, columns, 4, CLNORM_LAYER_NORM);
            if (c.chunks < 4)
                fail_msg("%" PRIu64 " rows of %" PRIu64 " columns: chunks %" PRIu32, rows, columns, c.chunks);
        }
    assert_int_equal(choice_of_rows(CLN_KNOBS_FORWARD, 8, 28672, 4, CLNORM_LAYER_NORM).chunks, 1);
    assert_int_equal(choice_of_rows(CLN_KNOBS_FORWARD, 128, 65535, 4, CLNORM_LAYER_NORM).chunks, 1);
}

/* Gradients of few wide rows are whole as far as 512 lanes can take them, with a work-group each. */
static void gradients_of_few_wide_rows_are_whole(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 8192; columns <= 28672; columns += 4096) {
            const struct cln_config c =
                choice_of_rows(CLN_KNOBS_BACKWARD, (8 << 20) / x_size / columns, columns, x_size, CLNORM_LAYER_NORM);
            if (c.tile != columns || c.accumulator != CLN_ACCUMULATOR_COLUMNS || c.lanes > 512)
                fail_msg("%" PRIu64 " columns, %" PRIu64 " bytes: tile %" PRIu32 ", lanes %" PRIu32, columns, x_size,
                         c.tile, c.lanes);
        }
}

/* Gradients of rows that begin anywhere within vectors are not shared out to lanes that run in step with those of other
 * rows. */
static void partly_filled_vectors_have_whole_warps(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 65; columns <= 511; columns += 2) {
            const struct cln_config c = choice(CLN_KNOBS_BACKWARD, columns, x_size, CLNORM_LAYER_NORM);
            if (c.vec > 1 && c.lanes < 32)
                fail_msg("%" PRIu64 " columns, %" PRIu64 " bytes: vec %" PRIu32 ", lanes %" PRIu32, columns, x_size, c.vec,
                         c.lanes);
        }
}

/* A lane waits for a gate's z once for every four vectors, unless it loads it together with x: three times at most. */
static void a_late_gate_is_waited_for_seldom(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (uint64_t columns = 1024; columns <= 16384; columns += 512) {
            struct cln_workload work =
                workload_of(CLN_KNOBS_FORWARD, ((uint64_t)64 << 20) / (columns * x_size), columns, x_size, CLNORM_RMS_NORM);
            work.kind = CLN_KIND_GATED;
            const struct cln_config c = choice_of(&work);
            const uint64_t vectors = cln_divide_up(columns, (uint64_t)c.vec * c.lanes);
            if (c.weights != CLN_WEIGHTS_EARLY && vectors > 12)
                fail_msg("%" PRIu64 " columns of %" PRIu64 " bytes: %" PRIu64 " vectors a lane", columns, x_size, vectors);
        }
}

/* Norms of 2-byte elements whose columns share weights. These come early. Vectors are narrower than the widest where those
 * leave lanes without one. */
static void found_weights_come_early(void **state) {
    (void)state;
    static const struct { uint64_t columns, sharers, vec; } rows[] = {{72, 36, 2}, {98, 49, 2}, {32, 16, 8}, {144, 36, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cln_workload work = workload_of(CLN_KNOBS_FORWARD, 100000, rows[i].columns, 2, CLNORM_LAYER_NORM);
        work.lead_vec = 0;
        work.columns_of_weight = rows[i].sharers;
        const struct cln_config c = choice_of(&work);
        assert_int_equal(c.weights, CLN_WEIGHTS_EARLY);
        assert_int_equal(c.vec, rows[i].vec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_are_as_few_as_columns),
        cmocka_unit_test(work_groups_are_worth_their_start),
        cmocka_unit_test(few_vectors_begin_at_their_size),
        cmocka_unit_test(work_items_have_several_elements),
        cmocka_unit_test(few_wide_rows_are_shared),
        cmocka_unit_test(gradients_of_few_wide_rows_are_whole),
        cmocka_unit_test(partly_filled_vectors_have_whole_warps),
        cmocka_unit_test(a_late_gate_is_waited_for_seldom),
        cmocka_unit_test(found_weights_come_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
