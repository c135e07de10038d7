/* The recipe of a stage: a kernel, its parameters and its arguments. */
#ifndef CLN_STAGE_H
#define CLN_STAGE_H

#include "plan/plan.h"
#include "program/source.h"

/* A matrix is a cl_mem, its offset and its row stride in elements; a vector has no stride. Rows are a matrix whose outer
 * dimensions are arguments and macros, where the plan's tensor has them. A seed is two numbers, and a launch is its own
 * number; both are set at each enqueue, as tensors are. */
enum cln_parameter_kind {
    CLN_PARAMETER_MATRIX,
    CLN_PARAMETER_ROWS,
    CLN_PARAMETER_VECTOR,
    CLN_PARAMETER_NUMBER,
    CLN_PARAMETER_SEED,
    CLN_PARAMETER_LAUNCH
};

/* A line of a list that host and device share: see cl/common/arguments.h. */
struct cln_parameter {
    const char *name;
    const char *condition; /* the spec's macro that is 0 or undefined where the kernel does not have the parameter; "1": it
                              always has */
    const char *type;      /* of a number "ulong" or "real"; of a tensor a pointer, "const …" where the kernel reads it */
    enum cln_parameter_kind kind;
};

/* The initialiser of an array with the parameters of a list. */
/* clang-format off */
#define CLN_PARAMETERS(list) {list(CLN_PARAMETER) {0}}
/* clang-format on */
#define CLN_PARAMETER(kind, condition, type, name) {#name, #condition, #type, CLN_PARAMETER_##kind},

/* A kernel, and perhaps a second one for offsets that are no multiples of the tensors' vectors. */
struct cln_kernel {
    const struct cln_source *source;
    const char *name;
    const struct cln_parameter *parameters; /* ends with a name of NULL */
    bool has_unaligned;                     /* NAME_unaligned is defined, unless the build is element_aligned */
};

/* The initialiser of a kernel, and of one with an _unaligned one, in file scope. list: of its parameters. */
/* clang-format off */
#define CLN_KERNEL(source, name, list) \
    {&cln_source_##source, #name, (const struct cln_parameter[])CLN_PARAMETERS(list), false}
#define CLN_KERNEL_PAIR(source, name, list) \
    {&cln_source_##source, #name, (const struct cln_parameter[])CLN_PARAMETERS(list), true}
/* clang-format on */

/* The value of a parameter, or a list of them, in a list that ends with a name of NULL. The order is free. */
struct cln_argument {
    const char *name; /* "" of a list */
    enum { CLN_ARGUMENT_TENSOR, CLN_ARGUMENT_INTEGER, CLN_ARGUMENT_REAL, CLN_ARGUMENT_LIST } kind;
    struct cln_binding tensor;
    uint64_t integer; /* of a tensor: its row stride; 0: the descriptor's */
    double real;
    const struct cln_argument *list;
};

struct cln_argument cln_bind(const char *name, struct cln_binding tensor);
/* Binds a matrix that may be a part of the workspace. stride: elements from row to row. */
struct cln_argument cln_bind_part(const char *name, struct cln_binding part, uint64_t stride);
struct cln_argument cln_integer(const char *name, uint64_t integer);
struct cln_argument cln_real(const char *name, double real);

/* Includes another list, which must live as long as this one. */
struct cln_argument cln_include(const struct cln_argument *list);

/* A list that a function returns, for the kernels that include it: fewer than 8, and the end. */
struct cln_arguments {
    struct cln_argument list[8];
};

/* A matrix or vector without an argument is the tensor of clnorm_args with its name. An argument for a parameter that
 * the spec rules out is not used. */
struct cln_stage_recipe {
    const struct cln_kernel *kernel;
    const struct cln_spec *spec;
    const struct cln_argument *arguments;
    cl_ulong work; /* the first parameter of every kernel */
    size_t groups, items;
    size_t readers; /* see struct cln_stage */
};

/* Fetches or builds the program, and adds a stage that runs after the earlier ones. Refuses by name a parameter without
 * an argument, an argument without a parameter, two arguments for one parameter, and an argument of the wrong kind. */
clnorm_status cln_plan_add_stage(clnorm_plan *plan, const struct cln_stage_recipe *recipe);

#endif
