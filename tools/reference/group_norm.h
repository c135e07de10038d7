/* Group norm (Wu, He 2018, arXiv:1803.08494): the elements of a group of channels are gathered into a segment, and layer
 * normalised with the weight and bias of their channels. The formulas are those of clnorm_group_norm_desc. */
#ifndef REFERENCE_GROUP_NORM_H
#define REFERENCE_GROUP_NORM_H

#include "clnorm/group_norm.h"
#include "reference/norm_error.h"

struct ref_group_norm {
    uint64_t rows, cols, spatial, groups;
    clnorm_layout layout;
    struct ref_tensor x, residual;       /* [rows, cols · spatial], in the order of layout; a row is a sample */
    struct ref_tensor dy, dresidual_out; /* likewise; of a backward */
    struct ref_tensor weight, bias;      /* [cols] */
    struct ref_tensor mean, rstd;        /* [rows, groups]; of a backward; absent: computed */
    clnorm_activation activation;
    double eps;
};

/* The number of elements of a group, and the index in the sample of its i-th element. The elements of a group are ordered
 * by channel. */
uint64_t ref_group_norm_size(const struct ref_group_norm *norm);
uint64_t ref_group_norm_at(const struct ref_group_norm *norm, uint64_t group, uint64_t i);

/* The channel of that element. */
uint64_t ref_group_norm_channel(const struct ref_group_norm *norm, uint64_t group, uint64_t i);

/* A group of a sample, gathered into a row of one segment. The forward's results are in gradients.forward. */
struct ref_gathered {
    struct ref_norm_backward norm; /* of one row */
    struct ref_gradients gradients;
    struct ref_gradient_errors errors; /* of a backward */
    double *memory;
};

/* memory is NULL where there is not enough. */
struct ref_gathered ref_gathered_make(const struct ref_group_norm *norm);
void ref_gathered_free(struct ref_gathered *gathered);

/* Gathers a group and computes its forward: gradients.forward. */
void ref_group_norm_segment(const struct ref_group_norm *norm, uint64_t row, uint64_t group, struct ref_gathered *gathered);

/* Gathers a group and computes its gradients and errors. Terms of dweight and dbias are dn · xhat and dn. */
void ref_group_norm_gradients(const struct ref_group_norm *norm, const struct ref_arithmetic *arithmetic, uint64_t row,
                              uint64_t group, struct ref_gathered *gathered);

/* Adds the group's terms to the sums of its channels: [cols] each. */
void ref_group_norm_add(const struct ref_group_norm *norm, uint64_t group, const struct ref_gathered *gathered,
                        struct ref_row_sum *dweight, struct ref_row_sum *dbias);

#endif
