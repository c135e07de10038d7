#include "plan/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "program/program.h"

struct cln_argument cln_bind(const char *name, struct cln_binding tensor) {
    return (struct cln_argument){.name = name, .kind = CLN_ARGUMENT_TENSOR, .tensor = tensor};
}

struct cln_argument cln_bind_part(const char *name, struct cln_binding part, uint64_t stride) {
    return (struct cln_argument){.name = name, .kind = CLN_ARGUMENT_TENSOR, .tensor = part, .integer = stride};
}

struct cln_argument cln_integer(const char *name, uint64_t integer) {
    return (struct cln_argument){.name = name, .kind = CLN_ARGUMENT_INTEGER, .integer = integer};
}

struct cln_argument cln_real(const char *name, double real) {
    return (struct cln_argument){.name = name, .kind = CLN_ARGUMENT_REAL, .real = real};
}

struct cln_argument cln_include(const struct cln_argument *list) {
    return (struct cln_argument){.name = "", .kind = CLN_ARGUMENT_LIST, .list = list};
}

/* The arguments of a kernel in the order of its parameters, as clSetKernelArg takes them. Tensors are set at each
 * enqueue. */
struct settings {
    struct setting {
        size_t size;
        union {
            cl_mem mem;
            cl_ulong integer;
            cl_float single;
            cl_double number;
        } value;
    } setting[CLN_STAGE_ARGUMENTS];
    cl_uint count;
};

/* A stage under construction, and its settings. */
struct assembly {
    clnorm_plan *plan;
    const struct cln_stage_recipe *recipe;
    struct cln_stage *stage;
    struct settings settings;
};

static clnorm_status append(struct assembly *assembly, struct setting setting) {
    struct settings *const settings = &assembly->settings;
    if (settings->count == CLN_STAGE_ARGUMENTS)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "kernel %s has more than %d arguments", assembly->recipe->kernel->name,
                        CLN_STAGE_ARGUMENTS);
    settings->setting[settings->count++] = setting;
    return CLNORM_SUCCESS;
}

static clnorm_status append_integer(struct assembly *assembly, uint64_t integer) {
    return append(assembly, (struct setting){sizeof(cl_ulong), {.integer = integer}});
}

static clnorm_status refuse(const struct assembly *assembly, const char *name, const char *what) {
    return cln_fail(CLNORM_INVALID_ARGUMENT, "kernel %s, parameter %s: %s", assembly->recipe->kernel->name, name, what);
}

/* The first argument with a name, in a list or those that it includes; NULL: there is none. */
static const struct cln_argument *find_argument(const struct cln_argument *list, const char *name) {
    const struct cln_argument *found = NULL;
    for (; list->name && !found; list++)
        if (list->kind == CLN_ARGUMENT_LIST)
            found = find_argument(list->list, name);
        else if (strcmp(list->name, name) == 0)
            found = list;
    return found;
}

static bool has_parameter(const struct cln_parameter *parameters, const char *name) {
    while (parameters->name && strcmp(parameters->name, name) != 0)
        parameters++;
    return parameters->name != NULL;
}

/* Adds the outer dimensions of a tensor's rows to the build options and to the kernel's arguments: see
 * cl/common/outer.h. Past 2^64 numbers wrap around, as they do in the kernel. */
static clnorm_status append_outer(struct assembly *assembly, const char *name, const struct cln_tensor *tensor) {
    const clnorm_dim *const dims = tensor->dims;
    int outer = 0;
    clnorm_status status = CLNORM_SUCCESS;
    uint64_t period = 1;
    for (int i = 1; i < CLNORM_OUTER_DIMS && dims[i].size && !status; i++) {
        period *= dims[i - 1].size;
        const uint64_t jump = dims[i].stride / tensor->element - dims[i - 1].size * (dims[i - 1].stride / tensor->element);
        status = append_integer(assembly, period);
        if (!status)
            status = append_integer(assembly, jump);
        outer = i;
    }
    if (!outer)
        return status;
    char *const options = assembly->stage->options;
    const size_t length = strlen(options);
    const char *const count = strstr(options, " -D ROW_T=")             ? ""
                              : period * dims[outer].size > CL_UINT_MAX ? " -D ROW_T=ulong"
                                                                        : " -D ROW_T=uint";
    (void)snprintf(options + length, CLN_OPTIONS_CAPACITY - length, " -D OUTER_%s=%d%s", name, outer, count);
    return status;
}

static clnorm_status append_tensor(struct assembly *assembly, const struct cln_parameter *parameter,
                                   const struct cln_argument *argument) {
    const struct cln_binding by_name = {.role = cln_role_named(parameter->name)};
    if (argument && argument->kind != CLN_ARGUMENT_TENSOR)
        return refuse(assembly, parameter->name, "the argument is a number, expected a tensor");
    if (!argument && (by_name.role == CLN_ROLES || !assembly->plan->tensor[by_name.role].element))
        return refuse(assembly, parameter->name, "no argument is given, and the plan has no such tensor");
    struct cln_stage *const stage = assembly->stage;
    if (stage->tensors == CLN_STAGE_TENSORS)
        return refuse(assembly, parameter->name, "there are too many tensors");
    const struct cln_binding binding = argument ? argument->tensor : by_name;
    struct cln_tensor *const tensor = &assembly->plan->tensor[binding.role];
    const bool is_const = strncmp(parameter->type, "const ", strlen("const ")) == 0;
    *(is_const ? &tensor->read : &tensor->written) = true;
    stage->tensor[stage->tensors++] = (struct cln_bound){binding, assembly->settings.count};
    clnorm_status status = append(assembly, (struct setting){sizeof(cl_mem), {.mem = NULL}});
    if (!status)
        status = append_integer(assembly, 0);
    if (status || parameter->kind == CLN_PARAMETER_VECTOR)
        return status;
    const uint64_t stride = tensor->element ? tensor->stride / tensor->element : 0;
    status = append_integer(assembly, argument && argument->integer ? argument->integer : stride);
    return status || parameter->kind != CLN_PARAMETER_ROWS ? status : append_outer(assembly, parameter->name, tensor);
}

static clnorm_status append_number(struct assembly *assembly, const struct cln_parameter *parameter,
                                   const struct cln_argument *argument) {
    const bool is_real = strcmp(parameter->type, "real") == 0;
    if (!argument)
        return refuse(assembly, parameter->name, "no argument is given");
    if (argument->kind != (is_real ? CLN_ARGUMENT_REAL : CLN_ARGUMENT_INTEGER))
        return refuse(assembly, parameter->name, is_real ? "expected a real number" : "expected an integer");
    if (!is_real)
        return append_integer(assembly, argument->integer);
    if (assembly->recipe->spec->x_dtype == CLNORM_F64)
        return append(assembly, (struct setting){sizeof(cl_double), {.number = argument->real}});
    return append(assembly, (struct setting){sizeof(cl_float), {.single = (cl_float)argument->real}});
}

static clnorm_status append_seed(struct assembly *assembly) {
    assembly->stage->seed = assembly->settings.count;
    const clnorm_status status = append_integer(assembly, 0);
    return status ? status : append_integer(assembly, 0);
}

static clnorm_status append_launch(struct assembly *assembly) {
    assembly->stage->launch = assembly->settings.count;
    return append_integer(assembly, 0);
}

static clnorm_status append_parameter(struct assembly *assembly, const struct cln_parameter *parameter) {
    const struct cln_stage_recipe *const recipe = assembly->recipe;
    uint64_t present = 1;
    if (strcmp(parameter->condition, "1") != 0 && !cln_spec_macro(recipe->spec, parameter->condition, &present))
        return refuse(assembly, parameter->name, "its condition is no macro of the kernel");
    if (!present)
        return CLNORM_SUCCESS;
    const struct cln_argument *const argument = find_argument(recipe->arguments, parameter->name);
    switch (parameter->kind) {
    case CLN_PARAMETER_NUMBER:
        return append_number(assembly, parameter, argument);
    case CLN_PARAMETER_SEED:
        return append_seed(assembly);
    case CLN_PARAMETER_LAUNCH:
        return append_launch(assembly);
    default:
        return append_tensor(assembly, parameter, argument);
    }
}

/* Refuses arguments without a parameter, and second ones for the same parameter. */
static clnorm_status check_arguments(const struct assembly *assembly, const struct cln_argument *list) {
    const struct cln_stage_recipe *const recipe = assembly->recipe;
    clnorm_status status = CLNORM_SUCCESS;
    for (; list->name && !status; list++)
        if (list->kind == CLN_ARGUMENT_LIST)
            status = check_arguments(assembly, list->list);
        else if (!has_parameter(recipe->kernel->parameters, list->name))
            status = refuse(assembly, list->name, "an argument is given, and the kernel has no such parameter");
        else if (find_argument(recipe->arguments, list->name) != list)
            status = refuse(assembly, list->name, "two arguments are given");
    return status;
}

static clnorm_status append_parameters(struct assembly *assembly) {
    const struct cln_stage_recipe *const recipe = assembly->recipe;
    clnorm_status status = check_arguments(assembly, recipe->arguments);
    if (!status)
        status = append_integer(assembly, recipe->work);
    for (const struct cln_parameter *parameter = recipe->kernel->parameters; parameter->name && !status; parameter++)
        status = append_parameter(assembly, parameter);
    return status;
}

static clnorm_status make_kernel(cl_program program, const char *name, const struct settings *settings, cl_kernel *kernel) {
    cl_int code;
    *kernel = clCreateKernel(program, name, &code);
    if (code)
        return cln_fail_opencl(code, "clCreateKernel");
    for (cl_uint i = 0; i < settings->count && !code; i++)
        code = clSetKernelArg(*kernel, i, settings->setting[i].size, &settings->setting[i].value);
    return code ? cln_fail_opencl(code, "clSetKernelArg") : CLNORM_SUCCESS;
}

clnorm_status cln_plan_add_stage(clnorm_plan *plan, const struct cln_stage_recipe *recipe) {
    if (plan->stages == CLN_STAGES)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "kernel %s is one too many: expected at most %d of a plan",
                        recipe->kernel->name, CLN_STAGES);
    size_t items; /* of 32 bits on some hosts */
    if (recipe->groups > CLN_MOST_GROUPS || __builtin_mul_overflow(recipe->groups, recipe->items, &items))
        return cln_fail(
            CLNORM_UNSUPPORTED,
            "kernel %s takes %zu work-groups: expected at most %d; desc.rows, desc.cols or desc.weight_rows is too large",
            recipe->kernel->name, recipe->groups, CLN_MOST_GROUPS);
    struct cln_stage *const stage = &plan->stage[plan->stages];
    stage->tensors = 0;
    stage->seed = 0;
    stage->launch = 0;
    stage->work = recipe->work;
    stage->groups = recipe->groups;
    stage->items = recipe->items;
    stage->readers = recipe->readers;
    (void)snprintf(stage->name, sizeof stage->name, "%s", recipe->kernel->name);
    cln_spec_options(recipe->spec, stage->options);
    struct assembly assembly = {.plan = plan, .recipe = recipe, .stage = stage};
    clnorm_status status = append_parameters(&assembly);
    if (status)
        return status;
    if (plan->draft) {
        plan->stages++;
        return CLNORM_SUCCESS;
    }

    cl_program program;
    status = cln_program_get(plan->context, recipe->kernel->source, stage->options, &program);
    if (status)
        return status;
    status = make_kernel(program, stage->name, &assembly.settings, &stage->aligned);
    if (!status && recipe->kernel->has_unaligned && !recipe->spec->element_aligned) {
        char unaligned[sizeof stage->name + 10];
        (void)snprintf(unaligned, sizeof unaligned, "%s_unaligned", stage->name);
        status = make_kernel(program, unaligned, &assembly.settings, &stage->unaligned);
    }
    clReleaseProgram(program); /* kernels keep their program */
    if (!status)
        plan->stages++;
    return status;
}
