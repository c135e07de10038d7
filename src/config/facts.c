#include "config/facts.h"

#include <string.h>

#include "base/arithmetic.h"
#include "config/config.h"

/* The published limits of a family of devices. The first matching row is used. */
struct family {
    clnorm_device_kind kind;         /* 0: any */
    clnorm_platform_family platform; /* CLNORM_PLATFORM_OTHER: any */
    const char *vendor;              /* part of CL_DEVICE_VENDOR; NULL: any */
    unsigned capability;             /* minimum compute capability; 0: any */
    uint32_t simd, item_registers, registers, resident_items, resident_groups;
    uint32_t resident_local; /* KiB */
    uint32_t l2;             /* MiB, of the smallest device; 0: unknown */
    double bytes_per_ns, latency_ns, shuffle_ns, barrier_ns, elements_per_ns;
};

static const struct family families[] = {
    /* bytes_per_ns is the memory's bandwidth by the compute units: H100 and H200 3.4 to 4.8 TB/s by 132, A100 1.6 to 2.0 by
     * 108. l2: H100 and H200 50 MB, A30 24 and A100 40. */
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, NULL, 120, 32, 255, 65536, 1536, 24, 100, 0, 8, 700, 90, 100, 400},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, NULL, 90, 32, 255, 65536, 2048, 32, 228, 50, 30, 780, 95, 80, 400},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, NULL, 86, 32, 255, 65536, 1536, 16, 100, 0, 8, 600, 90, 100, 400},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, NULL, 80, 32, 255, 65536, 2048, 32, 164, 24, 16, 600, 90, 100, 300},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_NVIDIA, NULL, 0, 32, 255, 65536, 1024, 16, 64, 0, 8, 500, 90, 100, 200},
    /* CDNA units have 4 SIMDs of 512 vector registers by 64 lanes, RDNA units 2 of 768 to 1536 by 32. */
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_OTHER, "Advanced Micro Devices", 0, 64, 128, 65536, 1024, 16, 64, 0, 12, 800, 200,
     300, 250},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_OTHER, "AMD", 0, 64, 128, 65536, 1024, 16, 64, 0, 12, 800, 200, 300, 250},
    /* OpenCL counts vector engines, and a work-group runs on 8 of them. An engine has 8 threads of 128 registers of 32
     * bytes, which 16 work-items share. */
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_OTHER, "Intel", 0, 16, 64, 65536, 1024, 16, 64, 0, 16, 600, 200, 300, 300},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_OTHER, "QUALCOMM", 0, 64, 64, 32768, 1024, 16, 32, 0, 4, 600, 200, 400, 100},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_OTHER, "ARM", 0, 16, 64, 32768, 1024, 16, 32, 0, 4, 600, 200, 400, 60},
    {CLNORM_DEVICE_GPU, CLNORM_PLATFORM_OTHER, "Apple", 0, 32, 64, 53248, 1024, 24, 32, 0, 8, 600, 200, 300, 150},
    /* llvmpipe runs the work-items of a work-group as elements of its vectors. */
    {0, CLNORM_PLATFORM_MESA, NULL, 0, 1, 255, 65536, 64, 1, 32, 0, 8, 100, 100, 300, 4},
    {CLNORM_DEVICE_CPU, CLNORM_PLATFORM_OTHER, NULL, 0, 1, 1024, 1024, 1, 1, 32, 0, 8, 100, 0, 1000, 8},
    {0, CLNORM_PLATFORM_OTHER, NULL, 0, 32, 64, 32768, 512, 16, 32, 0, 6, 700, 200, 300, 100},
};

static bool matches(const struct family *family, const clnorm_device_info *device) {
    return (!family->kind || family->kind == device->kind) && (!family->platform || family->platform == device->family) &&
           (!family->vendor || strstr(device->vendor, family->vendor)) && device->compute_capability >= family->capability;
}

static const struct family *family_of(const clnorm_device_info *device) {
    const struct family *family = families;
    while (!matches(family, device))
        family++; /* the last row matches any device */
    return family;
}

struct cln_facts cln_facts_of(const clnorm_device_info *device) {
    const struct family *const family = family_of(device);
    const bool mesa = device->family == CLNORM_PLATFORM_MESA, nvidia = device->family == CLNORM_PLATFORM_NVIDIA;
    const bool gpu = device->kind == CLNORM_DEVICE_GPU;
    const bool alone = !mesa && device->kind == CLNORM_DEVICE_CPU;
    const uint32_t most_items = (uint32_t)cln_smaller(cln_larger(device->max_work_group_size, 1), 1024);
    /* Every GPU allows 256 work-items, and more are slower where registers are few. */
    const uint32_t lanes = alone ? 1 : mesa ? 64 : nvidia ? 1024 : 256;
    return (struct cln_facts){
        .alone = alone,
        .ptx = cln_config_runs_ptx(device),
        .shuffles = nvidia,
        .compute_units = (uint32_t)cln_larger(device->compute_units / (strstr(device->vendor, "Intel") && gpu ? 8 : 1), 1),
        .vector_bytes = alone ? 64 : 16,
        .simd = device->subgroup_size && !alone ? device->subgroup_size : family->simd,
        .most_items = most_items,
        .most_lanes = (uint32_t)cln_power_of_two_at_most(cln_smaller(lanes, most_items)),
        .item_registers = family->item_registers,
        .registers = family->registers,
        .resident_items = (uint32_t)cln_larger(family->resident_items, most_items),
        .resident_groups = family->resident_groups,
        .local_memory = device->local_memory,
        .resident_local = cln_larger((uint64_t)family->resident_local << 10, device->local_memory),
        .cache = device->cache_size,
        .l2 = (uint64_t)family->l2 << 20,
        .bytes_per_ns = family->bytes_per_ns,
        .latency_ns = family->latency_ns,
        .shuffle_ns = family->shuffle_ns,
        .barrier_ns = family->barrier_ns,
        .elements_per_ns = family->elements_per_ns,
        .launch_ns = 3000,
    };
}
