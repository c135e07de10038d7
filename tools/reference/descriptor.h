/* The library's descriptors, as the reference takes them. */
#ifndef REFERENCE_DESCRIPTOR_H
#define REFERENCE_DESCRIPTOR_H

#include "reference/norm_backward.h"

/* A descriptor with every default filled in: strides, group_size, dtypes; backward the reduction too. With y_given, x's
 * dtype and stride are y's, as are the elements that stand for x here. */
clnorm_norm_desc ref_norm_complete(const clnorm_norm_desc *desc);
clnorm_norm_backward_desc ref_norm_backward_complete(const clnorm_norm_backward_desc *desc);

/* The forward normalisation whose gradients a complete descriptor describes. */
clnorm_norm_desc ref_norm_forward_of(const clnorm_norm_backward_desc *desc);

/* The reference's noun for a descriptor. Elements, scales, mask, seed and position are the caller's to fill in, of tensors
 * that the descriptor has. */
struct ref_norm ref_norm_of(const clnorm_norm_desc *desc);
struct ref_norm_backward ref_norm_backward_of(const clnorm_norm_backward_desc *desc);

#endif
