/* What group norm's forward and backward share: a sample's shape, checks, chunks and the kernels that merge them. */
#ifndef CLN_GROUP_NORM_H
#define CLN_GROUP_NORM_H

#include "clnorm/group_norm.h"
#include "operation/operations.h"
#include "plan/stage.h"

/* What both descriptors have. */
struct cln_group_norm {
    uint64_t rows, cols, spatial, groups;
    clnorm_tensor x, residual;
    double eps;
    clnorm_layout layout;
};

/* Refuses a shape. */
clnorm_status cln_group_norm_prepare(const struct cln_group_norm *norm);

/* Refuses scales of groups in an 8-bit tensor. name: the tensor's. */
clnorm_status cln_group_norm_check_scales(const char *name, const clnorm_tensor *tensor);

/* mean and rstd, where they are arguments. */
clnorm_status cln_group_norm_describe_statistics(const struct cln_operation *operation, const void *desc,
                                                 const struct cln_group_norm *norm, bool mean, bool rstd,
                                                 struct cln_tensor tensor[CLN_ROLES]);

struct cln_workload cln_group_norm_workload(const struct cln_operation *operation, const void *desc,
                                            const struct cln_group_norm *norm);

/* The spec of a kernel, so far without what is one direction's own. */
struct cln_spec cln_group_norm_spec(const clnorm_plan *plan, const struct cln_group_norm *norm);

/* A part of the workspace after those before it. size: of all parts so far. */
clnorm_status cln_group_norm_part(uint64_t *size, uint64_t elements, uint64_t element, struct cln_binding *part);

/* Numbers that are kept of all chunks of all samples, of which there are some in each channel. */
clnorm_status cln_group_norm_parts(uint64_t *size, const struct cln_group_norm *norm, uint64_t chunks, uint64_t element,
                                   struct cln_binding *part);

/* A kernel of cl/norm/group_norm*.cl. */
struct cln_group_norm_kernel {
    const struct cln_source *source;
    const char *name;
    const struct cln_parameter *parameters;
    const struct cln_argument *arguments; /* but for iterations */
    uint64_t work;
};

/* One whose SEGMENTS of LANES work-items have a piece of the work each. */
clnorm_status cln_group_norm_add(clnorm_plan *plan, const struct cln_spec *spec,
                                 const struct cln_group_norm_kernel *kernel);

/* One of group_norm_reduce.cl, a work-group a piece; terms: of the sums of each. */
clnorm_status cln_group_norm_add_reduction(clnorm_plan *plan, const struct cln_spec *spec,
                                           const struct cln_group_norm_kernel *kernel, uint64_t terms);

/* Pieces of work of the kernels that go through chunks. */
uint64_t cln_group_norm_units(const struct cln_group_norm *norm, const struct cln_spec *spec);

/* Magnitudes that the kernels which go through chunks leave: the largest of each piece of work, or of each of its phases.
 */
uint64_t cln_group_norm_magnitudes(const struct cln_group_norm *norm, const struct cln_spec *spec);

/* The moments of chunks, into parts. */
clnorm_status cln_group_norm_add_moments(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm *norm,
                                         struct cln_binding parts);

/* The statistics by chunks, into mean and rstd. */
clnorm_status cln_group_norm_add_statistics(clnorm_plan *plan, const struct cln_spec *spec,
                                            const struct cln_group_norm *norm, struct cln_binding parts,
                                            struct cln_binding mean, struct cln_binding rstd);

#endif
