/* Compiled, never run. No descriptor may have padding: the one-call forms find a plan by the bytes of its descriptor. */
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

extern int no_padding; /* ISO C forbids an empty translation unit */
