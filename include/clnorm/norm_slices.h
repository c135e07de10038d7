/* Layer and RMS norm of rows whose columns are divided among devices, processes or hosts. */
#ifndef CLNORM_NORM_SLICES_H
#define CLNORM_NORM_SLICES_H

#include "clnorm/context.h"
#include "clnorm/norm.h"
#include "clnorm/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each caller has a slice of the columns of x, weight, bias and dy. The norm of norm.h then has two halves, forward and
 * backward. Between them the callers exchange a few numbers for each row, for example by MPI:
 *
 *   forward    1. clnorm_norm_statistics            x -> moments of the slice
 *              2. all callers merge their moments   clnorm_moments_merge, or a sum with RMS norm
 *              3. clnorm_norm_apply                 x, moments of the row, weight, bias -> y
 *   backward   4. clnorm_norm_backward_statistics   x, dy, weight, moments of the row -> sums over the slice
 *              5. all callers add their sums up
 *              6. clnorm_norm_backward_apply        x, dy, weight, moments and sums of the row -> dx, dweight, dbias
 *
 * dweight and dbias are those of the slice's columns and need no exchange. Where the rows are divided among callers too,
 * the callers that have the same columns add up their dweight and dbias. examples/mpi_norm.c does all of this.
 *
 * Slices may have different widths. As in norm.h, a row has segments that are normalised independently. The segments of a
 * call are the slice's parts of the row's segments, in the same order in all slices; group_size is the width of a part. The
 * moments of a segment that lies whole in a slice need no merge. A slice with a part of one segment and other segments
 * whole makes two calls, one for each, with the row's stride and an offset into x.
 *
 *   args.moments  [groups, rows, 3]: mean, Σ(x − mean)², number of the elements; for RMS norm 0, Σx², number
 *   args.sums     [groups, rows, 2]: Σ(x̂ · wdy), Σwdy; for RMS norm the second is 0
 *
 * both in f32 (f64 with F64 tensors). A number of elements above 2^24 is rounded in f32, by at most 2^-24 of it. With mean,
 * variance and number N of the merged moments,
 *
 *   rstd = 1 / √(variance + eps),   variance = Σ(x − mean)² / N
 *   x̂ = (x − mean) · rstd,   y = x̂ · weight + bias,   wdy = weight · dy
 *   dx = rstd · (wdy − x̂ · Σ(x̂ · wdy) / N − Σwdy / N)
 *   dweight = Σ over rows of dy · x̂,   dbias = Σ over rows of dy
 *
 * Tensors are F32, F16, BF16 or F64; F64 for all of a call or for none. Arithmetic and the results of NaN and infinities
 * are as in norm.h. Within a slice moments are merged by the formula of clnorm_moments_merge. Results differ from those of
 * norm.h by rounding alone; their bits depend on how the columns are divided. The merged moments of a segment must count 1
 * element or more, or the results are undefined. y may be x itself, and dx may be x or dy itself. Rows may have outer
 * dimensions (clnorm_tensor.outer). Thread safety and errors as in plan.h. */

/* Merges the moments of another slice into those of this one, on the host. into and from: [segments, 3] in host memory, of
 * dtype CLNORM_F32 or CLNORM_F64; they do not overlap. The arithmetic is in double:
 *
 *   n = na + nb,   mean = mean_a + δ · nb / n,   squares = squares_a + squares_b + δ² · na · nb / n,   δ = mean_b − mean_a
 *
 * Source: Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances". The
 * formula also holds for RMS norm, whose means are 0. Moments with a number of 0 change nothing. Cost: a few nanoseconds a
 * segment. As a reduction of MPI:
 *
 *   static void merge(void *from, void *into, int *length, MPI_Datatype *type) {
 *       clnorm_moments_merge(CLNORM_F32, into, from, (uint64_t)*length);
 *   }
 *
 *   MPI_Type_contiguous(3, MPI_FLOAT, &moments_type);  MPI_Type_commit(&moments_type);
 *   MPI_Op_create(merge, 1, &moments_op);
 *   MPI_Allreduce(MPI_IN_PLACE, moments, groups * rows, moments_type, moments_op, MPI_COMM_WORLD);
 *
 * CLNORM_INVALID_ENUM: another dtype. CLNORM_INVALID_ARGUMENT: into or from is NULL, and segments is not 0. Thread-safe. */
CLNORM_API clnorm_status clnorm_moments_merge(clnorm_dtype dtype, void *into, const void *from, uint64_t segments);

/* The moments of a slice: reads args.x, writes args.moments. */
typedef struct clnorm_norm_statistics_desc {
    uint64_t size;       /* sizeof(clnorm_norm_statistics_desc) */
    uint64_t rows;       /* 0 and up; 0 is a success that does nothing */
    uint64_t cols;       /* of the slice, 1 and up */
    uint64_t group_size; /* elements of a segment that are in the slice, a divisor of cols; 0: cols */
    clnorm_tensor x;
    clnorm_norm norm;
    uint32_t reserved;    /* 0 */
    clnorm_config config; /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_norm_statistics_desc;

/* Layer norm of f32. Set rows and cols. */
#define CLNORM_NORM_STATISTICS_DESC_INIT \
    { sizeof(clnorm_norm_statistics_desc), 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_LAYER_NORM, 0, CLNORM_CONFIG_AUTOMATIC }
CLNORM_API void clnorm_norm_statistics_desc_init(clnorm_norm_statistics_desc *desc);

CLNORM_API clnorm_status clnorm_norm_statistics_validate(clnorm_context *context, const clnorm_norm_statistics_desc *desc,
                                                         clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_norm_statistics_plan_create(clnorm_context *context,
                                                            const clnorm_norm_statistics_desc *desc, clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_statistics(clnorm_context *context, cl_command_queue queue,
                                                const clnorm_norm_statistics_desc *desc, const clnorm_args *args,
                                                cl_uint num_wait, const cl_event *wait_list, cl_event *event);

/* The norm of a slice from the merged moments: reads args.x, args.moments, args.weight and args.bias, writes args.y. */
typedef struct clnorm_norm_apply_desc {
    uint64_t size; /* sizeof(clnorm_norm_apply_desc) */
    uint64_t rows; /* as in the statistics, and so are the next two */
    uint64_t cols;
    uint64_t group_size;
    clnorm_tensor x;
    clnorm_tensor y;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor weight; /* [cols], the slice's; CLNORM_DTYPE_NONE: no weight (ones) */
    clnorm_tensor bias;   /* [cols], the slice's; CLNORM_DTYPE_NONE: no bias */
    /* Added to the variance: 0 to the largest number of f32 (of f64 with F64 tensors). In f32, a sum of squares past 3.4e38
     * in a slice or in the merged moments makes y 0 or NaN. Squares below 1.2e-38 may count as 0. */
    double eps;
    clnorm_norm norm;
    uint32_t reserved;    /* 0 */
    clnorm_config config; /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_norm_apply_desc;

/* Layer norm of f32, eps 1e-5. Set rows and cols. */
#define CLNORM_NORM_APPLY_DESC_INIT                                                                         \
    {                                                                                                       \
        sizeof(clnorm_norm_apply_desc), 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            CLNORM_TENSOR_NONE, 1e-5, CLNORM_LAYER_NORM, 0, CLNORM_CONFIG_AUTOMATIC                         \
    }
CLNORM_API void clnorm_norm_apply_desc_init(clnorm_norm_apply_desc *desc);

CLNORM_API clnorm_status clnorm_norm_apply_validate(clnorm_context *context, const clnorm_norm_apply_desc *desc,
                                                    clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_norm_apply_plan_create(clnorm_context *context, const clnorm_norm_apply_desc *desc,
                                                       clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_apply(clnorm_context *context, cl_command_queue queue,
                                           const clnorm_norm_apply_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                           const cl_event *wait_list, cl_event *event);

/* The backward's sums over a slice: reads args.x, args.dy, args.weight and the merged args.moments, writes args.sums. */
typedef struct clnorm_norm_backward_statistics_desc {
    uint64_t size; /* sizeof(clnorm_norm_backward_statistics_desc) */
    uint64_t rows; /* as in the forward, and so are the next two */
    uint64_t cols;
    uint64_t group_size;
    clnorm_tensor x;
    clnorm_tensor dy;     /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor weight; /* as in the forward */
    double eps;           /* as in the forward */
    clnorm_norm norm;
    uint32_t reserved;    /* 0 */
    clnorm_config config; /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_norm_backward_statistics_desc;

/* Layer norm of f32, eps 1e-5. Set rows and cols. */
#define CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT                                                                         \
    {                                                                                                                     \
        sizeof(clnorm_norm_backward_statistics_desc), 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            1e-5, CLNORM_LAYER_NORM, 0, CLNORM_CONFIG_AUTOMATIC                                                           \
    }
CLNORM_API void clnorm_norm_backward_statistics_desc_init(clnorm_norm_backward_statistics_desc *desc);

CLNORM_API clnorm_status clnorm_norm_backward_statistics_validate(clnorm_context *context,
                                                                  const clnorm_norm_backward_statistics_desc *desc,
                                                                  clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_norm_backward_statistics_plan_create(clnorm_context *context,
                                                                     const clnorm_norm_backward_statistics_desc *desc,
                                                                     clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_backward_statistics(clnorm_context *context, cl_command_queue queue,
                                                         const clnorm_norm_backward_statistics_desc *desc,
                                                         const clnorm_args *args, cl_uint num_wait,
                                                         const cl_event *wait_list, cl_event *event);

/* The gradients of a slice from the merged moments and the sums of all slices: reads args.x, args.dy, args.weight,
 * args.moments and args.sums, writes args.dx, args.dweight and args.dbias. dweight and dbias have the same bits from run to
 * run; with 0 rows they are 0. */
typedef struct clnorm_norm_backward_apply_desc {
    uint64_t size; /* sizeof(clnorm_norm_backward_apply_desc) */
    uint64_t rows; /* as in the forward, and so are the next two */
    uint64_t cols;
    uint64_t group_size;
    clnorm_tensor x;
    clnorm_tensor dy;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor weight;  /* as in the forward */
    clnorm_tensor dx;      /* dtype CLNORM_DTYPE_NONE: as x */
    clnorm_tensor dweight; /* [cols]; CLNORM_DTYPE_NONE: not computed; also without a weight */
    clnorm_tensor dbias;   /* as dweight; also without a bias */
    double eps;            /* as in the forward */
    clnorm_norm norm;
    uint32_t reserved;    /* 0 */
    clnorm_config config; /* forced knobs; CLNORM_CONFIG_AUTOMATIC as a rule */
} clnorm_norm_backward_apply_desc;

/* Layer norm of f32, eps 1e-5, no dweight and dbias. Set rows and cols. */
#define CLNORM_NORM_BACKWARD_APPLY_DESC_INIT                                                                         \
    {                                                                                                                \
        sizeof(clnorm_norm_backward_apply_desc), 0, 0, 0, CLNORM_TENSOR_F32, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, \
            CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, CLNORM_TENSOR_NONE, 1e-5, CLNORM_LAYER_NORM, 0,                  \
            CLNORM_CONFIG_AUTOMATIC                                                                                  \
    }
CLNORM_API void clnorm_norm_backward_apply_desc_init(clnorm_norm_backward_apply_desc *desc);

CLNORM_API clnorm_status clnorm_norm_backward_apply_validate(clnorm_context *context,
                                                             const clnorm_norm_backward_apply_desc *desc,
                                                             clnorm_requirements *requirements);
CLNORM_API clnorm_status clnorm_norm_backward_apply_plan_create(clnorm_context *context,
                                                                const clnorm_norm_backward_apply_desc *desc,
                                                                clnorm_plan **plan);
CLNORM_API clnorm_status clnorm_norm_backward_apply(clnorm_context *context, cl_command_queue queue,
                                                    const clnorm_norm_backward_apply_desc *desc, const clnorm_args *args,
                                                    cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#ifdef __cplusplus
}
#endif

#endif
