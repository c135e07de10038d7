/* The facts of a device for the choice of configs: the limits of a compute unit, and rough speeds. Published limits stand
 * in for those that OpenCL does not report. */
#ifndef CLN_FACTS_H
#define CLN_FACTS_H

#include "clnorm/device.h"

struct cln_facts {
    bool alone;              /* work-items run one after the other, so that each takes whole segments (CPUs) */
    bool ptx;                /* NVIDIA from compute capability 8.0 */
    bool shuffles;           /* NVIDIA */
    uint32_t compute_units;  /* 1 at least */
    uint32_t vector_bytes;   /* of one memory access */
    uint32_t simd;           /* work-items that run in step */
    uint32_t most_items;     /* work-items of a work-group */
    uint32_t most_lanes;     /* work-items that share a segment */
    uint32_t item_registers; /* of 4 bytes, of a work-item */
    uint32_t registers;      /* of a compute unit */
    uint32_t resident_items; /* work-items of a compute unit at once */
    uint32_t resident_groups;
    uint64_t local_memory;   /* bytes of a work-group */
    uint64_t resident_local; /* bytes of a compute unit */
    uint64_t cache;          /* bytes: the last level that the device reports */
    uint64_t l2;             /* bytes of the cache that all compute units share; 0: unknown */
    double bytes_per_ns;     /* of the device's memory, for each compute unit */
    double latency_ns;       /* of a load from memory, when many are in flight */
    double shuffle_ns;       /* of a sum over work-items that run in step */
    double barrier_ns;       /* of a sum over more work-items, through local memory */
    double elements_per_ns;  /* processed by a compute unit */
    double launch_ns;        /* of a kernel after another one */
};

struct cln_facts cln_facts_of(const clnorm_device_info *device);

#endif
