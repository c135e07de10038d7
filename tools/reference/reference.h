/* The library's operations in double, written for readers and not for speed. The tool and the tests compare results with
 * it. It shares no code with the library: only the enumerations and descriptors of its headers, and the list of its
 * operations. */
#ifndef REFERENCE_REFERENCE_H
#define REFERENCE_REFERENCE_H

#include "reference/activation.h"
#include "reference/arithmetic.h"
#include "reference/descriptor.h"
#include "reference/format.h"
#include "reference/gelu.h"
#include "reference/group_norm.h"
#include "reference/l2_norm.h"
#include "reference/norm.h"
#include "reference/norm_backward.h"
#include "reference/norm_error.h"
#include "reference/philox.h"
#include "reference/quantize.h"
#include "reference/rope.h"
#include "reference/row.h"
#include "reference/softmax.h"
#include "reference/sum.h"
#include "reference/tensor.h"

#endif
