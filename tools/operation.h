/* The operations that the tool can run. A new one is a file op_NAME.c with its hooks, and a row in operation.c's table. */
#ifndef OPERATION_H
#define OPERATION_H

#include "tensor_file.h"
#include "verdict.h"

enum { ROLES = 8 };

/* What a tensor's shape must be, or will be. */
enum role_shape {
    SHAPE_X,         /* that of x, the first role: any rank of 1 and up; the last dimension is cols, the others are rows */
    SHAPE_COLS,      /* [cols] */
    SHAPE_STATISTICS /* [groups, rows] */
};

/* A tensor that an operation reads or writes. */
struct role {
    const char *name;
    bool output; /* always written; the first one is the main output */
    bool optional;
    enum role_shape shape;
    size_t argument; /* where its clnorm_buffer is in clnorm_args */
};

/* What options can ask for, besides tensors. Strings are NULL when not given. */
struct operation_options {
    double eps;
    long long group_size; /* 0: cols */
    char *gate;
    int gate_first;
    double weight_offset;
    char *dtype;    /* of the main output */
    char *config;   /* forced knobs */
    bool inference; /* statistics are not saved */
};
#define OPERATION_OPTIONS_INIT ((struct operation_options){.eps = 1e-5})

/* One operation on tensors of given shapes. */
struct job {
    const struct operation *operation;
    struct tensor tensor[ROLES]; /* in the order of the operation's roles; element NULL: absent. Names are borrowed */
    void *output[ROLES];         /* bytes of outputs, owned; tensor.data is the same address */
    uint64_t rows, cols, groups;
    union {
        clnorm_norm_desc norm;
    } desc;
};

struct operation {
    const char *name;
    const char *summary;
    clnorm_norm norm;
    const struct role *roles; /* inputs, x first; then outputs; at most ROLES, ended by a name of NULL */

    /* Fills desc, and the elements of the outputs, from the inputs, whose shapes were checked, and the options. */
    bool (*describe)(struct job *job, const struct operation_options *options, struct fault *fault);
    clnorm_status (*plan)(clnorm_context *context, const struct job *job, clnorm_plan **plan);

    /* Compares the outputs with what a double computation of the inputs gives; verdicts in the order of roles. */
    bool (*verify)(const struct job *job, struct verdict *verdicts, struct fault *fault);
};

extern const struct operation operations[]; /* ended by a name of NULL */

/* op_norm.c */
extern const struct role layer_norm_roles[];
extern const struct role rms_norm_roles[];
bool norm_describe(struct job *job, const struct operation_options *options, struct fault *fault);
clnorm_status norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);
bool norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault);

/* Fails with the names that there are. */
bool operation_find(const char *name, const struct operation **operation, struct fault *fault);

/* The index of a role, -1 where there is none. */
int operation_role(const struct operation *operation, const char *name);

/* The tensor of a role; NULL when it is absent. */
const struct tensor *job_tensor(const struct job *job, const char *role);

/* Makes an empty job; inputs are then put into tensor[]. */
void job_init(struct job *job, const struct operation *operation);

/* An input that has no bytes yet, of the shape that its role says for rows × cols. */
bool job_add_input(struct job *job, const char *role, clnorm_dtype dtype, uint64_t rows, uint64_t cols,
                   struct fault *fault);

/* Checks the inputs, fills the descriptor, and gives each output its element and shape, but no bytes. */
bool job_describe(struct job *job, const struct operation_options *options, struct fault *fault);

/* Gives each output bytes, all 0xff, which is a NaN in every dtype. */
bool job_allocate_outputs(struct job *job, struct fault *fault);

void job_free(struct job *job);

/* Every tensor's bytes, once. */
uint64_t job_bytes(const struct job *job);

#endif
