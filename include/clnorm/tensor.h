/* Tensors: how one lies in memory, and how its elements are read. */
#ifndef CLNORM_TENSOR_H
#define CLNORM_TENSOR_H

#include "clnorm/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The columns of a row are contiguous: the normalised dimension is the innermost one. To normalise along another dimension,
 * such as that of a transposed matrix, copy the tensor with that dimension innermost.
 *
 * Rows have one stride; or, in layer norm, RMS norm, L2 norm, softmax and GELU, up to three outer dimensions with a stride
 * each, so that a part of a packed tensor is normalised in place. With sizes (n0, n1, n2), row r begins at element
 * (r / (n1 · n2)) · stride0 + (r / n2 mod n1) · stride1 + (r mod n2) · stride2. A dimension of size 0 is absent; the
 * product of the other sizes is the descriptor's rows, and the tensor's stride is 0. The stride of a dimension has no
 * default: with 0, the rows of an input repeat along the dimension (an expanded tensor). Rows of an input may overlap (with
 * a stride of 1: a sliding window). Rows of an output may not: with its dimensions sorted by stride, the smallest stride is
 * at least cols, and each next one reaches past the last element of the dimensions before it. Weights, biases, their
 * gradients, tables of RoPE and transposed copies have one stride. With 0 rows the dimensions are not checked. Examples,
 * with D = cols:
 *
 *   k of a packed [B, S, 3, H, D], from element H · D on    rows B · S · H, outer {{B · S, 3 · H · D}, {H, D}}
 *   [B, H, S, D] as a view of a [B, S, H, D]                rows B · H · S, outer {{B, S · H · D}, {H, D}, {S, H · D}}
 *   [S, D] for each of a batch                              rows B · S,     outer {{B, 0}, {S, D}} */

/* Which elements of an 8-bit tensor of [rows, cols] share a scale: [shape of the scales]. An element is code · scale. */
typedef enum clnorm_scaling {
    CLNORM_SCALING_NONE = 0, /* the dtype has 16 bits or more */
    CLNORM_SCALING_TENSOR,   /* all of them: [1] */
    CLNORM_SCALING_ROW,      /* a row: [rows] */
    CLNORM_SCALING_GROUP     /* scale_group neighbouring elements of a row: [rows, ⌈cols / scale_group⌉] */
} clnorm_scaling;

enum { CLNORM_OUTER_DIMS = 3 }; /* maximum dimensions of a tensor's rows */

/* A dimension of a tensor's rows. */
typedef struct clnorm_dim {
    uint64_t size;   /* rows; 0: the dimension is absent */
    uint64_t stride; /* elements */
} clnorm_dim;

/* A tensor of a descriptor. Its shape follows from the descriptor's rows and cols, its memory is in clnorm_args. F32, F16
 * and BF16 may be mixed; base.h has the rule for F64. With CLNORM_DTYPE_NONE the tensor has the dtype that the descriptor
 * names, or else is absent, and its other members are not read. scaling, scale_group, scale_dtype and scale are for 8-bit
 * dtypes, and 0 with any other. */
typedef struct clnorm_tensor {
    clnorm_dtype dtype;
    clnorm_scaling scaling;
    uint32_t scale_group;     /* elements that share a scale, with CLNORM_SCALING_GROUP; else 0 */
    clnorm_dtype scale_dtype; /* CLNORM_F32 or CLNORM_BF16; CLNORM_DTYPE_NONE: CLNORM_F32, but CLNORM_BF16 of a y with
                                 CLNORM_FP8_COMPATIBLE */
    uint64_t stride; /* elements from one row to the next, at least the elements of a row; 0: rows are contiguous */
    double scale;    /* of an output with CLNORM_SCALING_TENSOR: its scale, a positive normal F32; 0: the scale is measured
                        and written */
    /* The dimensions of the rows, the slowest first. All 0: the rows have one stride. */
    clnorm_dim outer[CLNORM_OUTER_DIMS];
} clnorm_tensor;

/* Initialisers: no outer dimensions, an absent tensor, and an F32 tensor of contiguous rows. */
#define CLNORM_OUTER_NONE \
    {                     \
        {0, 0}, {0, 0}, { \
            0, 0          \
        }                 \
    }
#define CLNORM_TENSOR_NONE \
    { CLNORM_DTYPE_NONE, CLNORM_SCALING_NONE, 0, CLNORM_DTYPE_NONE, 0, 0, CLNORM_OUTER_NONE }
#define CLNORM_TENSOR_F32 \
    { CLNORM_F32, CLNORM_SCALING_NONE, 0, CLNORM_DTYPE_NONE, 0, 0, CLNORM_OUTER_NONE }

#ifdef __cplusplus
}
#endif

#endif
