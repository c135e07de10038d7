/* libclnorm: layer, RMS, group and L2 norm, softmax, GELU and FP8 quantisation on OpenCL devices, forward and backward.
 *
 * This is the header to include. A complete program, the RMS norm of two rows in place:
 *
 *     #define CL_TARGET_OPENCL_VERSION 120
 *     #include <clnorm/clnorm.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *         float rows[2][4] = {{1, 2, 3, 4}, {-2, 0, 0, 2}};
 *
 *         // OpenCL's part: a device (the best one, or what CLNORM_DEVICE selects), a queue, a buffer.
 *         clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
 *         if (clnorm_device_select(NULL, &device) != CLNORM_SUCCESS) {
 *             fprintf(stderr, "%s\n", clnorm_error_detail());
 *             return 1;
 *         }
 *         cl_context cl = clCreateContext(NULL, 1, &device.device, NULL, NULL, NULL);
 *         cl_command_queue queue = clCreateCommandQueue(cl, device.device, 0, NULL);
 *         cl_mem buffer = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof rows, rows, NULL);
 *
 *         // A descriptor says what to compute. Members that are not set have their defaults.
 *         clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
 *         desc.norm = CLNORM_RMS_NORM;
 *         desc.rows = 2;
 *         desc.cols = 4;
 *
 *         // The arguments are buffers. A plan is the descriptor compiled for the device; it can be enqueued many times.
 *         clnorm_args args = CLNORM_ARGS_INIT;
 *         args.x.mem = buffer;
 *         args.y.mem = buffer;
 *         clnorm_context *context = NULL;
 *         clnorm_plan *plan = NULL;
 *         clnorm_status status = clnorm_context_create(cl, device.device, NULL, &context);
 *         if (status == CLNORM_SUCCESS)
 *             status = clnorm_norm_forward_plan_create(context, &desc, &plan);
 *         if (status == CLNORM_SUCCESS)
 *             status = clnorm_plan_enqueue(plan, queue, &args, 0, NULL, NULL);
 *         if (status != CLNORM_SUCCESS)
 *             fprintf(stderr, "%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
 *
 *         clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof rows, rows, 0, NULL, NULL);
 *         for (int row = 0; row < 2; row++)
 *             printf("%.4f %.4f %.4f %.4f\n", rows[row][0], rows[row][1], rows[row][2], rows[row][3]);
 *
 *         clnorm_plan_destroy(plan); // NULL is allowed, here and in the next call
 *         clnorm_context_destroy(context);
 *         clReleaseMemObject(buffer);
 *         clReleaseCommandQueue(queue);
 *         clReleaseContext(cl);
 *         return status != CLNORM_SUCCESS;
 *     }
 *
 * The manual is the other headers, in this order:
 *
 *   base.h           versions, statuses, error details, dtypes
 *   tensor.h         how a tensor lies in memory, and the scales of 8-bit tensors
 *   device.h         the list of OpenCL devices, and selectors
 *   context.h        one per (cl_context, cl_device_id): device facts, compiled programs, caches
 *   plan.h           plans, and the arguments of an enqueue
 *   norm.h, group_norm.h, l2_norm.h, softmax.h, gelu.h, quantize.h
 *                    the operations: formula, descriptor, plan, one-call form
 *   norm_slices.h    norms of rows whose columns are divided among devices, processes or hosts
 *   config.h         the knobs of a kernel, for tests and tuning
 *
 * Conventions. A tensor is a cl_mem and a byte offset into it. A tensor of any rank is flattened to [rows, cols],
 * row-major; each tensor has its own row stride. Offsets are in bytes, strides and shapes in elements. Functions never
 * abort, print or change global state; they are thread-safe unless they say otherwise. A function that fails does not
 * write its output parameters. A function named _init writes the value of the _INIT macro of that name, and ignores NULL.
 * A struct with a size may be one of an older header, which is shorter: the rest has the initial values. One of a newer
 * header is longer: the bytes that the library does not know must be 0.
 */
#ifndef CLNORM_CLNORM_H
#define CLNORM_CLNORM_H

#include "clnorm/base.h"
#include "clnorm/config.h"
#include "clnorm/context.h"
#include "clnorm/device.h"
#include "clnorm/gelu.h"
#include "clnorm/group_norm.h"
#include "clnorm/l2_norm.h"
#include "clnorm/norm.h"
#include "clnorm/norm_slices.h"
#include "clnorm/plan.h"
#include "clnorm/quantize.h"
#include "clnorm/softmax.h"
#include "clnorm/tensor.h"

#endif
