/* The arguments of a stage's kernels are set by name, in any order. Missing and wrong ones are refused by name. */
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
#include "refusal.h"

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

/* A plan of an x and a y in f32, [2, 8] with a stride of 12 elements. */
static clnorm_plan *make_plan(const struct fixture *fixture) {
    clnorm_plan *plan = NULL;
    assert_int_equal(cln_plan_create(fixture->context, &cln_gelu_forward, &plan), CLNORM_SUCCESS);
    plan->tensor[CLN_X] = plan->tensor[CLN_Y] = (struct cln_tensor){.element = 4, .span = 80, .vector = 4, .stride = 48};
    return plan;
}

static clnorm_status add(clnorm_plan *plan, const struct cln_parameter *parameters, const struct cln_argument *arguments) {
    const struct cln_kernel kernel = {&cln_source_gelu, "gelu_rows", parameters, false};
    const struct cln_stage_recipe recipe = {
        .kernel = &kernel, .spec = &spec, .arguments = arguments, .work = 16, .groups = 16, .items = 1};
    return cln_plan_add_stage(plan, &recipe);
}

static struct cln_argument out(void) {
    return cln_bind("out", (struct cln_binding){.role = CLN_Y});
}

/* Adds a stage with every argument, in another order than the parameters'. */
static clnorm_status add_right(clnorm_plan *plan) {
    const struct cln_argument arguments[] = {
        cln_integer("cols", 8), out(), cln_integer("blocks", 8), cln_integer("iterations", 1), {0}};
    return add(plan, gelu_parameters, arguments);
}

static void arguments_come_in_any_order(void **state) {
    clnorm_plan *plan = make_plan(*state);
    assert_int_equal(add_right(plan), CLNORM_SUCCESS);
    assert_int_equal(plan->stages, 1);
    const struct cln_stage *stage = &plan->stage[0];
    assert_int_equal(stage->tensors, 2); /* a forward has no dy */
    assert_int_equal(stage->tensor[0].binding.role, CLN_X);
    assert_int_equal(stage->tensor[0].index, 1);
    assert_int_equal(stage->tensor[1].binding.role, CLN_Y);
    assert_int_equal(stage->tensor[1].index, 4); /* after the offset and the stride of x */
    clnorm_plan_destroy(plan);
}

/* A list may include others, of which each may include more. */
static void arguments_come_from_included_lists(void **state) {
    const struct cln_argument inner[] = {cln_integer("blocks", 8), {0}};
    const struct cln_argument outer[] = {cln_integer("cols", 8), cln_include(inner), {0}};
    const struct cln_argument arguments[] = {cln_include(outer), out(), cln_integer("iterations", 1), {0}};
    clnorm_plan *plan = make_plan(*state);
    assert_int_equal(add(plan, gelu_parameters, arguments), CLNORM_SUCCESS);
    assert_int_equal(plan->stages, 1);
    clnorm_plan_destroy(plan);
}

/* A plan has room for CLN_STAGES kernels. */
static void too_many_stages_are_refused(void **state) {
    clnorm_plan *plan = make_plan(*state);
    for (unsigned i = 0; i < CLN_STAGES; i++)
        assert_int_equal(add_right(plan), CLNORM_SUCCESS);
    assert_int_equal(add_right(plan), CLNORM_INVALID_ARGUMENT);
    assert_detail("kernel gelu_rows is one too many: expected at most 8 of a plan");
    assert_int_equal(plan->stages, CLN_STAGES);
    clnorm_plan_destroy(plan);
}

/* The arguments are refused with this message, and no stage is added. */
static void assert_refused(const struct fixture *fixture, const struct cln_parameter *parameters,
                           const struct cln_argument *arguments, const char *message) {
    clnorm_plan *plan = make_plan(fixture);
    assert_int_equal(add(plan, parameters, arguments), CLNORM_INVALID_ARGUMENT);
    assert_string_equal(clnorm_error_detail(), message);
    assert_int_equal(plan->stages, 0);
    clnorm_plan_destroy(plan);
}

static void missing_arguments_are_named(void **state) {
    const struct cln_argument all[] = {out(), cln_integer("iterations", 1), cln_integer("blocks", 8),
                                       cln_integer("cols", 8)};
    static const char *const messages[] = {
        "kernel gelu_rows, parameter out: no argument is given, and the plan has no such tensor",
        "kernel gelu_rows, parameter iterations: no argument is given",
        "kernel gelu_rows, parameter blocks: no argument is given",
        "kernel gelu_rows, parameter cols: no argument is given",
    };
    enum { ALL = sizeof all / sizeof *all };
    for (size_t missing = 0; missing < ALL; missing++) {
        struct cln_argument arguments[ALL] = {{0}};
        for (size_t i = 0, given = 0; i < ALL; i++)
            if (i != missing)
                arguments[given++] = all[i];
        assert_refused(*state, gelu_parameters, arguments, messages[missing]);
    }
}

static void wrong_arguments_are_named(void **state) {
    const struct cln_argument unknown[] = {out(), cln_integer("columns", 8), {0}};
    assert_refused(*state, gelu_parameters, unknown,
                   "kernel gelu_rows, parameter columns: an argument is given, and the kernel has no such parameter");
    const struct cln_argument twice[] = {out(), cln_integer("cols", 8), cln_integer("cols", 9), {0}};
    assert_refused(*state, gelu_parameters, twice, "kernel gelu_rows, parameter cols: two arguments are given");
    const struct cln_argument included_unknown[] = {out(), cln_include(&unknown[1]), {0}};
    assert_refused(*state, gelu_parameters, included_unknown,
                   "kernel gelu_rows, parameter columns: an argument is given, and the kernel has no such parameter");
    const struct cln_argument cols[] = {cln_integer("cols", 8), {0}};
    const struct cln_argument included_twice[] = {out(), cln_include(cols), cln_integer("cols", 9), {0}};
    assert_refused(*state, gelu_parameters, included_twice, "kernel gelu_rows, parameter cols: two arguments are given");
    const struct cln_argument real[] = {out(), cln_real("iterations", 1), {0}};
    assert_refused(*state, gelu_parameters, real, "kernel gelu_rows, parameter iterations: expected an integer");
    const struct cln_argument number[] = {cln_integer("out", 1), {0}};
    assert_refused(*state, gelu_parameters, number,
                   "kernel gelu_rows, parameter out: the argument is a number, expected a tensor");
}

/* Wrong lists of parameters. */
static void wrong_parameters_are_named(void **state) {
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
        cmocka_unit_test(arguments_come_in_any_order), cmocka_unit_test(arguments_come_from_included_lists),
        cmocka_unit_test(too_many_stages_are_refused), cmocka_unit_test(missing_arguments_are_named),
        cmocka_unit_test(wrong_arguments_are_named),   cmocka_unit_test(wrong_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
