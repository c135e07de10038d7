/* What the library asks of drivers, and what it refuses for what they do wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/check.h"
#include "program/spec.h"

/* A compiler may take a later OpenCL C than the kernels are written for. */
static void later_languages_are_not_asked_for(void **state) {
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

/* PoCL 6.0 has no sub-group reductions in work-groups of 1 and 2; the words name it. */
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
            assert_non_null(strstr(clnorm_error_detail(), "PoCL 6.0"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_languages_are_not_asked_for),
        cmocka_unit_test(defects_are_refused_by_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
