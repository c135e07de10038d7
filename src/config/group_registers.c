#include "config/group_registers.h"

#include "base/arithmetic.h"
#include "common/exchange_sizes.h"
#include "config/resources.h"

/* ------------------------------------------------------------------------------------------- slices of channels last */

/* Bytes that a slice has of a position, at least: rows of a whole slice are wide, middling or narrow, those of a piece wide
 * or narrow. */
enum { WIDE_ROW = 128, ROW = 64, NARROW_ROW = 32, WIDE_PIECE_ROW = 96, NARROW_PIECE_ROW = 64 };

/* The fewest groups that divide a sample's, whose channels are whole vectors, and which have so many bytes of a position at
 * least: whole sectors of a GPU's memory, or, with less than WIDE_ROW, parts of sectors too if they are a line of its
 * cache. All groups will do, as a sample's positions lie side by side. */
static uint64_t span_of(const struct cln_workload *work, uint64_t vec, uint64_t least) {
    enum { SECTOR = 32, LINE = 128, MOST = 4096 }; /* bytes; groups */
    for (uint64_t span = 1; span <= cln_smaller(work->groups, MOST); span++) {
        const uint64_t channels = span * work->channels_of_group, bytes = cln_product(channels, work->x_size);
        const bool fits = bytes % SECTOR == 0 ? bytes >= least : bytes >= LINE && least < WIDE_ROW;
        if (work->groups % span == 0 && channels % vec == 0 && (fits || span == work->groups))
            return span;
    }
    return 0;
}

uint64_t cln_slice_span(const struct cln_workload *work, uint64_t vec) {
    return span_of(work, vec, WIDE_ROW);
}

/* Of a work-group; without a choice of segments yet, of one. */
static uint64_t items_of(const struct cln_config *c) {
    return cln_product(c->lanes, cln_larger(c->segments, 1));
}

/* Whether a work-group has as many items as hold the most with ptx: fewer have no more registers each. */
static bool are_holders(const struct cln_config *c) {
    return c->isa == CLN_ISA_PTX && items_of(c) == CLN_HOLDERS;
}

/* Whether a lane's registers hold so many elements of a slice: x and a residual, or in the backward x and dn. */
static bool holds_slice(const struct cln_workload *work, const struct cln_config *c, uint64_t elements) {
    enum { HOLDERS = 672, HOLDERS_BACKWARD = 600, BACKWARD = 320 }; /* bytes */
    enum { FORWARD = 80, WIDE = 512 };                              /* elements; items with half as many registers */
    const uint64_t inputs = work->held_size > work->x_size ? 2 : 1, words = work->real_size / sizeof(float);
    const uint64_t bytes = cln_product(elements, work->channel_sums ? work->x_size + work->real_size : work->held_size);
    const uint64_t share = items_of(c) > WIDE || (work->channel_sums && c->isa != CLN_ISA_PTX) ? 2 : 1;
    if (are_holders(c))
        return bytes <= (work->channel_sums ? HOLDERS_BACKWARD : HOLDERS);
    return work->channel_sums ? bytes <= BACKWARD / share : elements <= FORWARD / share / inputs / words;
}

/* Elements of a lane, if it can hold those of a slice of so many groups, else 0. A large slice has few work-groups beside
 * it, and two passes in chunks take less time. */
static uint64_t held_of_span(const struct cln_workload *work, const struct cln_config *c, uint64_t span) {
    enum { MOST = 168 }; /* elements */
    const uint64_t channels = span * work->channels_of_group, vectors = channels / c->vec;
    if (!span || vectors > c->lanes || span > c->lanes)
        return 0;
    const uint64_t elements = cln_product(cln_divide_up(work->spatial, c->lanes / vectors), c->vec);
    return elements <= MOST && holds_slice(work, c, elements) ? elements : 0;
}

uint64_t cln_piece_span(const struct cln_workload *work, const struct cln_config *c, bool wide) {
    return span_of(work, c->vec, wide ? WIDE_PIECE_ROW : NARROW_PIECE_ROW);
}

uint64_t cln_piece_positions(const struct cln_workload *work, const struct cln_config *c, bool wide) {
    enum { BYTES = 32 << 10, MOST_BYTES = 256, MOST = 64 }; /* of a piece's inputs; of those of a lane; elements */
    enum { PORTABLE = 64 };                                 /* bytes of a lane */
    const uint64_t span = cln_piece_span(work, c, wide), vectors = span * work->channels_of_group / c->vec;
    const uint64_t sums = work->channel_sums ? 2 * span : span; /* that lanes of their own add up */
    if (!span || vectors > c->lanes || sums > c->lanes || c->segments > 1)
        return 0;
    const uint64_t bytes = c->isa == CLN_ISA_PTX ? cln_smaller(BYTES / c->lanes, MOST_BYTES) : PORTABLE;
    return cln_smaller(bytes / work->held_size, MOST) / c->vec * (c->lanes / vectors);
}

static uint64_t held_span(const struct cln_workload *work, const struct cln_config *c, bool wide) {
    const bool held = c->chunks > 1 && cln_divide_up(work->spatial, c->chunks) <= cln_piece_positions(work, c, wide);
    return held ? cln_piece_span(work, c, wide) : 0;
}

/* Chunks of as many positions as registers hold, of wide rows, or of narrow ones if those exchange too many numbers. */
static uint64_t piece_groups(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t wide = held_span(work, c, true), narrow = held_span(work, c, false);
    return wide && (!narrow || cln_product(wide, c->chunks) <= CLN_MOST_RECEIVED) ? wide : narrow;
}

/* Wide rows are read faster, but make large slices: rows are narrower where lanes would hold many elements. */
uint64_t cln_config_slice_groups(const struct cln_workload *work, const struct cln_config *c) {
    enum { FEW = 64 }; /* elements of a lane with wide rows */
    if (!work->channels_last || c->lanes < 2 || !c->vec)
        return 0;
    if (c->chunks != 1)
        return cln_exchanges(c) ? piece_groups(work, c) : 0;
    const uint64_t wide = cln_slice_span(work, c->vec), held = held_of_span(work, c, wide);
    if (!are_holders(c) || (held && held <= FEW))
        return held ? wide : 0;
    const uint64_t span = span_of(work, c->vec, ROW), narrow = span_of(work, c->vec, NARROW_ROW);
    return held_of_span(work, c, span) ? span : held_of_span(work, c, narrow) ? narrow : 0;
}

bool cln_slice_is_slow(const struct cln_workload *work, const struct cln_config *c) {
    enum { MANY = 60, MANY_BACKWARD = 48 }; /* elements */
    const uint64_t span = cln_config_slice_groups(work, c), channels = span * work->channels_of_group;
    const uint64_t many = work->channel_sums ? MANY_BACKWARD : MANY;
    return span < cln_piece_span(work, c, true) && cln_product(channels, work->spatial) > many * c->lanes;
}

uint64_t cln_slice_bytes(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t span = cln_config_slice_groups(work, c), lanes = c->lanes;
    const uint64_t reals =
        work->channel_sums ? 2 * (lanes * c->vec + span * (work->channels_of_group + 1)) : lanes * (c->vec + 1) + 2 * span;
    const uint64_t words =
        c->chunks > 1 ? cln_product(2 * span, c->chunks) + lanes + EXCHANGE_BOARD : 0; /* of an exchange */
    return cln_product(c->segments, reals * work->real_size + cln_product(words, sizeof(cl_uint))) +
           cln_scratch_bytes(work, c);
}

uint64_t cln_last_bytes(const struct cln_workload *work, const struct cln_config *c) {
    if (cln_config_slice_groups(work, c))
        return cln_slice_bytes(work, c);
    return work->channels_last && c->lanes > 1 && c->segments > 1
               ? 2 * (uint64_t)c->lanes * c->segments * (c->vec + 1) * work->real_size
               : 0;
}

/* --------------------------------------------------------------------------------------- segments of channels first */

uint64_t cln_held_elements(const struct cln_workload *work, const struct cln_config *c, uint64_t lanes) {
    enum { PORTABLE = 32, WIDE = 40, MIDDLE = 80, NARROW = 200, VEC = 8 }; /* elements of a lane; of a vector, if any */
    const uint64_t inputs = work->held_size > work->x_size ? 2 : 1, words = work->real_size / sizeof(float);
    const uint64_t of_ptx = lanes > 2 * (uint64_t)CLN_HOLDERS ? WIDE : lanes > CLN_HOLDERS ? MIDDLE : NARROW;
    const uint64_t of_lane = (c->isa == CLN_ISA_PTX ? of_ptx : PORTABLE) / inputs / words;
    return lanes * (of_lane - of_lane % cln_or_else(c->vec, VEC));
}

/* Registers of a lane for x and dn of a segment, or for x and dy of a piece. */
uint64_t cln_piece_registers(const struct cln_workload *work, const struct cln_config *c,
                             const struct cln_channel_piece *piece) {
    const uint64_t x = cln_registers_of(c->vec * work->x_size), dn = cln_registers_of(c->vec * work->real_size);
    const uint64_t rounds = cln_divide_up(piece->channels, c->lanes / piece->lanes);
    const uint64_t vectors = cln_divide_up(cln_divide_up(work->spatial, c->vec), piece->chunks);
    const uint64_t of_vector = c->chunks == 1 ? x + dn : cln_registers_of(c->vec * work->held_size);
    return cln_product(cln_product(rounds, cln_divide_up(vectors, piece->lanes)), of_vector);
}

/* With the set that needs the fewest registers, of those that read whole sectors of memory. */
static struct cln_channel_piece with_best_lanes(const struct cln_workload *work, const struct cln_config *c,
                                                struct cln_channel_piece piece) {
    enum { SECTOR = 32 }; /* bytes */
    struct cln_channel_piece best = piece;
    for (piece.lanes /= 2; piece.lanes > 1 && piece.lanes * c->vec * work->x_size >= SECTOR; piece.lanes /= 2)
        if (cln_piece_registers(work, c, &piece) <= cln_piece_registers(work, c, &best))
            best = piece;
    return best;
}

/* Whether work-groups that exchange sums may hold pieces: elements of 2 bytes take as much arithmetic as those of 4, and
 * half of their loads, for which a second read from the L2 cache has more work-items. Only x, and in the backward dy, are
 * held. */
static bool may_hold_pieces(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t inputs = work->channel_sums ? 2 : 1;
    return !work->channels_last && cln_exchanges(c) && c->chunks > 1 && c->lanes > 1 && c->segments == 1 && c->vec &&
           work->x_size == sizeof(cl_float) && work->held_size == inputs * sizeof(cl_float);
}

/* Registers that a lane has for each of two pieces: with so few of them several work-groups run at once. */
static uint64_t registers_of_piece(const struct cln_workload *work, const struct cln_config *c) {
    enum { FORWARD = 36, BACKWARD = 56, BACKWARD_WIDE = 40, PORTABLE = 16, WIDE = 128 }; /* lanes more than WIDE */
    const uint64_t backward = c->lanes > WIDE ? BACKWARD_WIDE : BACKWARD;
    return c->isa != CLN_ISA_PTX ? PORTABLE : work->channel_sums ? backward : FORWARD;
}

struct cln_channel_piece cln_channel_piece(const struct cln_workload *work, const struct cln_config *c) {
    enum { MOST = 120, MOST_WIDE = 84, MOST_PORTABLE = 64, WIDE = 256 }; /* registers, for a segment; lanes */
    static const struct cln_channel_piece none = {0};
    const uint64_t channels = work->channels_of_group;
    struct cln_channel_piece piece = {channels, 1, c->lanes};
    if (work->channels_last || !work->channel_sums || !c->chunks || c->lanes < 2 || work->spatial % c->vec)
        return none;
    if (c->chunks > 1) {
        const uint64_t chunks = cln_larger(c->chunks / channels, 1);
        if (!may_hold_pieces(work, c) || (c->chunks % channels && channels % c->chunks) || work->spatial / c->vec % chunks)
            return none;
        piece = (struct cln_channel_piece){cln_larger(channels / c->chunks, 1), chunks, c->lanes};
    }
    const struct cln_channel_piece best = with_best_lanes(work, c, piece);
    const uint64_t of_segment = c->isa != CLN_ISA_PTX ? MOST_PORTABLE : c->lanes > WIDE ? MOST_WIDE : MOST;
    const uint64_t most = c->chunks > 1 ? registers_of_piece(work, c) : of_segment;
    return cln_piece_registers(work, c, &best) <= most ? best : none;
}

bool cln_group_holds_pieces(const struct cln_workload *work, const struct cln_config *c) {
    if (!may_hold_pieces(work, c))
        return false;
    if (work->channel_sums)
        return cln_channel_piece(work, c).lanes;
    const uint64_t vectors = work->group_size / c->vec;
    return work->group_size % c->vec == 0 && vectors % c->chunks == 0 &&
           cln_product(cln_divide_up(vectors / c->chunks, c->lanes), c->vec) <= registers_of_piece(work, c);
}

/* Registers of a lane for its share of a piece. */
static uint64_t held_registers(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t span = cln_config_slice_groups(work, c);
    if (!span && work->channel_sums) {
        const struct cln_channel_piece piece = cln_channel_piece(work, c);
        return cln_piece_registers(work, c, &piece);
    }
    const uint64_t row = span * work->channels_of_group / c->vec; /* vectors */
    const uint64_t vectors = span ? cln_divide_up(cln_divide_up(work->spatial, c->chunks), c->lanes / row)
                                  : cln_divide_up(work->group_size / c->vec / c->chunks, c->lanes);
    return cln_registers_of(cln_product(vectors * c->vec, work->held_size));
}

uint64_t cln_group_most_registers(const struct cln_workload *work, const struct cln_config *c) {
    const bool holds = cln_exchanges(c) && (cln_config_slice_groups(work, c) || cln_group_holds_pieces(work, c));
    return holds ? cln_most_registers(c, held_registers(work, c)) : 0;
}
