/* The arguments of a stage's kernels: they are set by name, in any order, and what does not fit is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "gelu/gelu_args.h"
#include "operation/operations.h"
#include "plan/stage.h"

static const struct cln_parameter gelu_parameters[] = CLN_PARAMETERS(GELU_ARGS);

static const struct cln_spec spec = {.family = CLN_GELU,
                                     .gelu = CLNORM_GELU_ERF,
                                     .x_dtype = CLNORM_F32,
                                     .y_dtype = CLNORM_F32,
                                     .vec = 1,
                                     .lanes = 1,
                                     .unroll = 1,
                                     .stores = CLN_STORES_CACHED,
                                     .isa = CLN_ISA_PORTABLE,
                                     .opencl_c = 120};

/* A plan of an x and a y in f32, [2, 8] with 12 elements from row to row. */
static clnorm_plan *make_plan(const struct fixture *fixture) {
    clnorm_plan *plan = NULL;
    assert_int_equal(cln_plan_create(fixture->context, &cln_gelu_forward, &plan), CLNORM_SUCCESS);
    plan->tensor[CLN_X] = plan->tensor[CLN_Y] = (struct cln_tensor){.element = 4, .span = 80, .vector = 4, .stride = 48};
    return plan;
}

static clnorm_status add(clnorm_plan *plan, const struct cln_parameter *parameters, const struct cln_argument *arguments) {
    const struct cln_stage_recipe recipe = {.source = &cln_source_gelu,
                                            .kernel = "gelu_rows",
                                            .spec = &spec,
                                            .parameters = parameters,
                                            .arguments = arguments,
                                            .work = 16,
                                            .groups = 16,
                                            .items = 1};
    return cln_plan_add_stage(plan, &recipe);
}

static struct cln_argument out(void) {
    return cln_bind("out", (struct cln_binding){.role = CLN_Y});
}

static void arguments_come_in_any_order(void **state) {
    const struct fixture *fixture = *state;
    const struct cln_argument arguments[] = {
        cln_integer("cols", 8), out(), cln_integer("blocks", 8), cln_integer("iterations", 1), {0}};
    clnorm_plan *plan = make_plan(fixture);
    assert_int_equal(add(plan, gelu_parameters, arguments), CLNORM_SUCCESS);
    assert_int_equal(plan->stages, 1);
    const struct cln_stage *stage = &plan->stage[0];
    assert_int_equal(stage->tensors, 2); /* a forward has no dy */
    assert_int_equal(stage->tensor[0].binding.role, CLN_X);
    assert_int_equal(stage->tensor[0].index, 1);
    assert_int_equal(stage->tensor[1].binding.role, CLN_Y);
    assert_int_equal(stage->tensor[1].index, 4); /* behind the offset and the stride of x */
    clnorm_plan_destroy(plan);
}

/* Refused, with the name and a sentence, and nothing added. */
static void assert_refused(const struct fixture *fixture, const struct cln_parameter *parameters,
                           const struct cln_argument *arguments, const char *sentence) {
    clnorm_plan *plan = make_plan(fixture);
    assert_int_equal(add(plan, parameters, arguments), CLNORM_INVALID_ARGUMENT);
    assert_string_equal(clnorm_error_detail(), sentence);
    assert_int_equal(plan->stages, 0);
    clnorm_plan_destroy(plan);
}

static void what_is_forgotten_is_named(void **state) {
    const struct cln_argument all[] = {out(), cln_integer("iterations", 1), cln_integer("blocks", 8),
                                       cln_integer("cols", 8)};
    static const char *const sentences[] = {
        "kernel gelu_rows, parameter out: no argument is given, and the plan has no such tensor",
        "kernel gelu_rows, parameter iterations: no argument is given",
        "kernel gelu_rows, parameter blocks: no argument is given",
        "kernel gelu_rows, parameter cols: no argument is given",
    };
    enum { ALL = sizeof all / sizeof *all };
    for (size_t forgotten = 0; forgotten < ALL; forgotten++) {
        struct cln_argument arguments[ALL] = {{0}};
        for (size_t i = 0, given = 0; i < ALL; i++)
            if (i != forgotten)
                arguments[given++] = all[i];
        assert_refused(*state, gelu_parameters, arguments, sentences[forgotten]);
    }
}

static void what_does_not_fit_is_named(void **state) {
    const struct cln_argument unknown[] = {out(), cln_integer("columns", 8), {0}};
    assert_refused(*state, gelu_parameters, unknown,
                   "kernel gelu_rows, parameter columns: an argument is given, and the kernel has no such parameter");
    const struct cln_argument twice[] = {out(), cln_integer("cols", 8), cln_integer("cols", 9), {0}};
    assert_refused(*state, gelu_parameters, twice, "kernel gelu_rows, parameter cols: two arguments are given");
    const struct cln_argument real[] = {out(), cln_real("iterations", 1), {0}};
    assert_refused(*state, gelu_parameters, real, "kernel gelu_rows, parameter iterations: expected an integer");
    const struct cln_argument number[] = {cln_integer("out", 1), {0}};
    assert_refused(*state, gelu_parameters, number,
                   "kernel gelu_rows, parameter out: the argument is a number, expected a tensor");
}

/* Of lists that are wrong themselves. */
static void a_bad_list_is_named(void **state) {
    const struct cln_argument none[] = {{0}}, integer[] = {cln_integer("eps", 1), {0}};
    const struct cln_parameter condition[] = {{"x", "GATE", "", CLN_PARAMETER_MATRIX}, {0}};
    assert_refused(*state, condition, none, "kernel gelu_rows, parameter x: its condition is no macro of the kernel");
    const struct cln_parameter real[] = {{"eps", "1", "real", CLN_PARAMETER_NUMBER}, {0}};
    assert_refused(*state, real, integer, "kernel gelu_rows, parameter eps: expected a real number");
    struct cln_parameter tensors[CLN_STAGE_TENSORS + 2] = {{0}}, seeds[CLN_STAGE_ARGUMENTS] = {{0}};
    for (size_t i = 0; i <= CLN_STAGE_TENSORS; i++)
        tensors[i] = (struct cln_parameter){"x", "1", "", CLN_PARAMETER_VECTOR};
    assert_refused(*state, tensors, none, "kernel gelu_rows, parameter x: there are too many tensors");
    for (size_t i = 0; i < CLN_STAGE_ARGUMENTS / 2; i++)
        seeds[i] = (struct cln_parameter){"seed", "1", "ulong", CLN_PARAMETER_SEED};
    assert_refused(*state, seeds, none, "kernel gelu_rows has more than 128 arguments");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_come_in_any_order),
        cmocka_unit_test(what_is_forgotten_is_named),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_bad_list_is_named),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
