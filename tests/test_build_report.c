/* Reports that are read from the log of NVIDIA's compiler, as the context's log passes it on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "build_report.h"

static const char log_text[] =
    "program norm_backward.cl: ptxas info    : 0 bytes gmem\n"
    "program norm_backward.cl: ptxas info    : Compiling entry function 'norm_backward_unaligned' for 'sm_90'\n"
    "program norm_backward.cl: ptxas info    : Function properties for norm_backward_unaligned\n"
    "program norm_backward.cl:     64 bytes stack frame, 60 bytes spill stores, 56 bytes spill loads\n"
    "program norm_backward.cl: ptxas info    : Used 255 registers, used 1 barriers, 1040 bytes smem, 668 bytes cmem[0]\n"
    "program norm_backward.cl: ptxas info    : Compiling entry function 'norm_backward' for 'sm_90'\n"
    "program norm_backward.cl: ptxas info    : Function properties for norm_backward\n"
    "program norm_backward.cl: ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "program norm_backward.cl: ptxas info    : Used 96 registers, 668 bytes cmem[0]\n"
    "program norm_backward.cl: built in 180.00 ms, -cl-std=CL1.2\n"
    "program norm_backward_reduce.cl: ptxas info    : Compiling entry function 'norm_backward_reduce' for 'sm_90'\n";

static void assert_report(const char *log, const char *kernel, const struct build_report *expected) {
    const struct build_report report = build_report_read(log, kernel);
    assert_int_equal(report.registers, expected->registers);
    assert_int_equal(report.stack, expected->stack);
    assert_int_equal(report.spill_stores, expected->spill_stores);
    assert_int_equal(report.spill_loads, expected->spill_loads);
}

static const struct build_report nothing = {NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED};

static void kernels_are_told_apart(void **state) {
    (void)state;
    assert_report(log_text, "norm_backward_unaligned", &(struct build_report){255, 64, 60, 56});
    assert_report(log_text, "norm_backward", &(struct build_report){96, 0, 0, 0});
}

static void absent_numbers_are_not_told(void **state) {
    (void)state;
    assert_report(log_text, "norm", &nothing);
    assert_report(log_text, "norm_backward_reduce", &nothing);
    assert_report("", "norm_backward", &nothing);
    assert_report("Compiling entry function 'f'", "f", &nothing);
    assert_report("Compiling entry function 'f' Used registers,  bytes stack frame", "f", &nothing);
}

/* A later build of the same program comes later in the log. */
static void the_last_build_counts(void **state) {
    (void)state;
    assert_report("Compiling entry function 'f'\nUsed 8 registers\nCompiling entry function 'f'\nUsed 16 registers", "f",
                  &(struct build_report){16, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_told_apart),
        cmocka_unit_test(absent_numbers_are_not_told),
        cmocka_unit_test(the_last_build_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
