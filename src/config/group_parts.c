#include "config/group_parts.h"

#include "base/arithmetic.h"
#include "config/facts.h"
#include "config/group_registers.h"
#include "config/resources.h"

uint64_t cln_group_block(const struct cln_workload *work, const struct cln_config *c) {
    const bool shared = work->channels_last && c->lanes > 1 && c->segments > 1 && !cln_config_slice_groups(work, c);
    return shared ? (uint64_t)c->lanes * c->vec : 0;
}

uint64_t cln_group_part_rows(uint64_t channels_of_group, uint64_t block) {
    if (!block)
        return channels_of_group;
    return block % channels_of_group == 0 ? 1 : (channels_of_group + block - 2) / block + 1;
}

/* Forward, channels last: the parts of all groups of a block are few for each work-item, and few beside the elements that
 * the work-group reads. */
static bool merges_block(const struct cln_workload *work, const struct cln_config *c) {
    enum { MOST = 6, ELEMENTS = 8 }; /* parts of a work-item; elements for each part, at least */
    const uint64_t channels = work->channels_of_group, block = cln_group_block(work, c);
    if (!block || cln_config_row_positions(work, c) > 1)
        return false;
    const uint64_t groups = block / channels + 2; /* at most */
    const uint64_t parts = cln_product(groups, cln_product(cln_group_part_rows(channels, block), c->chunks));
    const uint64_t elements = cln_product(block, cln_divide_up(work->spatial, c->chunks));
    return parts <= cln_smaller(MOST * (uint64_t)c->lanes * c->segments, elements / ELEMENTS);
}

bool cln_group_merges(const struct cln_workload *work, const struct cln_config *c) {
    enum { MOST = 4, ELEMENTS = 8 }; /* parts of a lane; elements of a chunk for each part, at least */
    const uint64_t chunks = cln_config_channel_chunks(work, c);
    if (!chunks || c->lanes < 2)
        return false;
    if (work->channels_last)
        return !work->channel_sums && merges_block(work, c);
    const uint64_t elements = cln_divide_up(cln_divide_up(work->spatial, c->vec), chunks) * c->vec;
    const uint64_t most = MOST * (uint64_t)c->lanes;
    return cln_product(work->channels_of_group, chunks) <=
           (work->channel_sums ? cln_smaller(most, elements / ELEMENTS) : most);
}

/* --------------------------------------------------------------------------------------------------------- exchange */

/* Units of a group. */
static uint64_t units_of_group(const struct cln_workload *work, const struct cln_config *c) {
    return cln_product(cln_config_channel_chunks(work, c), work->channels_of_group);
}

/* Of all units, or with channels last of all slices. A piece is what a work-group takes at a time. */
static uint64_t pieces_of(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t span = cln_config_slice_groups(work, c);
    if (span)
        return cln_product(cln_product(work->rows, work->groups / span), c->chunks);
    if (cln_group_holds_pieces(work, c))
        return cln_product(cln_product(work->rows, work->groups), c->chunks);
    return cln_divide_up(cln_product(cln_product(work->rows, work->groups), units_of_group(work, c)), c->segments);
}

bool cln_group_can_exchange(const struct cln_workload *work, const struct cln_config *c) {
    enum { MOST_PIECES = 1 << 30 }; /* tickets are 32-bit numbers, up to two for each piece */
    const bool of_slices = cln_config_slice_groups(work, c) > 0 && work->x_size > 1; /* products round in several ways */
    const bool in_parts = work->channels_last ? of_slices : cln_group_holds_pieces(work, c) || cln_group_merges(work, c);
    return in_parts && c->chunks > 1 && work->real_size == sizeof(cl_float) && !work->y_measured &&
           pieces_of(work, c) <= MOST_PIECES;
}

static uint64_t pieces_of_group(const struct cln_workload *work, const struct cln_config *c) {
    return cln_larger(cln_divide_up(units_of_group(work, c), c->segments), 1);
}

/* Bytes of a piece's inputs. */
static uint64_t piece_bytes(const struct cln_workload *work, const struct cln_config *c) {
    return cln_larger(cln_product(work->group_size, work->held_size) / pieces_of_group(work, c), 1);
}

uint64_t cln_group_exchangers(const clnorm_device_info *device, const struct cln_workload *work,
                              const struct cln_config *c) {
    enum { ITEMS = 512 }; /* of a compute unit: more would need more of the cache, or of the registers */
    const uint64_t most = cln_group_most_registers(work, c);
    const uint64_t items = most ? CLN_REGISTERS_OF_UNIT / most : ITEMS;
    const uint64_t of_unit = cln_larger(items / ((uint64_t)c->lanes * c->segments), 1);
    const uint64_t tickets = pieces_of(work, c) * (work->channels_last || cln_group_holds_pieces(work, c) ? 1 : 2);
    return cln_smaller(of_unit * cln_larger(device->compute_units, 1), tickets);
}

/* A part of the cache; at least the pieces whose sums are under way, of which the backward has more as its sums take
 * longer, and more than a group, whose parts are needed together. */
static uint64_t wished_ahead(const clnorm_device_info *device, const struct cln_workload *work,
                             const struct cln_config *c) {
    const uint64_t exchangers = cln_group_exchangers(device, work, c), group = pieces_of_group(work, c);
    const uint64_t under_way = cln_larger(work->channel_sums ? exchangers * 3 / 4 : exchangers / 2, 1);
    return cln_larger(cln_facts_of(device).l2 / 6 / piece_bytes(work, c), under_way + group + group / 2);
}

uint64_t cln_group_ahead(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c) {
    if (c->row_split == CLN_ROW_SPLIT_NO_WAIT) /* parts are missing, and tests see that they are taken */
        return 1;
    return cln_larger(cln_smaller(wished_ahead(device, work, c), pieces_of(work, c)), 1);
}

/* Whether every lane has equally many vectors of a chunk, so that compilers know the lengths of loops. */
static bool has_even_shares(const struct cln_workload *work, const struct cln_config *c) {
    return work->spatial % cln_product(cln_config_channel_chunks(work, c), (uint64_t)c->lanes * c->vec) == 0;
}

/* Small pieces wait more than they load. So do uneven ones of the backward with 2-byte elements, whose arithmetic takes as
 * long as their loads. */
static bool loads_more_than_waits(const struct cln_workload *work, const struct cln_config *c) {
    enum { LEAST = 15000, SMALL = 2 }; /* bytes of x of a piece; bytes of an element */
    const bool slow = work->channel_sums && work->x_size <= SMALL && !has_even_shares(work, c);
    return !slow && piece_bytes(work, c) / work->held_size * work->x_size >= LEAST;
}

bool cln_group_gains_by_exchange(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c) {
    const struct cln_facts facts = cln_facts_of(device);
    const uint64_t x = cln_product(cln_product(work->group_size, work->groups), cln_product(work->rows, work->x_size));
    struct cln_config exchanging = *c;
    exchanging.row_split = CLN_ROW_SPLIT_EXCHANGE;
    return facts.ptx && !work->channels_last && !cln_group_holds_pieces(work, &exchanging) &&
           cln_group_can_exchange(work, c) && loads_more_than_waits(work, c) && x >= facts.l2 / 2 &&
           cln_product(wished_ahead(device, work, c), piece_bytes(work, c)) <= facts.l2 / 8 * 3;
}
