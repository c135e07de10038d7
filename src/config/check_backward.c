#include "config/check.h"

#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/status.h"
#include "config/resources.h"
#include "device/driver_defects.h"

bool cln_config_gains_by_exchange(const clnorm_device_info *device, uint64_t tiles) {
    return device->kind == CLNORM_DEVICE_GPU && cln_fences_device(device) && tiles <= CLN_MOST_TEAM &&
           tiles <= device->compute_units;
}

/* Separate work-groups for columns add up those of one row of weights, each of which has a weight of its own. */
static clnorm_status check_columns(const struct cln_workload *work, const struct cln_config *c) {
    if (c->accumulator == CLN_ACCUMULATOR_COLUMNS && work->weight_rows > 1)
        return cln_config_refuse("accumulator", c->accumulator, "another value with weight_rows above 1");
    if (c->accumulator == CLN_ACCUMULATOR_COLUMNS && work->columns_of_weight)
        return cln_config_refuse("accumulator", c->accumulator, "another value where channels have several positions");
    return CLNORM_SUCCESS;
}

static clnorm_status check_accumulator(const clnorm_device_info *device, const struct cln_workload *work,
                                       const struct cln_config *c) {
    if (cln_unrolls_columns(c) && cln_elements_per_lane(work, c) > CLN_MOST_ELEMENTS) {
        const bool keep = c->accumulator == CLN_ACCUMULATOR_LOCAL;
        return cln_config_refuse(keep ? "keep" : "accumulator", keep ? c->keep : c->accumulator,
                                 "another value, more lanes or a smaller tile: a lane has at most 64 columns in registers");
    }
    if (!cln_unrolls_columns(c) && c->segments > 1)
        return cln_config_refuse("segments", c->segments, "1 where neither a row nor sums are in registers");
    if (c->keep == CLN_KEEP_LOCAL)
        return cln_config_refuse("keep", c->keep, "registers or reread");
    if (c->accumulator == CLN_ACCUMULATOR_MEMORY && c->keep != CLN_KEEP_REREAD)
        return cln_config_refuse("keep", c->keep, "reread with accumulator=memory");
    if (c->pipeline != 1 && c->keep != CLN_KEEP_REGISTERS)
        return cln_config_refuse("pipeline", c->pipeline, "1 without keep=registers");
    if (c->pipeline != 1 && c->accumulator == CLN_ACCUMULATOR_COLUMNS)
        return cln_config_refuse("pipeline", c->pipeline, "1 with accumulator=columns");
    if (c->prefetch != CLN_PREFETCH_NONE && !cln_unrolls_columns(c))
        return cln_config_refuse("prefetch", c->prefetch, "none where neither a row nor sums are in registers");
    if ((c->accumulator == CLN_ACCUMULATOR_MEMORY || c->accumulator == CLN_ACCUMULATOR_COLUMNS) && work->locked)
        return cln_config_refuse("accumulator", c->accumulator,
                                 "registers, local or split with CLNORM_REDUCTION_LOCKED, whose slots are shared");
    const uint64_t local = cln_backward_local_bytes(work, c, cln_config_span(device, work, c));
    if (local > device->local_memory)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.config.lanes x segments is %" PRIu32 " x %" PRIu32 ", tile %" PRIu32 ": needs %" PRIu64
                        " bytes of local memory, the device has %" PRIu64,
                        c->lanes, c->segments, c->tile, local, device->local_memory);
    if (work->locked && !cln_fences_device(device))
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.reduction is CLNORM_REDUCTION_LOCKED: the device %s has no memory fences at device scope",
                        device->name);
    return CLNORM_SUCCESS;
}

/* A lane has the same columns of every row only where it keeps them in registers, and a work-group's rows begin alike. */
static clnorm_status check_leads(const struct cln_workload *work, const struct cln_config *c) {
    if (!cln_leads(work, c))
        return CLNORM_SUCCESS;
    if (!cln_unrolls_columns(c) || c->accumulator == CLN_ACCUMULATOR_COLUMNS || c->run_length > 1 ||
        (c->tile < work->group_size && !cln_exchanges(c)))
        return cln_config_refuse("vec", c->vec,
                                 "a divisor of group_size and every row stride with accumulator=memory or columns, with "
                                 "run_length above 1, with tiles in two passes, or where neither a row nor sums are in "
                                 "registers");
    if (work->locked && c->tile < work->group_size && c->vec / work->alignment > work->slots)
        return cln_config_refuse("vec", c->vec,
                                 "with tiles and CLNORM_REDUCTION_LOCKED, a divisor of group_size and every row stride, or "
                                 "desc.slots for each way in which rows begin within a vector");
    return CLNORM_SUCCESS;
}

static clnorm_status check_row_split(const clnorm_device_info *device, const struct cln_workload *work,
                                     const struct cln_config *c) {
    if (!cln_exchanges(c))
        return CLNORM_SUCCESS;
    if (!cln_unrolls_columns(c) || c->segments > 1 || work->real_size > sizeof(cl_float))
        return cln_config_refuse("row_split", c->row_split,
                                 "two_passes with f64, with segments above 1, or with neither a row nor sums in registers");
    if (c->accumulator == CLN_ACCUMULATOR_COLUMNS)
        return cln_config_refuse("row_split", c->row_split, "two_passes with accumulator=columns");
    if (cln_tiles(work, c) > CLN_MOST_TEAM)
        return cln_config_refuse("row_split", c->row_split, "two_passes with more than 64 tiles");
    return cln_check_fences(device, c);
}

static clnorm_status check_weights(const clnorm_device_info *device, const struct cln_config *c) {
    const bool early = c->weights == CLN_WEIGHTS_EARLY && c->vec <= 2;
    const char *const defect = early ? cln_driver_defect(device, CLN_DEFECT_EARLY_WEIGHTS) : NULL;
    return defect ? cln_fail(CLNORM_INVALID_VALUE, "desc.config.weights is early: %s", defect) : CLNORM_SUCCESS;
}

clnorm_status cln_check_backward(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c) {
    clnorm_status status = cln_check_items(device, c);
    if (!status)
        status = cln_check_rope_vec(work, c);
    if (!status)
        status = cln_check_vec(device, work, c);
    if (!status)
        status = check_leads(work, c);
    if (status)
        return status;
    const bool leads = cln_leads(work, c), partly = leads || work->group_size % c->vec;
    /* PoCL 3.1 confuses the lanes' private arrays in partly filled vectors. */
    if (c->lanes > 1 && partly && (!leads || device->kind == CLNORM_DEVICE_CPU))
        return cln_config_refuse("vec", c->vec, "a divisor of group_size where lanes share a segment");
    if (c->tile > work->group_size || (c->tile < work->group_size && c->tile % c->vec))
        return cln_config_refuse("tile", c->tile, "group_size, or a smaller multiple of vec");
    if (c->chunks > (c->tile == work->group_size || cln_exchanges(c) ? 1 : cln_divide_up(work->group_size, c->vec)))
        return cln_config_refuse("chunks", c->chunks,
                                 "1 where a work-group has whole segments, else at most the vectors of a segment");
    status = cln_check_reduce(device, c);
    if (!status)
        status = cln_check_isa(device, c);
    if (!status)
        status = check_weights(device, c);
    if (!status)
        status = check_row_split(device, work, c);
    if (!status)
        status = check_columns(work, c);
    return status ? status : check_accumulator(device, work, c);
}
