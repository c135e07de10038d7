/* The rules of group norm's configs. */
#include <inttypes.h>
#include <stdio.h>

#include "base/arithmetic.h"
#include "common/exchange_sizes.h"
#include "config/check.h"
#include "config/group_layout.h"
#include "config/group_parts.h"
#include "config/group_registers.h"
#include "config/resources.h"

static clnorm_status check_row_split(const clnorm_device_info *device, const struct cln_workload *work,
                                     const struct cln_config *c) {
    const uint64_t board =
        cln_product(EXCHANGE_BOARD + 2 * (uint64_t)c->chunks, sizeof(cl_uint)); /* of cl/common/exchange.h */
    if (!cln_exchanges(c))
        return CLNORM_SUCCESS;
    if (!cln_group_can_exchange(work, c))
        return cln_config_refuse("row_split", c->row_split,
                                 "two_passes, unless a group with channels first has several chunks, few beside its "
                                 "elements, or, with segments=1, registers hold equally large pieces of an f32 x, or "
                                 "chunks of channels last of an x of 2 or 4 bytes, and it is not f64, nor are scales "
                                 "measured");
    if (c->iterations > 1)
        return cln_config_refuse("iterations", c->iterations, "1 where work-groups exchange sums");
    const clnorm_status status = cln_check_fences(device, c);
    if (status)
        return status;
    if (c->row_split == CLN_ROW_SPLIT_EXCHANGE && (work->channels_last || cln_group_holds_pieces(work, c)) &&
        device->kind == CLNORM_DEVICE_CPU)
        return cln_config_refuse("row_split", c->row_split,
                                 "two_passes on CPUs where registers hold pieces, as their work-groups do not run at once");
    if (cln_group_holds_pieces(work, c) && board + cln_scratch_bytes(work, c) > device->local_memory)
        return cln_config_refuse("chunks", c->chunks, "fewer: their sums need more than the local memory");
    return CLNORM_SUCCESS;
}

/* Writes what cln_group_row counts. */
static void name_row(const struct cln_workload *work, const struct cln_config *c, char *name, size_t size) {
    const uint64_t positions = cln_config_row_positions(work, c);
    const bool whole = cln_group_row(work, c, c->lanes > 1) != work->spatial;
    if (positions > 1)
        (void)snprintf(name, size, "the elements of %" PRIu64 " positions", positions);
    else
        (void)snprintf(name, size, "%s", work->channels_last ? "cols" : whole ? "a group's elements" : "spatial");
}

static clnorm_status check_chunks(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t most = work->channels_last ? cln_group_rows(work, c) : work->group_size;
    const uint64_t positions = cln_config_row_positions(work, c);
    char expected[64] = "at most one per element of a group";
    if (c->chunks <= most)
        return CLNORM_SUCCESS;
    if (positions > 1)
        (void)snprintf(expected, sizeof expected, "at most one per %" PRIu64 " positions", positions);
    else if (work->channels_last)
        (void)snprintf(expected, sizeof expected, "at most one per position");
    return cln_config_refuse("chunks", c->chunks, expected);
}

clnorm_status cln_check_group(const clnorm_device_info *device, const struct cln_workload *work,
                              const struct cln_config *c) {
    const uint64_t row = cln_group_row(work, c, c->lanes > 1);
    char name[64], expected[128];
    name_row(work, c, name, sizeof name);
    const bool anywhere = cln_group_begins_anywhere(work, c, c->lanes > 1);
    if (c->lanes > 1 && row % c->vec &&
        !anywhere) { /* PoCL 3.1 confuses the lanes' private arrays in tails of several elements */
        (void)snprintf(expected, sizeof expected, "a divisor of %s where there are several lanes", name);
        return cln_config_refuse("vec", c->vec, expected);
    }
    const uint64_t divided = cln_group_divided_by_vec(work, c, c->lanes > 1);
    if (!cln_config_element_aligned(device, c) && divided % c->vec) {
        (void)snprintf(expected, sizeof expected, "a divisor of %s%severy stride on this device", anywhere ? "" : name,
                       anywhere ? "" : " and ");
        return cln_config_refuse("vec", c->vec, expected);
    }
    struct cln_workload of_rules = *work; /* for the forward's rules of lanes, vectors and accesses */
    struct cln_config rules = *c;
    of_rules.group_size = row;
    of_rules.alignment = divided;
    rules.keep = CLN_KEEP_REREAD;
    rules.chunks = 1;
    clnorm_status status = cln_check_forward(device, &of_rules, &rules);
    if (status)
        return status;
    if (c->segments > 1 && cln_last_bytes(work, c) > device->local_memory / 2)
        return cln_config_refuse("segments", c->segments,
                                 "fewer, or fewer lanes: they need more than half of the local memory");
    if (cln_last_bytes(work, c) > device->local_memory)
        return cln_config_refuse("lanes", c->lanes, "fewer: their sums need more than the local memory");
    status = check_row_split(device, work, c);
    return status ? status : check_chunks(work, c);
}
