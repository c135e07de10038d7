#include "config/group_layout.h"

#include "base/arithmetic.h"
#include "config/group_registers.h"

/* The fewest positions with which a row is whole vectors of any width. Where there is no such number, a few positions, of
 * those with the widest vectors. Each element of a row has sums of its own, so a sample has several rows, and more of them
 * where positions only make a row longer. Devices that need aligned vectors are content with those of 4 elements. The lanes
 * of a slice have one position each at a time. */
uint64_t cln_config_row_positions(const struct cln_workload *work, const struct cln_config *c) {
    enum { VECTOR = 64, ALIGNED = 4, FEW = 16 };        /* bytes; elements; positions */
    enum { ROWS = 8, LONG_ROWS = 32, ELEMENTS = 1024 }; /* least rows; most elements of a row: a lane has its vectors */
    const uint64_t widest = VECTOR / work->real_size;
    uint64_t best = 1, best_vec = cln_lowest_bit(work->channels);
    if (!work->channels_last || work->channels >= widest || (best_vec >= ALIGNED && !work->any_address) ||
        cln_config_slice_groups(work, c))
        return 1;
    const uint64_t most = cln_smaller(work->spatial / ROWS, ELEMENTS / cln_larger(work->channels, 1));
    for (uint64_t positions = 2; positions <= most && best_vec < widest; positions++) {
        const uint64_t vec = cln_smaller(cln_lowest_bit(work->channels * positions), widest);
        const bool few = positions <= FEW || (best == 1 && work->any_address);
        const bool longer = vec == best_vec && few && work->spatial / positions >= LONG_ROWS;
        if (work->spatial % positions == 0 && (vec > best_vec || longer)) {
            best = positions;
            best_vec = vec;
        }
    }
    return best;
}

uint64_t cln_group_row(const struct cln_workload *work, const struct cln_config *c, bool lanes) {
    const bool whole = lanes && !work->channel_sums && (c->chunks == 1 || cln_group_holds_pieces(work, c));
    if (work->channels_last)
        return work->channels * cln_config_row_positions(work, c);
    return whole ? work->group_size : work->spatial;
}

uint64_t cln_group_rows(const struct cln_workload *work, const struct cln_config *c) {
    return work->spatial / cln_config_row_positions(work, c);
}

uint64_t cln_config_channel_chunks(const struct cln_workload *work, const struct cln_config *c) {
    if (work->channels_last)
        return cln_config_slice_groups(work, c) ? 0 : c->chunks;
    return c->chunks > 1 && !cln_group_holds_pieces(work, c) ? cln_divide_up(c->chunks, work->channels_of_group) : 0;
}

bool cln_group_begins_anywhere(const struct cln_workload *work, const struct cln_config *c, bool lanes) {
    return lanes && !work->channels_last && cln_config_channel_chunks(work, c);
}

uint64_t cln_group_divided_by_vec(const struct cln_workload *work, const struct cln_config *c, bool lanes) {
    const uint64_t row = cln_group_row(work, c, lanes);
    return cln_group_begins_anywhere(work, c, lanes) ? work->alignment : cln_lowest_bit(work->alignment | row);
}
