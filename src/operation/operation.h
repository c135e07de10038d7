/* An operation as data: the members of its descriptor, and the functions that differ from operation to operation. Plans,
 * one-call functions, validation and tests read the same record. table.c lists all records. */
#ifndef CLN_OPERATION_H
#define CLN_OPERATION_H

#include "config/config.h"
#include "config/tuning.h"
#include "plan/plan.h"

/* The first members of every descriptor. */
struct cln_desc_head {
    uint64_t size, rows, cols;
};

/* A tensor's shape. */
enum cln_extent {
    CLN_MATRIX,     /* [rows, cols], with spatial [rows, cols · spatial] */
    CLN_COLUMNS,    /* [cols], with a weight map [weight_rows, cols] */
    CLN_TRANSPOSED, /* [cols, rows], of another tensor's 8-bit codes and with its scales */
    CLN_OWN         /* the operation's functions check the stride and describe the argument */
};

/* Sets of dtypes, a bit for each. */
enum {
    CLN_F32_OR_LESS = 1 << CLNORM_F32 | 1 << CLNORM_F16 | 1 << CLNORM_BF16,
    CLN_REALS = CLN_F32_OR_LESS | 1 << CLNORM_F64,
    CLN_CODES = 1 << CLNORM_F8_E4M3 | 1 << CLNORM_F8_E5M2
};

/* The meaning of CLNORM_DTYPE_NONE. */
enum cln_default { CLN_REFUSED, CLN_ABSENT, CLN_LIKE_FIRST /* the first tensor's dtype */ };

/* A clnorm_tensor of a descriptor. */
struct cln_tensor_rule {
    const char *name; /* the descriptor's member, "x" */
    enum cln_role role;
    size_t offset; /* of the member */
    enum cln_extent extent;
    int dtypes;
    enum cln_default none;
    bool output;
    enum cln_role scale; /* with 8-bit dtypes: the argument that holds the scales; CLN_ROLES: none does */
};

/* A member of 32 bits: a number, an enumeration or a flag. */
struct cln_field_rule {
    const char *name;
    size_t offset;
    uint32_t least, most;
    const char *type; /* of an enumeration, "clnorm_gate"; NULL: a number */
};

/* An argument with numbers of each segment, [groups, rows] or [groups, rows, numbers], in the arithmetic type. */
struct cln_statistic_rule {
    const char *name; /* "rstd" */
    enum cln_role role;
    size_t given; /* offset of the 32-bit field that says whether it is present; 0: it always is */
    bool output;
    unsigned numbers; /* of a segment */
};

/* A command-line option that sets an enumeration of the descriptor. */
enum { CLN_WORDS = 4, CLN_CHOICES = 2 }; /* maximum words of an option, maximum options of an operation */
struct cln_enum_option {
    const char *option; /* "approximate" */
    const char *help;
    const char *field; /* of the descriptor, "form" */
    struct cln_word {
        const char *word; /* NULL after the last */
        uint32_t value;
    } words[CLN_WORDS];
};

/* Maximum bytes of a descriptor. */
enum { CLN_DESC_MOST = 2048 };

/* The functions receive a descriptor of size bytes. From check on, all of its defaults are filled in, and an absent tensor
 * is all 0. */
struct cln_operation {
    const char *name;                      /* "softmax_backward" */
    const char *summary;                   /* of ROWS in list.h: a line of help */
    const char *init;                      /* name of the initialiser, "CLNORM_SOFTMAX_BACKWARD_DESC_INIT" */
    const void *initial;                   /* an initialised descriptor */
    size_t size;                           /* its bytes */
    size_t config;                         /* offset of its clnorm_config */
    const struct cln_tensor_rule *tensors; /* the first one is that of CLN_LIKE_FIRST */
    unsigned tensor_count;
    const struct cln_field_rule *fields;
    unsigned field_count;
    const struct cln_enum_option *choices[CLN_CHOICES]; /* NULL after the last */
    /* Offset of the columns of a segment (uint64_t): a divisor of cols, which is the default. 0: segments are rows. */
    size_t group_size;
    /* Offset of weight_rows and weight_repeat (uint64_t): the rows of CLN_COLUMNS tensors, and the consecutive rows that
     * use the same one. 0: such tensors have one row. */
    size_t weight_map;
    bool mixed;     /* CLN_COLUMNS tensors may be F64 with other matrices, and F32 with F64 matrices */
    bool outer;     /* the rows of its matrices may have outer dimensions */
    size_t spatial; /* offset of the elements of a column (uint64_t, checked by prepare); 0: one */
    /* Offset of a 32-bit flag: the knobs that decide the order of a row's sums are chosen as for many rows. 0: no flag. */
    size_t batch_invariant;
    size_t eps; /* offset of a double from 0 to the largest number of the first tensor's dtype; 0: no eps */
    const struct cln_statistic_rule *statistics;
    unsigned statistic_count;
    /* Checks and completes members before the tensors are checked; may be NULL. */
    clnorm_status (*prepare)(void *desc);
    /* Checks what the rules cannot express; may be NULL. */
    clnorm_status (*check)(const clnorm_device_info *device, void *desc);
    /* Describes the arguments that have no clnorm_tensor in the descriptor; may be NULL. */
    clnorm_status (*describe)(const void *desc, struct cln_tensor tensor[CLN_ROLES]);
    struct cln_workload (*workload)(const struct cln_operation *operation, const void *desc);
    /* Fills in the tuning key, where name, dtype and group_size do not suffice; may be NULL. */
    void (*tuning_key)(const void *desc, struct cln_tuning_key *key);
    cln_choose_fn choose;
    clnorm_status (*add_stages)(clnorm_plan *plan, const void *desc, const struct cln_workload *work);
};

/* Every operation; a NULL ends the list. */
extern const struct cln_operation *const cln_operations[];

/* Writes an initialised descriptor. desc may be NULL. */
void cln_operation_init(const struct cln_operation *operation, void *desc);

/* The descriptor's tensor of a rule. */
const clnorm_tensor *cln_operation_tensor(const struct cln_tensor_rule *rule, const void *desc);

/* Bytes of the arithmetic type: 8 with F64 tensors, else 4. */
uint64_t cln_operation_real_size(const struct cln_operation *operation, const void *desc);

/* Columns of a segment. */
uint64_t cln_operation_group_size(const struct cln_operation *operation, const void *desc);

/* The bitwise or of the row strides of all matrices, and of inputs with a weight map: a power of two that divides it
 * divides every one of them. */
uint64_t cln_operation_strides(const struct cln_operation *operation, const void *desc);

/* The largest power of two, at most 16, modulo which all row strides are equal: rows of the same number then begin alike
 * within a vector of so many elements. 0 with outer dimensions, with 8-bit inputs, with scales of groups, or with elements
 * of 8 bytes. */
uint64_t cln_operation_lead_vec(const struct cln_operation *operation, const void *desc);

/* Makes a plan of a descriptor of any accepted size. */
clnorm_status cln_operation_plan_create(const struct cln_operation *operation, clnorm_context *context, const void *desc,
                                        clnorm_plan **plan);

/* Makes a plan without kernels, and writes the requirements of its enqueues. requirements may be NULL. */
clnorm_status cln_operation_validate(const struct cln_operation *operation, clnorm_context *context, const void *desc,
                                     clnorm_requirements *requirements);

/* Enqueues with the plan of the descriptor, from the context's store. */
clnorm_status cln_operation_enqueue(const struct cln_operation *operation, clnorm_context *context, cl_command_queue queue,
                                    const void *desc, const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                    cl_event *event);

/* operation_tensors.c: checks the tensors of a descriptor, fills in their defaults, and describes their arguments. vector
 * of a described argument is an element's bytes where accesses are of config.vec elements, else 0. */
clnorm_status cln_operation_complete_tensors(const struct cln_operation *operation, const clnorm_device_info *device,
                                             void *desc);
clnorm_status cln_operation_describe_tensors(const struct cln_operation *operation, const void *desc,
                                             struct cln_tensor described[CLN_ROLES]);

/* Refuses the first option of the list that is set, as it excludes another one. A name of NULL ends the list. with: the
 * other option, for the message. */
struct cln_option {
    const char *name;
    bool set;
};
clnorm_status cln_refuse_options(const struct cln_option *options, clnorm_status status, const char *with);

#endif
