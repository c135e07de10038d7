/* An operation as data: what its descriptor has, and the few functions that are its own. Plans, one calls, validation and
 * tests walk the same record. table.c lists them all. */
#ifndef CLN_OPERATION_H
#define CLN_OPERATION_H

#include "config/config.h"
#include "config/tuning.h"
#include "plan/plan.h"

/* Every descriptor begins like this. */
struct cln_desc_head {
    uint64_t size, rows, cols;
};

/* A tensor's shape. */
enum cln_extent {
    CLN_MATRIX,     /* [rows, cols], with spatial [rows, cols · spatial] */
    CLN_COLUMNS,    /* [cols], with a weight map [weight_rows, cols] */
    CLN_TRANSPOSED, /* [cols, rows], of another tensor's 8-bit codes and with its scales */
    CLN_OWN         /* the operation's own: its functions see to the stride, and describe the argument */
};

/* Sets of dtypes, a bit for each. */
enum {
    CLN_F32_OR_LESS = 1 << CLNORM_F32 | 1 << CLNORM_F16 | 1 << CLNORM_BF16,
    CLN_REALS = CLN_F32_OR_LESS | 1 << CLNORM_F64,
    CLN_CODES = 1 << CLNORM_F8_E4M3 | 1 << CLNORM_F8_E5M2
};

/* What a dtype of CLNORM_DTYPE_NONE means. */
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
    enum cln_role scale; /* with dtypes of 8 bits: the tensor of its scales */
};

/* A member of 32 bits: a number, an enumeration or a flag. */
struct cln_field_rule {
    const char *name;
    size_t offset;
    uint32_t least, most;
    const char *type; /* of an enumeration, "clnorm_gate"; NULL: a number */
};

/* Numbers of each segment, [groups, rows] or [groups, rows, numbers], in the arithmetic's type. */
struct cln_statistic_rule {
    const char *name; /* "rstd" */
    enum cln_role role;
    size_t given; /* offset of the field of 32 bits that says whether it is there; 0: it always is */
    bool output;
    unsigned numbers; /* of a segment */
};

/* A field of an enumeration that a command line has an option for. */
enum { CLN_WORDS = 4, CLN_CHOICES = 2 }; /* at most: words of a choice, choices of an operation */
struct cln_enum_option {
    const char *option; /* "approximate" */
    const char *help;
    const char *field; /* of the descriptor, "form" */
    struct cln_word {
        const char *word; /* NULL after the last */
        uint32_t value;
    } words[CLN_WORDS];
};

/* Bytes that no descriptor exceeds. */
enum { CLN_DESC_MOST = 2048 };

/* Functions get a descriptor that is as long as the record says. From check on nothing in it is left to a default, and a
 * tensor that is absent is all 0. */
struct cln_operation {
    const char *name;                      /* "softmax_backward" */
    const char *summary;                   /* of ROWS in list.h: a line of help */
    const char *init;                      /* what a descriptor starts from, "CLNORM_SOFTMAX_BACKWARD_DESC_INIT" */
    const void *initial;                   /* such a descriptor */
    size_t size;                           /* its bytes */
    size_t config;                         /* offset of its clnorm_config */
    const struct cln_tensor_rule *tensors; /* the first one: of which others have the dtype by default */
    unsigned tensor_count;
    const struct cln_field_rule *fields;
    unsigned field_count;
    const struct cln_enum_option *choices[CLN_CHOICES]; /* NULL after the last */
    /* Offset of the columns of a segment (uint64_t): a divisor of cols, which is the default. 0: segments are rows. */
    size_t group_size;
    /* Offset of two numbers (uint64_t): the rows of a tensor of CLN_COLUMNS, and neighbouring rows that take the same one.
     * 0: it has one row. */
    size_t weight_map;
    bool mixed; /* tensors of CLN_COLUMNS may be in F64 beside matrices that are not, and in F32 beside those that are */
    bool outer; /* the rows of its matrices may have outer dimensions */
    size_t spatial; /* offset of the elements that a column has (uint64_t, checked by prepare); 0: one */
    /* Offset of a flag of 32 bits: the knobs that the order of a row's sums depends on are those for many rows. 0: none. */
    size_t batch_invariant;
    size_t eps; /* offset of a double from 0 to the largest number of the first tensor's dtype; 0: there is none */
    const struct cln_statistic_rule *statistics;
    unsigned statistic_count;
    /* What has to be said before the tensors are looked at; may be NULL. */
    clnorm_status (*prepare)(void *desc);
    /* What the rules do not say; may be NULL. */
    clnorm_status (*check)(const clnorm_device_info *device, void *desc);
    /* The arguments that the descriptor has no clnorm_tensor for; may be NULL. */
    clnorm_status (*describe)(const void *desc, struct cln_tensor tensor[CLN_ROLES]);
    struct cln_workload (*workload)(const struct cln_operation *operation, const void *desc);
    /* What a tuning file calls it, where that is more than name, dtype and cols; may be NULL. */
    void (*tuning_key)(const void *desc, struct cln_tuning_key *key);
    cln_choose_fn choose;
    clnorm_status (*add_stages)(clnorm_plan *plan, const void *desc, const struct cln_workload *work);
};

/* Every operation; a NULL ends the list. */
extern const struct cln_operation *const cln_operations[];

/* Writes the descriptor that init names. desc may be NULL. */
void cln_operation_init(const struct cln_operation *operation, void *desc);

/* The tensor that a rule is about. */
const clnorm_tensor *cln_operation_tensor(const struct cln_tensor_rule *rule, const void *desc);

/* Bytes of the arithmetic type: 8 with F64 tensors, else 4. */
uint64_t cln_operation_real_size(const struct cln_operation *operation, const void *desc);

/* Columns of a segment. */
uint64_t cln_operation_group_size(const struct cln_operation *operation, const void *desc);

/* Rows of a tensor of CLN_COLUMNS: 1 without a weight map. */
uint64_t cln_operation_weight_rows(const struct cln_operation *operation, const void *desc);

/* The strides of all matrices' rows, and of inputs that a weight map is for, by a bitwise or: what a power of two divides
 * them all. */
uint64_t cln_operation_strides(const struct cln_operation *operation, const void *desc);

/* From a descriptor of any size to a plan. */
clnorm_status cln_operation_plan_create(const struct cln_operation *operation, clnorm_context *context, const void *desc,
                                        clnorm_plan **plan);

/* Makes a plan without kernels, and says what its enqueues need. requirements may be NULL. */
clnorm_status cln_operation_validate(const struct cln_operation *operation, clnorm_context *context, const void *desc,
                                     clnorm_requirements *requirements);

/* Enqueues with the plan of the descriptor, from the context's store. */
clnorm_status cln_operation_enqueue(const struct cln_operation *operation, clnorm_context *context, cl_command_queue queue,
                                    const void *desc, const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                    cl_event *event);

/* operation_tensors.c: checks the tensors of a descriptor, fills in their defaults, and says what their arguments have to
 * be like: vector is an element's bytes where accesses are of config.vec elements, else 0. */
clnorm_status cln_operation_complete_tensors(const struct cln_operation *operation, const clnorm_device_info *device,
                                             void *desc);
clnorm_status cln_operation_describe_tensors(const struct cln_operation *operation, const void *desc,
                                             struct cln_tensor described[CLN_ROLES]);

/* Refuses an option that does not go with another one: the first whose set is true. The list ends with a name of NULL. */
struct cln_option {
    const char *name;
    bool set;
};
clnorm_status cln_refuse_options(const struct cln_option *options, clnorm_status status, const char *with);

#endif
