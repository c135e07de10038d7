/* The version of OpenCL C that builds request, and what the library refuses because of drivers' defects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/check.h"
#include "operation/operations.h"
#include "program/spec.h"
#include "refusal.h"

/* Kernels are written for OpenCL C up to 3.0, which is requested of a later compiler too. */
static void later_languages_are_not_requested(void **state) {
    (void)state;
    static const struct {
        uint64_t device;
        const char *option;
    } languages[] = {{120, "-cl-std=CL1.2 "}, {200, "-cl-std=CL2.0 "}, {300, "-cl-std=CL3.0 "}, {310, "-cl-std=CL3.0 "}};
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        const struct cln_spec spec = {.family = CLN_NORM_FORWARD, .opencl_c = languages[i].device};
        char options[CLN_OPTIONS_CAPACITY];
        cln_spec_options(&spec, options);
        assert_int_equal(strncmp(options, languages[i].option, strlen(languages[i].option)), 0);
    }
}

/* The bound of registers is an option of NVIDIA's compiler, and a macro, as kernels then differ. */
static void registers_are_bounded_by_an_option(void **state) {
    (void)state;
    static const uint64_t most[] = {0, 168};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        const struct cln_spec spec = {.family = CLN_SOFTMAX, .opencl_c = 120, .most_registers = most[i]};
        char options[CLN_OPTIONS_CAPACITY];
        cln_spec_options(&spec, options);
        assert_int_equal(strstr(options, most[i] ? " -D MOST_REGISTERS=168" : " -D MOST_REGISTERS") != NULL, most[i] > 0);
        assert_int_equal(strstr(options, most[i] ? " -cl-nv-maxrregcount=168" : "maxrregcount") != NULL, most[i] > 0);
    }
}

/* PoCL 6.0 has no sub-group reductions in work-groups of 1 and 2; the message names the version. */
static void defects_are_refused_by_version(void **state) {
    (void)state;
    static const struct {
        clnorm_platform_family family;
        const char *driver;
        uint32_t lanes;
        bool refused;
    } cases[] = {{CLNORM_PLATFORM_POCL, "6.0+debian", 2, true},  {CLNORM_PLATFORM_POCL, "6.0+debian", 4, false},
                 {CLNORM_PLATFORM_POCL, "3.1+debian", 2, false}, {CLNORM_PLATFORM_POCL, "7.0", 2, false},
                 {CLNORM_PLATFORM_POCL, "unknown", 2, false},    {CLNORM_PLATFORM_OTHER, "6.0", 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_device_info device = {.family = cases[i].family, .subgroups = true};
        (void)snprintf(device.driver, sizeof device.driver, "%s", cases[i].driver);
        const struct cln_config config = {.lanes = cases[i].lanes, .segments = 1, .reduce = CLN_REDUCE_SUBGROUP};
        assert_int_equal(cln_check_reduce(&device, &config), cases[i].refused ? CLNORM_INVALID_VALUE : CLNORM_SUCCESS);
        if (cases[i].refused)
            assert_detail("PoCL 6.0");
    }
}

/* Operations that rusticl 22.3 computes wrong. The devices are made up. */
static void wrong_results_are_refused_by_version(void **state) {
    (void)state;
    static const struct {
        const char *driver;
        clnorm_status status;
    } cases[] = {{"22.3.6", CLNORM_UNSUPPORTED}, {"25.0.7-2", CLNORM_SUCCESS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_device_info device = {.family = CLNORM_PLATFORM_MESA, .name = "llvmpipe"};
        (void)snprintf(device.driver, sizeof device.driver, "%s", cases[i].driver);
        clnorm_quantize_desc quantize = CLNORM_QUANTIZE_DESC_INIT;
        clnorm_norm_backward_desc backward = CLNORM_NORM_BACKWARD_DESC_INIT;
        backward.cols = backward.group_size = 64;
        backward.dx.dtype = CLNORM_F32;
        backward.dropout = 0.5;
        backward.activation = CLNORM_ACTIVATION_SILU;
        assert_int_equal(cln_quantize.check(&device, &quantize), cases[i].status);
        if (cases[i].status)
            assert_detail("rusticl 22.3 computes quantize wrong");
        assert_int_equal(cln_norm_backward.check(&device, &backward), cases[i].status);
        if (cases[i].status)
            assert_detail("with dropout and an activation");
        backward.dropout = 0;
        assert_int_equal(cln_norm_backward.check(&device, &backward), CLNORM_SUCCESS);
    }
}

/* A CPU as rusticl reports it. */
static clnorm_device_info llvmpipe(const char *driver) {
    clnorm_device_info device = {.kind = CLNORM_DEVICE_CPU,
                                 .family = CLNORM_PLATFORM_MESA,
                                 .name = "llvmpipe",
                                 .compute_units = 2,
                                 .max_work_group_size = 64,
                                 .local_memory = 1 << 15};
    (void)snprintf(device.driver, sizeof device.driver, "%s", driver);
    return device;
}

/* Columns that are no multiple of 4 and strides that are odd leave vectors of 1 or 2. */
static void early_weights_are_refused_by_version(void **state) {
    (void)state;
    static const struct {
        const char *driver;
        uint64_t alignment;
        enum cln_weights weights;
        clnorm_status status;
    } cases[] = {{"22.3.6", 2, CLN_WEIGHTS_EARLY, CLNORM_INVALID_VALUE},
                 {"22.3.6", 4, CLN_WEIGHTS_EARLY, CLNORM_SUCCESS},
                 {"22.3.6", 2, CLN_WEIGHTS_LATE, CLNORM_SUCCESS},
                 {"22.3.6", 2, 0, CLNORM_SUCCESS},
                 {"25.0.7-2", 2, CLN_WEIGHTS_EARLY, CLNORM_SUCCESS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const clnorm_device_info device = llvmpipe(cases[i].driver);
        const struct cln_workload work = {.users = CLN_KNOBS_BACKWARD,
                                          .rows = 20,
                                          .groups = 1,
                                          .group_size = 32,
                                          .alignment = cases[i].alignment,
                                          .x_size = 4,
                                          .held_size = 4,
                                          .norm = CLNORM_RMS_NORM,
                                          .real_size = 4,
                                          .sums_rows = true};
        const struct cln_config forced = {
            .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_REGISTERS, .weights = (uint32_t)cases[i].weights};
        struct cln_config config;
        assert_int_equal(cln_config_choose(&device, &work, &forced, &config), cases[i].status);
        if (cases[i].status)
            assert_detail("desc.config.weights is early: rusticl 22.3");
        else if (cases[i].alignment == 2 && !cases[i].weights)
            assert_int_equal(config.weights, CLN_WEIGHTS_LATE);
    }
}

static void narrow_tiles_are_refused_by_version(void **state) {
    (void)state;
    static const struct {
        const char *driver;
        uint64_t alignment;
        clnorm_status status;
    } cases[] = {{"22.3.6", 1, CLNORM_UNSUPPORTED},
                 {"22.3.6", 2, CLNORM_UNSUPPORTED},
                 {"22.3.6", 16, CLNORM_SUCCESS},
                 {"25.0.7-2", 1, CLNORM_SUCCESS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const clnorm_device_info device = llvmpipe(cases[i].driver);
        const struct cln_workload work = {.users = CLN_KNOBS_QUANTIZE,
                                          .rows = 20,
                                          .groups = 1,
                                          .group_size = 192,
                                          .whole = 16,
                                          .alignment = cases[i].alignment,
                                          .x_size = 1,
                                          .held_size = 1,
                                          .norm = CLNORM_RMS_NORM,
                                          .real_size = 4};
        const struct cln_config automatic = {0};
        struct cln_config config;
        assert_int_equal(cln_norm_forward.choose(&device, &work, &automatic, &config), cases[i].status);
        if (cases[i].status)
            assert_detail("rusticl 22.3 computes an RMS norm from scales of groups");
    }
}

/* PoCL 6.0's compiler aborts the process where lanes have no whole vector. */
static void lanes_without_vectors_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *driver;
        uint32_t lanes;
        bool refused;
    } cases[] = {{"6.0+debian", 16, false}, {"6.0+debian", 32, true}, {"3.1+debian", 32, false}, {"7.0", 32, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_device_info device = {
            .kind = CLNORM_DEVICE_CPU, .family = CLNORM_PLATFORM_POCL, .max_work_group_size = 64, .local_memory = 1 << 15};
        (void)snprintf(device.driver, sizeof device.driver, "%s", cases[i].driver);
        const struct cln_workload work = {.rows = 3, .group_size = 67, .real_size = 4, .alignment = 4};
        const struct cln_config config = {.vec = 4,
                                          .lanes = cases[i].lanes,
                                          .segments = 1,
                                          .chunks = 1,
                                          .keep = CLN_KEEP_REREAD,
                                          .reduce = CLN_REDUCE_TREE};
        const clnorm_status status = cln_check_forward(&device, &work, &config);
        if (status != (cases[i].refused ? CLNORM_INVALID_VALUE : CLNORM_SUCCESS))
            fail_msg("%s, %u lanes: %s", cases[i].driver, (unsigned)cases[i].lanes, clnorm_error_detail());
        if (cases[i].refused)
            assert_detail("desc.config.lanes is 32: PoCL 6.0");
        struct cln_workload norm = work;
        norm.users = CLN_KNOBS_FORWARD;
        const bool shared = strstr(cases[i].driver, "6.0") != NULL; /* any shared lanes of a norm */
        assert_int_equal(cln_check_forward(&device, &norm, &config), shared ? CLNORM_INVALID_VALUE : CLNORM_SUCCESS);
        if (shared)
            assert_detail("PoCL 6.0 aborts on some norms");
        device.kind = CLNORM_DEVICE_GPU; /* of another compiler */
        assert_int_equal(cln_check_forward(&device, &norm, &config), CLNORM_SUCCESS);
    }
}

/* PoCL 6.0 makes kernels that never end of norms with an 8-bit output and several segments. */
static void segments_of_codes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *driver;
        clnorm_device_kind kind;
        bool y_scaled;
        uint32_t segments;
        bool refused;
    } cases[] = {
        {"6.0+debian", CLNORM_DEVICE_CPU, true, 2, true},   {"6.0+debian", CLNORM_DEVICE_CPU, true, 1, false},
        {"6.0+debian", CLNORM_DEVICE_CPU, false, 2, false}, {"6.0+debian", CLNORM_DEVICE_GPU, true, 2, false},
        {"3.1+debian", CLNORM_DEVICE_CPU, true, 2, false},  {"7.0", CLNORM_DEVICE_CPU, true, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_device_info device = {
            .kind = cases[i].kind, .family = CLNORM_PLATFORM_POCL, .max_work_group_size = 64, .local_memory = 1 << 15};
        (void)snprintf(device.driver, sizeof device.driver, "%s", cases[i].driver);
        const struct cln_workload work = {.users = CLN_KNOBS_FORWARD,
                                          .rows = 3,
                                          .groups = 1,
                                          .group_size = 64,
                                          .real_size = 4,
                                          .alignment = 4,
                                          .y_scaled = cases[i].y_scaled};
        const struct cln_config config = {.vec = 4,
                                          .lanes = 1,
                                          .segments = cases[i].segments,
                                          .chunks = 1,
                                          .keep = CLN_KEEP_REREAD,
                                          .reduce = CLN_REDUCE_TREE};
        assert_int_equal(cln_check_forward(&device, &work, &config),
                         cases[i].refused ? CLNORM_INVALID_VALUE : CLNORM_SUCCESS);
        if (cases[i].refused)
            assert_detail("desc.config.segments is 2: PoCL 6.0");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_without_vectors_are_refused),   cmocka_unit_test(segments_of_codes_are_refused),
        cmocka_unit_test(later_languages_are_not_requested),   cmocka_unit_test(registers_are_bounded_by_an_option),
        cmocka_unit_test(defects_are_refused_by_version),      cmocka_unit_test(wrong_results_are_refused_by_version),
        cmocka_unit_test(narrow_tiles_are_refused_by_version), cmocka_unit_test(early_weights_are_refused_by_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
