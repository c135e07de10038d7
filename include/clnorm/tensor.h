/* Tensors: how one lies in memory, and how its elements are read. */
#ifndef CLNORM_TENSOR_H
#define CLNORM_TENSOR_H

#include "clnorm/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many elements of an 8-bit tensor of [rows, cols] share a scale, and the scales' shape. An element is code · scale. */
typedef enum clnorm_scaling {
    CLNORM_SCALING_NONE = 0, /* the dtype has 16 bits or more */
    CLNORM_SCALING_TENSOR,   /* all of them: [1] */
    CLNORM_SCALING_ROW,      /* a row: [rows] */
    CLNORM_SCALING_GROUP     /* scale_group neighbouring elements of a row: [rows, ⌈cols / scale_group⌉] */
} clnorm_scaling;

/* A tensor of a descriptor. Its shape follows from the descriptor's rows and cols, its memory is in clnorm_args. All 0: it
 * is absent, or has the default that the descriptor names. scaling, scale_group, scale_dtype and scale are for 8-bit dtypes
 * and 0 with any other. */
typedef struct clnorm_tensor {
    clnorm_dtype dtype;
    clnorm_scaling scaling;
    uint32_t scale_group;     /* elements that share a scale, with CLNORM_SCALING_GROUP; else 0 */
    clnorm_dtype scale_dtype; /* CLNORM_F32 or CLNORM_BF16; CLNORM_DTYPE_NONE: CLNORM_F32 */
    uint64_t stride;          /* elements from one row to the next, at least a row's; 0: rows lie one after the other */
    double scale;             /* of an output with CLNORM_SCALING_TENSOR: its scale; 0: the scale is measured and written */
} clnorm_tensor;

/* Initialisers of a tensor that is absent, and of one in F32 whose rows lie one after the other. */
#define CLNORM_TENSOR_NONE \
    { CLNORM_DTYPE_NONE, CLNORM_SCALING_NONE, 0, CLNORM_DTYPE_NONE, 0, 0 }
#define CLNORM_TENSOR_F32 \
    { CLNORM_F32, CLNORM_SCALING_NONE, 0, CLNORM_DTYPE_NONE, 0, 0 }

#ifdef __cplusplus
}
#endif

#endif
