/* Compiled alone: no descriptor has padding, as the plans of the one-call forms are found by a descriptor's bytes. */
#include <clnorm/context.h>
#include <clnorm/plan.h>

#pragma GCC diagnostic error "-Wpadded"
#include <clnorm/gelu.h>
#include <clnorm/group_norm.h>
#include <clnorm/l2_norm.h>
#include <clnorm/norm.h>
#include <clnorm/norm_slices.h>
#include <clnorm/quantize.h>
#include <clnorm/softmax.h>

extern int no_padding; /* a translation unit is not empty */
