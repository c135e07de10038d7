/* The operations that the tool runs. Row-wise ones, which are ROWS in list.h, come from their records (row_operation.c).
 * Each other one has its functions in a file op_NAME.c and a row in operation_list.c. */
#ifndef OPERATION_H
#define OPERATION_H

#include "choice.h"
#include "estimate.h"
#include "options.h"
#include "reference/norm_error.h"
#include "reference/row.h"
#include "tensor_file.h"
#include "verdict.h"

enum { ROLES = 20 };

/* The shape that an input must have, and that an output gets. */
enum role_shape {
    SHAPE_X, /* that of x, the first role: any rank of 1 and up; the last dimension is cols, the others are rows; of group
                norm rank 2 and up: the first is rows, the second or the last one cols, the others spatial */
    SHAPE_COLS,       /* [cols], or where weights have a map [weight_rows, cols] */
    SHAPE_STATISTICS, /* [groups, rows] */
    SHAPE_ROWS,       /* [rows], of the statistics' dtype too */
    SHAPE_CODES,      /* that of x, of 8 bits */
    SHAPE_SCALED,     /* x itself, which has 8 bits where there is an x_scale */
    SHAPE_X_SCALES,   /* [1], x's leading dimensions or [rows], or these and groups of columns: it decides x's scaling */
    SHAPE_TRANSPOSED, /* [cols, rows], of 8 bits */
    SHAPE_SCALES,     /* decided by the job's scaling */
    SHAPE_X_GROUPS,   /* that of x, with groups for cols */
    SHAPE_ROW_STATISTICS, /* [1, rows] */
    SHAPE_ROW_SCALES,     /* [rows] */
    SHAPE_GROUPS,         /* [rows, groups], of the statistics' dtype too */
    SHAPE_MOMENTS,        /* [groups, rows, 3], of the statistics' dtype too, as the next one */
    SHAPE_SUMS,           /* [groups, rows, 2] */
    SHAPE_ONE,            /* [1] */
    SHAPE_TABLE,          /* [positions, rope_dims / 2] */
    SHAPE_POSITIONS       /* [rows / rope_heads, rounded up], or another shape of as many elements; of integers */
};

/* A tensor that an operation reads or writes. */
struct role {
    const char *name;
    bool output; /* the first one is the main output */
    bool optional;
    enum role_shape shape;
    size_t argument;  /* offset of its clnorm_buffer in clnorm_args */
    const char *with; /* an output: written where this input is given, unless options say otherwise; NULL: on request */
};

/* Rows of an operation's roles. A role has the name of its member of clnorm_args. with: as in struct role. */
#define INPUT(name, shape) \
    { #name, false, false, shape, offsetof(clnorm_args, name), NULL }
#define OPTIONAL_INPUT(name, shape) \
    { #name, false, true, shape, offsetof(clnorm_args, name), NULL }
#define OUTPUT(name, shape, with) \
    { #name, true, false, shape, offsetof(clnorm_args, name), with }
#define OPTIONAL_OUTPUT(name, shape, with) \
    { #name, true, true, shape, offsetof(clnorm_args, name), with }
#define ROLES_END \
    { NULL, false, false, SHAPE_X, 0, NULL }

/* The options of operations. Strings are NULL where not given. */
struct operation_options {
    double eps;
    bool eps_given, weight_offset_given, slots_given, dropout_given, quantize_scale_given; /* also with the default */
    long long group_size;                                                                  /* 0: cols */
    char *gate;
    int gate_first;
    int batch_invariant;
    double weight_offset;
    long long weight_rows;   /* of generated tensors; 0: weight and bias are of [cols] */
    long long weight_repeat; /* 0: 1 */
    char *rope;              /* neox or interleaved */
    long long rope_dims;     /* 0: twice the tables' columns */
    long long rope_heads;    /* 0: 1 */
    char *dtype;             /* of the main output */
    char *config;            /* forced knobs */
    char *outputs;           /* roles, besides those that are not optional */
    int recompute_output;
    char *reduction;
    long long slots; /* of the locked reduction */
    char *mode;      /* of scales: tensor, row or group */
    char *scale_dtype;
    char *accuracy;
    char *stochastic; /* the seed; NULL: round to nearest */
    int transpose;
    char *activation;
    double dropout;
    char *seed; /* of dropout */
    int s_given;
    char *quantize; /* scaling of a norm's 8-bit y: tensor, row or group */
    long long quantize_group;
    double quantize_scale;
    long long groups; /* of channels; 0: not given */
    char *layout;     /* of channels: first or last */
    char *outer;      /* outer dimensions of tensors: see outer.h */
    struct choices choices;
};
#define OPERATION_OPTIONS_INIT ((struct operation_options){.eps = 1e-5, .slots = 128})

/* operation_options.c: the rows of a command's table for all options but eps and choices, without the end of the table. */
enum { OPERATION_OPTIONS = 30 };
void operation_options_rows(struct operation_options *options, struct poptOption rows[OPERATION_OPTIONS]);

/* Notes which of the options that have a default were given. */
void operation_options_note(struct operation_options *options, const struct command_line *line);

/* One operation on tensors of given shapes. */
struct job {
    const struct operation *operation;
    struct tensor tensor[ROLES]; /* in the order of the operation's roles; element NULL: absent. Names are borrowed */
    void *output[ROLES];         /* bytes of outputs, owned; tensor.data is the same address */
    bool wanted[ROLES];          /* outputs that are requested */
    uint64_t rows, cols, groups;
    uint64_t weight_rows;   /* of norms: of weight, bias, dweight and dbias; 0: they are of [cols] */
    uint64_t weight_repeat; /* consecutive rows that share one of them */
    uint64_t spatial;       /* of group norm: positions of a column, which is a channel */
    bool channels_last;
    bool seeded;
    clnorm_seed seed;
    struct {
        clnorm_rope form; /* 0: nothing is rotated */
        uint64_t dims, positions, repeat;
    } rope;
    int32_t *position;      /* of the tensor of that name, owned; NULL: absent, or without bytes */
    clnorm_scaling scaling; /* of operations with scales; of norms that of y */
    uint64_t group_size;    /* columns of a group; the last one may be shorter */
    clnorm_tensor x;        /* of norms: dtype and scales of x */
    /* How a tensor's rows lie on the device; all 0: dense, as on the host. */
    clnorm_dim outer[ROLES][CLNORM_OUTER_DIMS];
    union {
        clnorm_norm_desc norm;
        clnorm_norm_backward_desc norm_backward;
        unsigned char of_record[CLN_DESC_MOST]; /* of OPERATION_ROWS */
        clnorm_group_norm_desc group_norm;
        clnorm_group_norm_backward_desc group_norm_backward;
        clnorm_quantize_desc quantize;
        clnorm_dequantize_desc dequantize;
    } desc;
};

/* Operations that have the same options. */
enum operation_kind {
    OPERATION_NORM,
    OPERATION_NORM_BACKWARD,
    OPERATION_NORM_BACKWARD_FROM_Y,
    OPERATION_ROWS, /* row-wise, from the record alone */
    OPERATION_QUANTIZE,
    OPERATION_DEQUANTIZE,
    OPERATION_FP8_NORM,
    OPERATION_FP8_NORM_BACKWARD,
    OPERATION_GROUP_NORM, /* forward and backward */
    OPERATION_INSTANCE_NORM
};

struct operation {
    const char *name;
    const char *summary;
    enum operation_kind kind;
    clnorm_norm norm;         /* 0: none */
    const struct role *roles; /* inputs, x first; then outputs; at most ROLES, ended by a name of NULL */

    /* Fills desc, and the elements of the wanted outputs, from the inputs, whose shapes were checked, and the options. */
    bool (*describe)(struct job *job, const struct operation_options *options, struct fault *fault);
    clnorm_status (*plan)(clnorm_context *context, const struct job *job, clnorm_plan **plan);

    /* Compares the outputs with a computation in double. verdicts: [ROLES], in the order of roles. */
    bool (*verify)(const struct job *job, struct verdict *verdicts, struct fault *fault);

    const struct cln_operation *record; /* of OPERATION_ROWS; else NULL */
    ref_row_fn reference;               /* of OPERATION_ROWS; else NULL */
};

/* operation_list.c: all of them, ended by a name of NULL. */
const struct operation *operation_list(void);

/* row_operation.c: makes an operation from its record. roles: memory for its roles. */
struct operation row_operation_of(const struct cln_operation *record, ref_row_fn reference, struct role roles[ROLES + 1]);

/* job_shape.c: the number of scales that a row of x has. */
uint64_t job_groups_of_x(const struct job *job);

/* Sets the shape that a role has in a job whose rows, columns and groups are known. */
void job_shape_of_role(const struct job *job, enum role_shape shape, struct tensor *tensor);

/* Whether input i has a shape that its role allows. */
bool job_check_shape(const struct job *job, int i, struct fault *fault);

/* op_norm.c */
extern const struct role norm_roles[];
bool norm_describe(struct job *job, const struct operation_options *options, struct fault *fault);
clnorm_status norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
bool norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);

/* op_norm_backward.c */
extern const struct role norm_backward_roles[];
bool norm_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault);
clnorm_status norm_backward_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
bool norm_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);

/* op_norm_backward_from_y.c */
extern const struct role norm_backward_from_y_roles[];
bool norm_backward_from_y_describe(struct job *job, const struct operation_options *options, struct fault *fault);

/* op_quantize.c */
extern const struct role quantize_roles[];
extern const struct role dequantize_roles[];
bool quantize_describe(struct job *job, const struct operation_options *options, struct fault *fault);
bool dequantize_describe(struct job *job, const struct operation_options *options, struct fault *fault);
clnorm_status quantize_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
clnorm_status dequantize_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
bool quantize_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);
bool dequantize_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);

/* op_fp8_rms_norm.c */
extern const struct role fp8_rms_norm_roles[];
extern const struct role fp8_rms_norm_backward_roles[];
bool fp8_rms_norm_describe(struct job *job, const struct operation_options *options, struct fault *fault);
bool fp8_rms_norm_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault);
bool fp8_rms_norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);

/* op_group_norm.c */
extern const struct role group_norm_roles[];
extern const struct role group_norm_backward_roles[];
bool group_norm_describe(struct job *job, const struct operation_options *options, struct fault *fault);
bool group_norm_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault);
clnorm_status group_norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
clnorm_status group_norm_backward_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
bool group_norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);
bool group_norm_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);

/* Whether an operation's columns are channels: group norm and instance norm, forward and backward. */
bool operation_has_channels(const struct operation *operation);

/* Whether its weights may be of [weight_rows, cols]. */
bool operation_has_weight_map(const struct operation *operation);

/* operation_options.c: refuses options that the operation does not have. */
bool operation_check_options(const struct operation *operation, const struct operation_options *options,
                             struct fault *fault);

/* The error of an unknown name suggests one, or lists all. */
bool operation_find(const char *name, const struct operation **operation, struct fault *fault);

/* The operation whose name is this one's and "_from_y"; NULL: there is none. */
const struct operation *operation_from_y(const struct operation *operation);

/* Whether tensors of a shape have the statistics' dtype. */
bool role_is_statistics(enum role_shape shape);

/* The index of a role, -1 where there is none. */
int operation_role(const struct operation *operation, const char *name);

/* The tensor of a role; NULL when it is absent. */
const struct tensor *job_tensor(const struct job *job, const char *role);

/* Its dtype; CLNORM_DTYPE_NONE when it is absent. */
clnorm_dtype job_dtype(const struct job *job, const char *role);

/* Makes an empty job; inputs are then put into tensor[]. */
void job_init(struct job *job, const struct operation *operation);

/* Adds an input without bytes, with the shape of its role for rows × cols in groups. Statistics get the dtype that belongs
 * to an x of `dtype`. */
bool job_add_input(struct job *job, const char *role, clnorm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t groups,
                   struct fault *fault);

/* The dtype of the statistics of an x of this dtype. */
clnorm_dtype statistics_dtype(clnorm_dtype x);

/* The index of the scale that the job's scaling has for an element. */
uint64_t job_scale_index(const struct job *job, uint64_t row, uint64_t column);

/* Gives an output its element, where it is wanted. */
void job_set_output(struct job *job, const char *role, clnorm_dtype dtype);

/* Requires that all tensors are of doubles where the first one is, and none elsewhere. mixed: weights and biases may be F64
 * or F32 with any x. main_dtype: the main output's. */
bool job_check_doubles(const struct job *job, clnorm_dtype main_dtype, bool mixed, struct fault *fault);

/* Gives each wanted output bytes, all 0xff, which is a NaN in every dtype. */
bool job_allocate_outputs(struct job *job, struct fault *fault);

void job_free(struct job *job);

/* The bytes of all tensors together. */
uint64_t job_bytes(const struct job *job);

/* The comparison of an output, element by element. */
struct judged {
    const struct tensor *tensor; /* NULL: it was not requested, and its elements are ignored */
    struct verdict *verdict;
};

struct judged judged_of(const struct job *job, const char *role, struct verdict *verdicts);
void judged_add(const struct judged *judged, uint64_t index, struct ref_value expected);

/* Adds each column of a sum over rows. error: the relative error of a sum. */
void judged_add_sums(const struct judged *judged, const struct ref_row_sum *sums, uint64_t cols, double error);

#endif
