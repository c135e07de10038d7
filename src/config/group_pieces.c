#include "config/group_pieces.h"

#include "base/arithmetic.h"
#include "config/group_parts.h"
#include "config/group_registers.h"

/* Whether nothing is forced that the order of sums depends on. */
static bool is_free(const struct cln_config *c) {
    return !c->row_split && !c->chunks && !c->lanes && !c->vec && !c->segments && c->iterations <= 1;
}

/* The most chunks of a slice that are fast. Work-groups hold all of them at the same time: three of a compute unit, or one
 * where rows are narrow. Every work-group receives the numbers of all chunks, which are few beside the elements of one. */
static uint64_t most_chunks(const struct cln_choice *choice, const struct cln_config *c, bool wide) {
    enum { OF_WIDE = 3, OF_NARROW = 1 }; /* work-groups of a compute unit */
    const uint64_t at_once = (wide ? OF_WIDE : OF_NARROW) * (uint64_t)choice->facts.compute_units;
    return cln_smaller(at_once, CLN_MOST_RECEIVED / cln_larger(cln_piece_span(choice->work, c, wide), 1));
}

/* Elements of 2 bytes take as much arithmetic as those of 4, and half of their loads, for which two passes have more
 * work-items. Only x, and in the backward dy, are held. Single elements, and vectors that span groups, take longer than two
 * passes. At most a quarter of the lanes may be idle. */
static bool is_fast(const struct cln_choice *choice, const struct cln_config *c, bool wide) {
    const struct cln_workload *const work = choice->work;
    const uint64_t vectors = cln_piece_span(work, c, wide) * work->channels_of_group / c->vec;
    const uint64_t inputs = work->channel_sums ? 2 : 1;
    return work->channels_of_group % c->vec == 0 && c->vec > 1 && work->x_size == sizeof(cl_float) &&
           work->held_size == inputs * work->x_size && 4 * (c->lanes / vectors * vectors) >= 3 * (uint64_t)c->lanes &&
           c->chunks <= most_chunks(choice, c, wide);
}

/* The fewest chunks of at most so many positions, or up to half more, but no more than most, that are equally large:
 * compilers know the lengths of their loops. */
static uint64_t chunks_of(uint64_t spatial, uint64_t positions, uint64_t most) {
    enum { TRIES = 256 };
    const uint64_t least = cln_larger(cln_divide_up(spatial, positions), 2);
    const uint64_t last = cln_smaller(least + cln_smaller(least / 2, TRIES), most);
    for (uint64_t chunks = least; chunks <= last; chunks++)
        if (spatial % chunks == 0)
            return chunks;
    return least;
}

/* Fills in the chunks of slices whose rows are wide or narrow, even ones if those are at most so many, if registers hold
 * them, and if they are forced or fast. Returns whether it did. */
static bool take_chunks(const struct cln_choice *choice, bool forced, bool wide, uint64_t most, struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t positions = cln_piece_positions(work, c, wide);
    if (!positions || cln_divide_up(work->spatial, positions) > UINT32_MAX / 2)
        return false;
    struct cln_config own = *c;
    own.chunks = (uint32_t)cln_or_else(c->chunks, chunks_of(work->spatial, positions, most));
    if (cln_config_slice_groups(work, &own) != cln_piece_span(work, c, wide) || !(forced || is_fast(choice, &own, wide)))
        return false;
    *c = own;
    return true;
}

/* A vector of one group has one sum. Rows are narrow where the numbers of wide ones would be too many. */
void cln_group_choose_slice_pieces(const struct cln_choice *choice, uint64_t vec, struct cln_config *c) {
    enum { WAYS = 4, LANES = 128 }; /* with more lanes, a compute unit may have registers for a single work-group */
    const struct cln_workload *const work = choice->work;
    const bool forced = cln_exchanges(c), automatic = is_free(c) && choice->facts.ptx && c->isa == CLN_ISA_PTX;
    const uint64_t of_group = cln_smaller(vec, cln_lowest_bit(work->channels_of_group));
    struct cln_config own = *c;
    if (!work->channels_last || work->real_size != sizeof(cl_float) || work->y_measured || !(automatic || forced))
        return;
    own.vec = (uint32_t)cln_or_else(c->vec, of_group > 1 ? of_group : vec);
    own.lanes = (uint32_t)cln_or_else(c->lanes, cln_smaller(choice->facts.most_lanes, LANES));
    own.segments = (uint32_t)cln_or_else(c->segments, 1);
    own.row_split = (uint32_t)cln_or_else(c->row_split, CLN_ROW_SPLIT_EXCHANGE);
    bool taken = false;
    for (unsigned way = 0; way < WAYS && !taken; way++) { /* wide, narrow; then with fewer chunks */
        const bool wide = way % 2 == 0;
        taken = take_chunks(choice, forced, wide, way < 2 ? UINT64_MAX : most_chunks(choice, &own, wide), &own);
    }
    if (taken && (forced || cln_group_can_exchange(work, &own)))
        *c = own;
}

/* Whether at most a quarter of the lanes' registers for a piece is idle. vectors: of the piece; most: of a lane. */
static bool are_busy(const struct cln_config *c, uint64_t vectors, uint64_t most) {
    return 4 * vectors >= 3 * cln_product(c->lanes, most);
}

/* Whether a config's pieces are held, by lanes that are busy. */
static bool is_good(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t vectors = work->group_size / c->vec / c->chunks;
    if (!cln_group_holds_pieces(work, c))
        return false;
    if (!work->channel_sums)
        return are_busy(c, vectors, cln_divide_up(vectors, c->lanes));
    const struct cln_channel_piece piece = cln_channel_piece(work, c);
    return are_busy(c, vectors, cln_piece_registers(work, c, &piece) / c->vec / 2);
}

/* The fewest good chunks, up to so many; 0: there are none. */
static uint32_t good_chunks(const struct cln_workload *work, struct cln_config *c, uint64_t most) {
    for (c->chunks = 2; c->chunks <= most; c->chunks++)
        if (is_good(work, c))
            return c->chunks;
    return 0;
}

void cln_group_choose_segment_pieces(const struct cln_choice *choice, struct cln_config *c) {
    enum { FEWEST = 2, WIDEST = 4 };        /* elements of a vector */
    enum { LANES = 128, MOST_LANES = 256 }; /* all pieces of a group are held at once: more if they are large */
    const struct cln_workload *const work = choice->work;
    struct cln_config own = *c;
    own.vec = (uint32_t)cln_smaller(cln_lowest_bit(work->alignment | work->spatial), WIDEST);
    if (!is_free(c) || !choice->facts.ptx || c->isa != CLN_ISA_PTX || work->y_measured || own.vec < FEWEST ||
        choice->facts.most_lanes < MOST_LANES)
        return;
    own.segments = 1;
    own.row_split = CLN_ROW_SPLIT_EXCHANGE;
    for (own.lanes = LANES; own.lanes <= MOST_LANES; own.lanes *= 2)
        if (good_chunks(work, &own, (uint64_t)choice->facts.compute_units * (own.lanes / LANES))) {
            if (cln_group_can_exchange(work, &own))
                *c = own;
            return;
        }
}
