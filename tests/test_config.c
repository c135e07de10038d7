/* What the library chooses by itself is never what it refuses, on whatever GPU: small ones and large ones, which no test
 * machine has. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"
#include "config.h"

static const clnorm_platform_family families[] = {CLNORM_PLATFORM_NVIDIA, CLNORM_PLATFORM_OTHER};
static const uint32_t units[] = {1, 16, 40, 64, 108, 132, 1000};
static const uint64_t rows[] = {1, 64, 4096, 1000000};
static const uint64_t cols[] = {1, 256, 1024, 4096, 8192, 16384, 20000, 65536, 131072, 262144, 1048576};

static clnorm_device_info gpu_of(clnorm_platform_family family, uint32_t compute_units) {
    return (clnorm_device_info){
        .kind = CLNORM_DEVICE_GPU,
        .family = family,
        .name = "a GPU",
        .compute_units = compute_units,
        .max_work_group_size = 1024,
        .local_memory = 163 << 10,
        .compute_capability = family == CLNORM_PLATFORM_NVIDIA ? 80 : 0,
        .device_fences = true,
        .opencl_c_version = 300,
    };
}

typedef clnorm_status (*chooser)(const clnorm_device_info *, const struct cln_workload *, const clnorm_config *,
                                 clnorm_config *);

/* Every family, number of compute units and shape, for a workload whose other fields are set. */
static void choose_everywhere(chooser choose, struct cln_workload work) {
    const clnorm_config automatic = clnorm_config_automatic();
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (size_t u = 0; u < sizeof units / sizeof *units; u++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                for (size_t j = 0; j < sizeof cols / sizeof *cols; j++) {
                    const clnorm_device_info device = gpu_of(families[f], units[u]);
                    clnorm_config config;
                    work.rows = rows[i];
                    work.group_size = cols[j];
                    work.alignment = cols[j] & -cols[j];
                    if (choose(&device, &work, &automatic, &config) != CLNORM_SUCCESS)
                        fail_msg("%" PRIu32 " units, %" PRIu64 "x%" PRIu64 ", %" PRIu64 " bytes: %s", units[u], rows[i],
                                 cols[j], work.x_size, clnorm_error_detail());
                }
}

static struct cln_workload workload_of(uint64_t x_size) {
    return (struct cln_workload){.groups = 1,
                                 .x_size = x_size,
                                 .held_size = x_size,
                                 .shelf_size = x_size,
                                 .norm = CLNORM_LAYER_NORM,
                                 .real_size = sizeof(float)};
}

static void forward_choices_are_accepted(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (int of = CLN_WORK_NORM; of <= CLN_WORK_SOFTMAX_BACKWARD; of++)
            for (unsigned options = 0; options < 8; options++) {
                struct cln_workload work = workload_of(x_size);
                work.work = (enum cln_work)of;
                work.splits = of < CLN_WORK_SOFTMAX;
                work.norm = options & 1 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
                work.groups = options & 2 ? 2 : 1;
                work.y_scaled = options & 4;
                choose_everywhere(cln_config_choose, work);
            }
}

static void backward_choices_are_accepted(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (unsigned options = 0; options < 32; options++) {
            struct cln_workload work = workload_of(x_size);
            work.locked = options & 1;
            work.gated = options & 2;
            work.both_sums = options & 4;
            work.of_8_bits = options & 8;
            work.sums_rows = work.both_sums || options & 16;
            choose_everywhere(cln_config_choose_backward, work);
        }
}

/* By the backward where the work has sums over rows, else by the forward. */
static clnorm_config chosen(const clnorm_device_info *device, const struct cln_workload *work,
                            const clnorm_config *forced) {
    const bool backward = work->sums_rows;
    clnorm_config config = clnorm_config_automatic();
    if ((backward ? cln_config_choose_backward : cln_config_choose)(device, work, forced, &config) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    return config;
}

static struct cln_workload many_rows_of(uint64_t x_size, uint64_t columns) {
    struct cln_workload work = workload_of(x_size);
    work.rows = 4096;
    work.group_size = columns;
    work.alignment = columns & -columns;
    return work;
}

/* What was measured with prefetch has it where it is heeded and not forbidden, and is the same but for that. */
static void tuned_rows_are_asked_for(void **state) {
    (void)state;
    const clnorm_config automatic = clnorm_config_automatic();
    const clnorm_config none = {.prefetch = CLNORM_PREFETCH_NONE}, portable = {.isa = CLNORM_ISA_PORTABLE};
    clnorm_device_info device = gpu_of(CLNORM_PLATFORM_NVIDIA, 132);
    struct cln_workload works[] = {many_rows_of(2, 65536), many_rows_of(2, 65536), many_rows_of(2, 1024)};
    works[1].work = CLN_WORK_GATED;
    works[1].norm = CLNORM_RMS_NORM;
    works[2].sums_rows = true;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const clnorm_config asks = chosen(&device, &works[i], &automatic);
        clnorm_config does_not = chosen(&device, &works[i], &none);
        assert_int_equal(asks.prefetch, CLNORM_PREFETCH_NEXT);
        assert_int_equal(asks.asked, i == 1 ? 2 : 0);
        assert_int_equal(does_not.prefetch, CLNORM_PREFETCH_NONE);
        does_not.prefetch = asks.prefetch;
        does_not.asked = asks.asked;
        assert_memory_equal(&does_not, &asks, sizeof asks);
        assert_int_equal(chosen(&device, &works[i], &portable).prefetch, CLNORM_PREFETCH_NONE);
    }
    device.local_memory = 100 << 10;
    assert_int_equal(chosen(&device, &works[0], &automatic).prefetch, CLNORM_PREFETCH_NONE);
}

/* A forced prefetch has what is not forced suit it, and is refused where there is none. */
static void prefetch_is_of_whole_rows(void **state) {
    (void)state;
    const clnorm_device_info device = gpu_of(CLNORM_PLATFORM_NVIDIA, 132);
    const clnorm_config next = {.prefetch = CLNORM_PREFETCH_NEXT};
    struct cln_workload wide = many_rows_of(4, 65536), narrow = many_rows_of(4, 64);
    wide.rows = 16;
    wide.splits = true;
    assert_int_equal(chosen(&device, &wide, &next).chunks, 1);
    assert_int_equal(chosen(&device, &narrow, &next).segments, 1);
    struct cln_workload without[] = {wide, wide, wide};
    without[0].groups = 2;
    without[1].y_scaled = true;
    without[2].work = CLN_WORK_SOFTMAX;
    without[2].shelf_size = 0;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        clnorm_config config;
        assert_int_equal(cln_config_choose(&device, &without[i], &next, &config), CLNORM_INVALID_VALUE);
        assert_non_null(strstr(clnorm_error_detail(), "desc.config.prefetch is 2"));
    }
}

/* By its name, whatever its value. */
static void foreign_knobs_are_refused(void **state) {
    (void)state;
    static const struct {
        chooser choose;
        const char *knobs[15];
    } operations[] = {
        {cln_config_choose, {"tile=64", "gather=local", "fetch=in_turn", "chunks=1", "sums=before", "walkers=1"}},
        {cln_config_choose_backward, {"registers=64", "shelved=1", "asked=1"}},
        {cln_config_choose_elements,
         {"segments=1", "keep=reread", "reduce=tree", "weights=late", "tile=64", "gather=local", "fetch=in_turn",
          "chunks=1", "sums=before", "walkers=1", "prefetch=none", "registers=64", "shelved=1", "asked=1"}},
    };
    const clnorm_device_info device = gpu_of(CLNORM_PLATFORM_NVIDIA, 132);
    const struct cln_workload work = many_rows_of(4, 1024); /* which is not split into chunks */
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (const char *const *knob = operations[i].knobs; *knob; knob++) {
            clnorm_config forced, config;
            char says[64];
            (void)snprintf(says, sizeof says, "desc.config.%.*s is", (int)strcspn(*knob, "="), *knob);
            assert_int_equal(clnorm_config_parse(*knob, &forced), CLNORM_SUCCESS);
            assert_int_equal(operations[i].choose(&device, &work, &forced, &config), CLNORM_INVALID_VALUE);
            if (!strstr(clnorm_error_detail(), says))
                fail_msg("%s: \"%s\"", *knob, clnorm_error_detail());
        }
}

/* Where local memory is small, forced columns take as many lanes as it has room for. */
static void columns_fit_into_local_memory(void **state) {
    (void)state;
    clnorm_device_info device = gpu_of(CLNORM_PLATFORM_NVIDIA, 40);
    device.local_memory = 48 << 10;
    const clnorm_config forced = {.gather = CLNORM_GATHER_COLUMNS};
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            struct cln_workload work = workload_of(x_size);
            clnorm_config config;
            work.rows = 64;
            work.group_size = cols[i];
            work.alignment = cols[i] & -cols[i];
            work.sums_rows = true;
            if (cln_config_choose_backward(&device, &work, &forced, &config) != CLNORM_SUCCESS)
                fail_msg("%" PRIu64 " columns, %" PRIu64 " bytes: %s", cols[i], x_size, clnorm_error_detail());
        }
}

/* However many rounds are best for many rows, few rows keep as many work-groups busy as they can. */
static void few_rows_are_for_many(void **state) {
    (void)state;
    const clnorm_device_info device = gpu_of(CLNORM_PLATFORM_NVIDIA, 132);
    const clnorm_config automatic = clnorm_config_automatic();
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            struct cln_workload work = workload_of(x_size);
            clnorm_config config;
            work.group_size = cols[i];
            work.alignment = cols[i] & -cols[i];
            for (work.rows = 1; work.rows <= device.compute_units; work.rows++) {
                assert_int_equal(cln_config_choose_backward(&device, &work, &automatic, &config), CLNORM_SUCCESS);
                if (config.tile == cols[i]) /* tiles take more work-groups than the device has room for */
                    assert_int_equal(config.rounds, 1);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_choices_are_accepted), cmocka_unit_test(backward_choices_are_accepted),
        cmocka_unit_test(tuned_rows_are_asked_for),     cmocka_unit_test(prefetch_is_of_whole_rows),
        cmocka_unit_test(foreign_knobs_are_refused),    cmocka_unit_test(columns_fit_into_local_memory),
        cmocka_unit_test(few_rows_are_for_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
