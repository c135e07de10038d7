#include "config/check.h"

#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/status.h"
#include "common/exchange_sizes.h"
#include "config/resources.h"
#include "device/driver_defects.h"

bool cln_config_runs_ptx(const clnorm_device_info *device) {
    return device->family == CLNORM_PLATFORM_NVIDIA && device->compute_capability >= 80;
}

bool cln_config_element_aligned(const clnorm_device_info *device, const struct cln_config *config) {
    return device->kind == CLNORM_DEVICE_CPU && device->family != CLNORM_PLATFORM_MESA &&
           config->stores != CLN_STORES_STREAMING;
}

uint64_t cln_config_rope_vec(const struct cln_workload *work) {
    return cln_lowest_bit(work->rope == CLNORM_ROPE_NEOX ? work->rope_dims / 2 : work->rope_dims);
}

uint64_t cln_config_rope_lanes(const struct cln_workload *work, const struct cln_config *c) {
    if (work->rope == CLNORM_ROPE_NEOX)
        return cln_lowest_bit(work->rope_dims / 2 / c->vec);
    return work->rope && c->vec == 1 ? 1 : 0;
}

clnorm_status cln_check_rope_vec(const struct cln_workload *work, const struct cln_config *c) {
    return work->rope && c->vec > cln_config_rope_vec(work)
               ? cln_config_refuse("vec", c->vec, "a divisor of rope_dims (with CLNORM_ROPE_NEOX of rope_dims / 2)")
               : CLNORM_SUCCESS;
}

/* Each lane must have both columns of its pairs, and no pair may be split between two work-groups. */
static clnorm_status check_rope(const struct cln_workload *work, const struct cln_config *c) {
    const clnorm_status status = cln_check_rope_vec(work, c);
    if (status || !work->rope)
        return status;
    const uint64_t lanes = cln_config_rope_lanes(work, c);
    if (lanes && c->lanes > lanes)
        return cln_config_refuse("lanes", c->lanes, "a divisor of rope_dims / 2 / vec (with CLNORM_ROPE_INTERLEAVED 1)");
    return c->chunks > 1 ? cln_config_refuse("chunks", c->chunks, "1 with a rope") : CLNORM_SUCCESS;
}

/* Vectors of a chunk, on average; where work-groups hold pieces, of the last one, the shortest. */
static uint64_t vectors_of_chunk(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t vectors = work->group_size / c->vec, chunks = cln_larger(c->chunks, 1);
    const uint64_t before = cln_product(cln_divide_up(vectors, chunks), chunks - 1);
    if (cln_holds_pieces(work, c))
        return vectors > before ? vectors - before : 0;
    return vectors / chunks;
}

/* Defects of CPU drivers' compilers: some need one lane in a norm, and some a vector of the segment for every lane.
 * Quantisation is not affected. */
static const char *lanes_defect(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *c) {
    const char *defect = NULL;
    if (c->lanes == 1)
        return NULL;
    if (work->users == CLN_KNOBS_FORWARD)
        defect = cln_driver_defect(device, CLN_DEFECT_SHARED_SEGMENTS);
    if (!defect && work->users != CLN_KNOBS_QUANTIZE && vectors_of_chunk(work, c) < c->lanes)
        defect = cln_driver_defect(device, CLN_DEFECT_IDLE_LANES);
    return defect;
}

static const char *segments_defect(const clnorm_device_info *device, const struct cln_workload *work,
                                   const struct cln_config *c) {
    return c->segments > 1 && work->y_scaled ? cln_driver_defect(device, CLN_DEFECT_CODES_SEGMENTS) : NULL;
}

static clnorm_status check_defects(const clnorm_device_info *device, const struct cln_workload *work,
                                   const struct cln_config *c) {
    if (device->kind != CLNORM_DEVICE_CPU)
        return CLNORM_SUCCESS;
    const char *const lanes = lanes_defect(device, work, c), *const segments = segments_defect(device, work, c);
    if (lanes)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.config.lanes is %" PRIu32 ": %s", c->lanes, lanes);
    if (segments)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.config.segments is %" PRIu32 ": %s", c->segments, segments);
    return CLNORM_SUCCESS;
}

clnorm_status cln_check_reduce(const clnorm_device_info *device, const struct cln_config *c) {
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    if (c->reduce == CLN_REDUCE_SHUFFLE && (device->family != CLNORM_PLATFORM_NVIDIA || items < 32))
        return cln_config_refuse("reduce", c->reduce,
                                 "another value: shuffle needs NVIDIA, and lanes x segments of 32 or more");
    if (c->reduce != CLN_REDUCE_SUBGROUP)
        return CLNORM_SUCCESS;
    if (!device->subgroups || c->segments > 1)
        return cln_config_refuse("reduce", c->reduce,
                                 "another value: subgroup needs a device with sub-groups, and segments=1");
    const char *const defect = items <= 2 ? cln_driver_defect(device, CLN_DEFECT_SMALL_SUBGROUPS) : NULL;
    return defect ? cln_fail(CLNORM_INVALID_VALUE, "desc.config.reduce is subgroup: %s", defect) : CLNORM_SUCCESS;
}

clnorm_status cln_check_fences(const clnorm_device_info *device, const struct cln_config *c) {
    if (cln_exchanges(c) && device->kind == CLNORM_DEVICE_GPU && !cln_fences_device(device))
        return cln_config_refuse("row_split", c->row_split, "two_passes: the device has no memory fences at device scope");
    return CLNORM_SUCCESS;
}

clnorm_status cln_check_items(const clnorm_device_info *device, const struct cln_config *c) {
    if ((uint64_t)c->lanes * c->segments > device->max_work_group_size)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ": the device allows %" PRIu64
                        " work-items",
                        c->lanes, c->segments, device->max_work_group_size);
    return CLNORM_SUCCESS;
}

clnorm_status cln_check_isa(const clnorm_device_info *device, const struct cln_config *c) {
    if (c->isa == CLN_ISA_PTX && !cln_config_runs_ptx(device))
        return cln_config_refuse("isa", c->isa, "portable: ptx needs NVIDIA with compute capability 8.0 or later");
    return CLNORM_SUCCESS;
}

clnorm_status cln_check_vec(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c) {
    if (cln_config_element_aligned(device, c) || work->alignment % c->vec == 0 || cln_leads(work, c))
        return CLNORM_SUCCESS;
    return cln_config_refuse("vec", c->vec,
                             work->lead_vec ? "a divisor of the difference of any two row strides on this device"
                                            : "a divisor of group_size and every row stride on this device");
}

/* Softmax whose work-groups exchange the totals of chunks. */
static clnorm_status check_exchange(const clnorm_device_info *device, const struct cln_workload *work,
                                    const struct cln_config *c) {
    enum { MOST_PIECES = 1 << 30 }; /* they have 32-bit numbers */
    enum { TOTALS = 2 };            /* words for each chunk */
    if (c->chunks < 2 || work->real_size != sizeof(cl_float) || cln_product(work->rows, c->chunks) > MOST_PIECES)
        return cln_config_refuse("row_split", c->row_split,
                                 "two_passes, unless there are 2 or more chunks of a row, 2^30 at most of all rows, and "
                                 "no f64");
    if (c->keep != CLN_KEEP_REGISTERS)
        return cln_config_refuse("keep", c->keep, "registers where work-groups exchange totals");
    if (c->iterations > 1)
        return cln_config_refuse("iterations", c->iterations, "1 where work-groups exchange totals");
    const uint64_t words = EXCHANGE_BOARD + TOTALS * (uint64_t)c->chunks;
    if (cln_scratch_bytes(work, c) + words * sizeof(cl_uint) > device->local_memory)
        return cln_config_refuse("chunks", c->chunks, "fewer: their totals need more than the local memory");
    if (c->row_split == CLN_ROW_SPLIT_EXCHANGE && device->kind == CLNORM_DEVICE_CPU)
        return cln_config_refuse("row_split", c->row_split, "two_passes on CPUs, whose work-groups do not run at once");
    return cln_check_fences(device, c);
}

static clnorm_status check_chunks(const clnorm_device_info *device, const struct cln_workload *work,
                                  const struct cln_config *c) {
    if (c->chunks > 1 && work->y_scaled)
        return cln_config_refuse("chunks", c->chunks, "1 with a y of 8 bits");
    if (c->chunks > 1 && (c->segments > 1 || (c->keep != CLN_KEEP_REREAD && !cln_holds_pieces(work, c))))
        return cln_config_refuse("chunks", c->chunks, "1: more need segments=1 and keep=reread");
    if (c->chunks > cln_divide_up(work->group_size, c->vec))
        return cln_config_refuse("chunks", c->chunks, "at most the number of vectors of a segment");
    return cln_holds_pieces(work, c) ? check_exchange(device, work, c) : CLNORM_SUCCESS;
}

clnorm_status cln_check_forward(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *c) {
    clnorm_status status = cln_check_items(device, c);
    if (status)
        return status;
    if (cln_scratch_bytes(work, c) > device->local_memory)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ": needs %" PRIu64
                        " bytes of local memory, the device has %" PRIu64,
                        c->lanes, c->segments, cln_scratch_bytes(work, c), device->local_memory);
    status = check_rope(work, c);
    if (!status)
        status = cln_check_vec(device, work, c);
    if (status)
        return status;
    if (c->keep == CLN_KEEP_REGISTERS && cln_held_bytes(work, c) > CLN_MOST_HELD_BYTES)
        return cln_config_refuse("keep", c->keep, "another value: a lane has more than 1024 bytes of a segment");
    if (c->keep == CLN_KEEP_LOCAL && !cln_config_local_vectors(device, work, c))
        return cln_config_refuse("keep", c->keep,
                                 "another value: local needs a norm's forward, segments=1, and local memory for a vector "
                                 "of each lane");
    if (c->keep != CLN_KEEP_LOCAL && c->local_vectors)
        return cln_config_refuse("local_vectors", c->local_vectors, "0 without keep=local");
    status = cln_check_reduce(device, c);
    if (!status)
        status = cln_check_isa(device, c);
    if (!status)
        status = check_chunks(device, work, c);
    return status ? status : check_defects(device, work, c);
}

clnorm_status cln_check_elements(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c) {
    if (c->lanes > device->max_work_group_size)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.config.lanes is %" PRIu32 ": the device allows %" PRIu64 " work-items",
                        c->lanes, device->max_work_group_size);
    if (!cln_config_element_aligned(device, c) && work->alignment % c->vec)
        return cln_config_refuse("vec", c->vec, "a divisor of every row stride on this device");
    return cln_check_isa(device, c);
}
