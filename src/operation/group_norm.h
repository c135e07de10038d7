/* Shared by group norm's forward and backward: a sample's shape, checks, chunks and the kernels that merge them. */
#ifndef CLN_GROUP_NORM_H
#define CLN_GROUP_NORM_H

#include "clnorm/group_norm.h"
#include "operation/operations.h"
#include "plan/stage.h"

/* The members that both descriptors have. */
struct cln_group_norm {
    uint64_t rows, cols, spatial, groups;
    clnorm_tensor x;
    double eps;
    clnorm_layout layout;
};

/* The layout of the kernels for a descriptor's. A single channel lies alike in both, but only with channels first do
 * vectors have several positions. */
clnorm_layout cln_group_norm_layout(uint64_t cols, clnorm_layout layout);

/* Refuses a shape. */
clnorm_status cln_group_norm_prepare(const struct cln_group_norm *norm);

/* Refuses scales of groups in an 8-bit tensor. name: the tensor's. */
clnorm_status cln_group_norm_check_scales(const char *name, const clnorm_tensor *tensor);

/* Describes mean and rstd, where they are arguments. */
clnorm_status cln_group_norm_describe_statistics(const struct cln_operation *operation, const void *desc,
                                                 const struct cln_group_norm *norm, bool mean, bool rstd,
                                                 struct cln_tensor tensor[CLN_ROLES]);

struct cln_workload cln_group_norm_workload(const struct cln_operation *operation, const void *desc,
                                            const struct cln_group_norm *norm);

/* Adds the image to the key of group norm. */
void cln_group_norm_tuning_key(const struct cln_group_norm *norm, struct cln_tuning_key *key);

/* The macros that both directions have. */
struct cln_spec cln_group_norm_spec(const clnorm_plan *plan, const struct cln_group_norm *norm);

/* Rows of parts of a sample, and parts of a row: see cl/norm/group_norm_part.h. */
uint64_t cln_group_norm_part_rows(const struct cln_group_norm *norm, const struct cln_spec *spec);
uint64_t cln_group_norm_row_parts(const struct cln_spec *spec);

/* Appends a part to the workspace with two numbers for each part of each row. rows: of all samples. */
clnorm_status cln_group_norm_parts(clnorm_plan *plan, uint64_t rows, uint64_t row_parts, struct cln_binding *part);

/* A kernel of cl/norm/group_norm*.cl, and what it works on. */
struct cln_group_norm_stage {
    const struct cln_kernel *kernel;
    const struct cln_argument *arguments; /* without iterations */
    uint64_t work;
};

/* Adds a kernel in which LANES work-items, or with channels last a whole work-group, take a piece of work. */
clnorm_status cln_group_norm_add(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm_stage *stage);

/* Adds a kernel of group_norm_reduce.cl, whose segments take a piece each. terms: of a piece's sums. */
clnorm_status cln_group_norm_add_reduction(clnorm_plan *plan, const struct cln_spec *spec,
                                           const struct cln_group_norm_stage *stage, uint64_t terms);

/* The pieces of work of the kernels over chunks. */
uint64_t cln_group_norm_units(const struct cln_group_norm *norm, const struct cln_spec *spec);

/* The pieces of work of the other kernels: segments, slices or pieces of these. */
uint64_t cln_group_norm_pieces(const struct cln_group_norm *norm, const struct cln_spec *spec);

/* The spec of a kernel over chunks that reads no parts. Its chunks are so small that there are some for the whole device.
 */
struct cln_spec cln_group_norm_without_parts(const struct cln_group_norm *norm, const struct cln_spec *spec);

/* The magnitudes that the kernels over chunks write: the largest of each piece of work, or of each of its phases. */
uint64_t cln_group_norm_magnitudes(const struct cln_group_norm *norm, const struct cln_spec *spec);

/* Adds the kernel that writes the moments of chunks to parts. */
clnorm_status cln_group_norm_add_moments(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm *norm,
                                         struct cln_binding parts);

/* Adds the kernels that write the statistics, by way of chunks, to mean and rstd. */
clnorm_status cln_group_norm_add_statistics(clnorm_plan *plan, const struct cln_spec *spec,
                                            const struct cln_group_norm *norm, struct cln_binding parts,
                                            struct cln_binding mean, struct cln_binding rstd);

#endif
