/* libclnorm: normalisation kernels in OpenCL C.
 *
 * The header to include. Those that it names are the manual, in order of use:
 *
 *   base.h           what every call returns, the sentence behind a failure, and dtypes
 *   device.h         which OpenCL devices are there, and the one that a selector means
 *   context.h        one per (cl_context, cl_device_id): device facts, compiled programs, caches
 *   norm.h, softmax.h, gelu.h, quantize.h, fp8_rms_norm.h
 *                    descriptors: what is asked for, shapes, dtypes, options; each with its plan and its one call
 *   plan.h           a descriptor made ready for its device, a queue, and the buffers
 *   config.h         the knobs of a kernel, for tests and tuning
 *
 * Conventions. A tensor is a cl_mem and a byte offset into it. x of any rank is flattened to [rows, cols], row-major with
 * a stride of its own; offsets are in bytes, strides and shapes in elements. Functions never abort, print or touch
 * global state; they are thread-safe unless they say otherwise. A function that fails leaves its outputs as they were.
 */
#ifndef CLNORM_CLNORM_H
#define CLNORM_CLNORM_H

#include "clnorm/base.h"
#include "clnorm/config.h"
#include "clnorm/context.h"
#include "clnorm/device.h"
#include "clnorm/fp8_rms_norm.h"
#include "clnorm/gelu.h"
#include "clnorm/norm.h"
#include "clnorm/plan.h"
#include "clnorm/quantize.h"
#include "clnorm/softmax.h"

#endif
