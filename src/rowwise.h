/* What operations have in common that work on rows and write one tensor, of the shape of those that they read. */
#ifndef CLN_ROWWISE_H
#define CLN_ROWWISE_H

#include "config.h"
#include "plan.h"

struct cln_rowwise_tensor {
    const char *name; /* of the role; the descriptor's fields are NAME_dtype and NAME_stride */
    enum cln_role role;
    clnorm_dtype dtype;
    uint64_t stride; /* elements */
};

enum { CLN_ROWWISE_TENSORS = 3 };

/* From the descriptor; cln_rowwise_validate leaves no default in it. */
struct cln_rowwise {
    uint64_t rows, cols;
    struct cln_rowwise_tensor tensor[CLN_ROWWISE_TENSORS];
    unsigned tensors; /* the first one has a dtype of its own, in which the others are by default */
};

/* Fills in defaults; every tensor then has a size that fits. */
clnorm_status cln_rowwise_validate(const clnorm_device_info *device, struct cln_rowwise *rows);

/* What each argument has to be like, with accesses of vec elements. */
clnorm_status cln_rowwise_describe(const struct cln_rowwise *rows, uint32_t vec, struct cln_tensor tensor[CLN_ROLES]);

/* Bytes of the arithmetic type. */
uint64_t cln_rowwise_real_size(const struct cln_rowwise *rows);

/* The strides of all tensors, by a bitwise or: what a power of two divides them all. */
uint64_t cln_rowwise_strides(const struct cln_rowwise *rows);

/* Whether each tensor is free of gaps. */
bool cln_rowwise_contiguous(const struct cln_rowwise *rows);

#endif
