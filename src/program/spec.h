/* The macros of one kernel build. A spec is also the key of its program: the build options are made from it alone. A new
 * field is a member here and a row in spec.c's table. */
#ifndef CLN_SPEC_H
#define CLN_SPEC_H

#include <stdbool.h>

#include "clnorm/clnorm.h"

/* Kernels that have the same macros. */
enum cln_family {
    CLN_NORM_FORWARD = 1,
    CLN_NORM_BACKWARD = 2,
    CLN_NORM_BACKWARD_REDUCE = 4,
    CLN_GELU = 8,
    CLN_SOFTMAX = 16,
    CLN_SOFTMAX_BACKWARD = 32,
    CLN_QUANTIZE = 64, /* every kernel of fp8.h's formats */
    CLN_NORM_BACKWARD_CHECK = 128,
    CLN_GROUP_NORM = 256
};

struct cln_spec {
    enum cln_family family;
    uint64_t norm;    /* a clnorm_norm, or CLN_L2_NORM */
    uint64_t floored; /* 1: L2 norm, with eps as the least length */
    uint64_t group_size;
    uint64_t groups;
    uint64_t channels, spatial;                                   /* group norm: of a sample; positions of a channel */
    uint64_t layout;                                              /* group norm: a clnorm_layout */
    uint64_t x_dtype, y_dtype, z_dtype, weight_dtype, bias_dtype; /* clnorm_dtype; none: the tensor is absent */
    uint64_t dy_dtype, dx_dtype, dz_dtype, dweight_dtype, dbias_dtype;
    uint64_t gate; /* a clnorm_gate */
    uint64_t gate_first;
    uint64_t weight_offset;     /* 1: it is added to the weight */
    uint64_t weight_map;        /* 1: weight and bias have several rows */
    uint64_t columns_of_weight; /* neighbouring columns that use one weight; 0: 1 */
    uint64_t save_mean, save_rstd;
    uint64_t y_scales; /* forward: 1: y has scales; they are written, or one scale for the tensor is read */
    uint64_t reads_mean, has_sums, has_slots, exchanges; /* backward: 1: the kernel has it */
    uint64_t locked;                                     /* 1: slots have locks */
    uint64_t accumulate;                                 /* 1: dweight and dbias are added to */
    uint64_t residual_dtype, residual_out_dtype, dresidual_out_dtype, dresidual_dtype;
    uint64_t s_given;                       /* 1: x is s */
    uint64_t y_given;                       /* 1: x is y */
    uint64_t row_scale, dropout, save_mask; /* 1: there is one */
    uint64_t activation;                    /* a clnorm_activation */
    uint64_t vec, lanes, segments, keep, unroll, reduce, stores, weights, isa, tile, accumulator,
        pipeline;                  /* of a clnorm_config */
    uint64_t run_length;           /* neighbouring rows that a work-group takes before it skips others' rows; 0: all */
    uint64_t prefetch;             /* an enum cln_prefetch */
    uint64_t column_lanes;         /* neighbouring lanes of a work-group of accumulator=columns, a vector each */
    uint64_t span;                 /* groups that a work-group takes in turn; group norm: those of a slice */
    uint64_t abreast;              /* segments that a work-group takes side by side */
    uint64_t chunks;               /* pieces of a split segment */
    uint64_t row_split;            /* an enum cln_row_split */
    uint64_t most_registers;       /* of a work-item; 0: as many as the compiler takes */
    uint64_t local_vectors;        /* vectors of a lane in local memory */
    uint64_t loop;                 /* 1: a work-group has more than one iteration */
    uint64_t leads;                /* 1: segments begin anywhere within a vector */
    uint64_t tails;                /* 1: rows of CLN_QUANTIZE end anywhere within a vector */
    uint64_t element_aligned;      /* 1: vectors are accessed at any element's address, as CPUs can */
    uint64_t q_dtype, scale_dtype; /* of 8 bits; of its scales */
    uint64_t x_scale_dtype;
    uint64_t x_scaling;                 /* a clnorm_scaling, of an 8-bit x */
    uint64_t x_group;                   /* columns that share a scale of an 8-bit x */
    uint64_t compatible;                /* 1: the published method's roundings */
    uint64_t scaling;                   /* a clnorm_scaling; 0: nothing is quantised */
    uint64_t y_group;                   /* forward: columns that share a scale of an 8-bit y */
    uint64_t writes_y;                  /* forward: 1: y is written */
    uint64_t channel_lanes;             /* group norm: lanes that take a channel of what registers hold; or 0 */
    uint64_t piece_channels;            /* group norm: channels of a piece with such lanes; or 0 */
    uint64_t merges;                    /* group norm: 1: y is computed from moments of chunks, not from statistics */
    uint64_t block;                     /* group norm: elements of a block, whose phases are merged; 0: no block */
    uint64_t row_positions;             /* group norm: positions of a row of channels last, 1 or more */
    uint64_t measures;                  /* forward: 1: the largest |y| of each work-group is written */
    uint64_t save_y_row_scale;          /* 1: args.y_row_scale is written */
    uint64_t amax, write_q, transposed; /* 1: amax, q, the transposed copy is written */
    uint64_t stochastic;
    uint64_t rows;                                  /* rows that lanes take at a time */
    uint64_t tile_rows, tile_cols;                  /* the tile of a work-group */
    uint64_t row_vec;                               /* elements of one access to the transposed copy */
    uint64_t fp8_isa;                               /* an enum cln_isa: of the conversions to and from 8 bits */
    uint64_t gelu;                                  /* a clnorm_gelu_form */
    uint64_t rope;                                  /* a clnorm_rope; 0: the other rope macros are not defined */
    uint64_t rope_dims, rope_repeat, rope_position; /* rope_position 1: args.position is read */
    uint64_t rope_cos_dtype, rope_sin_dtype;
    uint64_t opencl_c; /* the language version that the build may use: 120, 200, 300; later ones count as 300 */
};

/* Bytes of build options; of these, bytes for the options that a stage adds for the outer dimensions of its tensors. */
enum { CLN_OPTIONS_CAPACITY = 8192, CLN_OUTER_OPTIONS = 1024 };

/* Writes the build options, "-cl-std=CL1.2 -D VEC=4 …". */
void cln_spec_options(const struct cln_spec *spec, char options[CLN_OPTIONS_CAPACITY]);

/* Sets *value to that of a macro in the spec's build, for a dtype a clnorm_dtype. false: its kernels have no such
 * macro. */
bool cln_spec_macro(const struct cln_spec *spec, const char *macro, uint64_t *value);

#endif
