/* The order of accesses for the whole device. By the specification a barrier orders them for a work-group alone. */
#ifndef DEVICE_FENCE_H
#define DEVICE_FENCE_H

#include "common/enums.h"

#ifdef __NV_CL_C_VERSION
#define HAS_MEMBAR 1
#else
#define HAS_MEMBAR (ISA == ISA_PTX)
#endif

/* Orders a work-item's accesses before and after it, for every work-item of the device. OpenCL C 1.2 has no such fence.
 * Programs that need one are built for a later version, or for CPUs, whose work-items share caches. */
static inline void device_fence(void) {
#if HAS_MEMBAR
    __asm__ volatile("membar.gl;" ::: "memory");
#elif __OPENCL_C_VERSION__ >= 200
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
}

/* The same between volatile loads and later stores. An NVIDIA GPU answers volatile loads from the L2 cache, which all
 * compute units share, so that no other one sees the stores before what was loaded. There a fence would cost an exchange 10
 * to 45 % more time. */
static inline void fence_after_loads(void) {
#if !HAS_MEMBAR
    device_fence();
#endif
}

#endif
