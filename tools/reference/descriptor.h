/* Makes the reference's structs from the library's descriptors. */
#ifndef REFERENCE_DESCRIPTOR_H
#define REFERENCE_DESCRIPTOR_H

#include "reference/norm_backward.h"

/* A descriptor with every default filled in: strides, group_size, dtypes, and the reduction of a backward. With y_given,
 * x's dtype and stride are those of y, whose elements are x's in the reference. */
clnorm_norm_desc ref_norm_complete(const clnorm_norm_desc *desc);
clnorm_norm_backward_desc ref_norm_backward_complete(const clnorm_norm_backward_desc *desc);

/* The forward normalisation whose gradients a complete descriptor describes. */
clnorm_norm_desc ref_norm_forward_of(const clnorm_norm_backward_desc *desc);

/* The reference's struct for a descriptor. The caller fills in elements, scales, mask, seed and position of the tensors
 * that the descriptor has. */
struct ref_norm ref_norm_of(const clnorm_norm_desc *desc);
struct ref_norm_backward ref_norm_backward_of(const clnorm_norm_backward_desc *desc);

#endif
