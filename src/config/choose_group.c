/* Configs of group norm. The order of a sum depends on the chunks, so they must not depend on the number of samples. Only
 * the way in which outputs are stored does, and with channels first whether work-groups exchange sums. */
#include "base/arithmetic.h"
#include "config/candidates.h"
#include "config/check.h"
#include "config/config.h"
#include "config/group_layout.h"
#include "config/group_parts.h"
#include "config/group_pieces.h"
#include "config/group_registers.h"

/* Short vectors that divide a channel are better than wide ones that reach across channels, as each element's channel
 * need not be found. */
enum { SHORT = 4 };

enum { HELD_OF_LANE = 40 }; /* elements of a segment of channels first that a GPU's lane holds, as a rule */

/* Whether a GPU takes less time in chunks, which read x twice by wide vectors, than to find the channel of each element of
 * a vector in a held segment, or in the backward to read single elements of it. */
static bool is_faster_in_chunks(const struct cln_choice *choice, const struct cln_config *c) {
    enum { SMALL = 2, LARGE_CHANNEL = 1536, SEVERAL = 2 }; /* bytes of an element; positions; elements */
    const struct cln_workload *const work = choice->work;
    const uint64_t widest = cln_or_else(c->vec, cln_power_of_two_at_most(cln_widest_vector(choice, c)));
    const uint64_t least = cln_or_else(c->vec, cln_smaller(widest, work->channel_sums ? SEVERAL : SHORT));
    return !choice->facts.alone && work->channels_of_group > 1 && work->x_size <= SMALL && work->spatial >= LARGE_CHANNEL &&
           work->spatial % least && work->alignment % widest == 0;
}

enum { FEW_CHANNELS = 4 }; /* of a GPU's lane that keeps numbers for each */

/* The vectors of a slice's lanes. A lane keeps x, and numbers for each element of its vector, in the backward two sums: few
 * channels let more work-groups run at once. */
static uint64_t vec_of_slice(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t channels = choice->work->channels;
    const uint64_t even = cln_config_element_aligned(choice->device, c) ? channels : channels | choice->work->alignment;
    return cln_smaller(cln_power_of_two_at_most(cln_smaller(cln_widest_vector(choice, c), FEW_CHANNELS)),
                       cln_lowest_bit(even));
}

/* Lanes that together hold a slice with channels last in the registers of a GPU; 0: no work-group can. A small slice has
 * few, so that a work-group has several slices; with ptx more than CLN_HOLDERS have a slice only if fewer cannot.
 * Forced lanes are those; whether the local memory suffices for them, check tells. */
static uint64_t lanes_of_slice(const struct cln_choice *choice, const struct cln_config *c) {
    enum { HELD = 60, HELD_BACKWARD = 40, FEW = 16 }; /* elements of a lane: at most as a rule, and of a small slice */
    enum { WARP = 32 };
    const struct cln_workload *const work = choice->work;
    const uint64_t held = work->channel_sums ? HELD_BACKWARD : HELD / (work->real_size / sizeof(float));
    if (choice->facts.alone || !work->channels_last || c->chunks > 1)
        return 0;
    struct cln_config own = *c;
    own.chunks = 1;
    own.segments = c->segments ? c->segments : 1;
    own.vec = (uint32_t)cln_or_else(c->vec, vec_of_slice(choice, &own));
    if (c->lanes)
        return cln_config_slice_groups(work, &own) ? c->lanes : 0;
    const uint64_t span = cln_slice_span(work, own.vec), channels = span * work->channels_of_group;
    const uint64_t elements = cln_product(channels, work->spatial);
    if (!span)
        return 0;
    const uint64_t few = cln_larger(cln_smaller(cln_divide_up(elements, FEW), WARP), 2);
    const uint64_t least = cln_larger(cln_larger(channels / own.vec, span), few);
    const uint64_t wished = cln_divide_up(elements, held);
    const uint64_t start = c->isa == CLN_ISA_PTX ? cln_smaller(wished, CLN_HOLDERS) : wished;
    const uint64_t most = cln_smaller(choice->facts.most_lanes, choice->device->max_work_group_size / own.segments);
    const uint64_t room = choice->device->local_memory / (own.segments > 1 ? 2 : 1);
    for (uint64_t lanes = cln_power_of_two_at_least(cln_larger(start, least)); lanes <= most; lanes *= 2) {
        own.lanes = (uint32_t)lanes;
        if (cln_config_slice_groups(work, &own))
            return cln_slice_bytes(work, &own) <= room ? lanes : 0;
    }
    return 0;
}

/* Where vectors may reach across channels, a segment has at least two of them, so that several lanes take it. Where a chunk
 * begins anywhere within a vector, a channel has many of them, since its ends take as long as several. With channels last,
 * a GPU's lane keeps numbers for each element of its vector, which is short therefore. */
static uint64_t vec_of(const struct cln_choice *choice, const struct cln_config *c) {
    enum { MANY = 128 };
    const struct cln_workload *const work = choice->work;
    if (lanes_of_slice(choice, c))
        return vec_of_slice(choice, c);
    const bool several = c->lanes ? c->lanes > 1 : !choice->facts.alone; /* lanes, with which vectors divide a row */
    const uint64_t row = cln_group_row(work, c, several);
    const bool across = !work->channels_last && row > work->spatial;
    const bool keeps = work->channels_last && !choice->facts.alone;
    const uint64_t most = across ? row / 2 : keeps ? FEW_CHANNELS : UINT64_MAX;
    const uint64_t widest = cln_power_of_two_at_most(cln_smaller(cln_widest_vector(choice, c), most));
    if (cln_config_element_aligned(choice->device, c))
        return cln_smaller(widest, several ? cln_lowest_bit(row) : cln_power_of_two_at_most(row));
    const uint64_t of_channel = cln_smaller(widest, cln_lowest_bit(work->alignment | work->spatial));
    if (across && of_channel >= SHORT)
        return of_channel;
    const uint64_t even = cln_smaller(widest, cln_lowest_bit(work->alignment | row));
    const uint64_t few = cln_power_of_two_at_most(cln_larger(work->spatial / MANY, 1));
    return cln_group_begins_anywhere(work, c, several)
               ? cln_larger(even, cln_smaller(cln_smaller(widest, work->alignment), few))
               : even;
}

/* Backward: lanes that together hold a segment with channels first in the registers of a GPU; 0: no work-group can. There
 * are several for each channel, or up to a WARP of LEAST elements each if those are more; few are idle, and they have few
 * registers each; more than MANY run only where fewer cannot hold the segment. */
static uint64_t lanes_of_held(const struct cln_choice *choice, const struct cln_config *c) {
    enum { WARP = 32, OF_CHANNEL = 4, MANY = 256, MOST = 512 }; /* lanes */
    enum { LEAST = 6, FEW = 60 };                               /* elements; registers */
    const struct cln_workload *const work = choice->work;
    struct cln_config own = *c;
    uint64_t best = 0, best_cost = UINT64_MAX;
    if (choice->facts.alone || work->channels_last || !work->channel_sums)
        return 0;
    own.chunks = 1;
    own.vec = (uint32_t)cln_or_else(c->vec, vec_of(choice, c));
    const uint64_t all = cln_larger(cln_power_of_two_at_least(cln_divide_up(work->group_size, own.vec)), 2);
    const uint64_t of_channel = cln_power_of_two_at_least(cln_divide_up(work->spatial, own.vec));
    const uint64_t several =
        cln_product(cln_power_of_two_at_most(work->channels_of_group), cln_smaller(of_channel, OF_CHANNEL));
    const uint64_t last = cln_or_else(c->lanes, cln_smaller(choice->facts.most_lanes, MOST));
    const uint64_t fill = cln_power_of_two_at_most(cln_larger(cln_smaller(work->group_size / LEAST, WARP), 1));
    const uint64_t least = cln_smaller(cln_smaller(all, last), cln_smaller(cln_larger(several, fill), MANY));
    for (uint64_t lanes = cln_or_else(c->lanes, least); lanes <= last && !(best && lanes > MANY); lanes *= 2) {
        own.lanes = (uint32_t)lanes;
        const struct cln_channel_piece piece = cln_channel_piece(work, &own);
        const uint64_t set = piece.lanes, registers = set ? cln_piece_registers(work, &own, &piece) : 0;
        const uint64_t cost = lanes * registers * (registers > FEW ? 9 : 8); /* an eighth more where they are many */
        if (set && cost < best_cost) {
            best = lanes;
            best_cost = cost;
        }
    }
    return best;
}

/* Whether a segment would have more than CLN_HOLDERS lanes, each with as many single elements as lanes_of_first gives it:
 * compilers then spill registers. */
static bool has_many_singles(const struct cln_choice *choice, const struct cln_config *c) {
    struct cln_config whole = *c;
    whole.chunks = 1;
    return choice->work->group_size > (uint64_t)CLN_HOLDERS * HELD_OF_LANE &&
           cln_or_else(c->vec, vec_of(choice, &whole)) == 1;
}

/* Whether a work-group can keep a segment between its two uses: in a cache, or in a GPU's registers. */
static bool keeps_segment(const struct cln_choice *choice, const struct cln_config *c) {
    enum { CPU_SEGMENT = 1 << 20, LANE = 160 }; /* bytes */
    const struct cln_workload *const work = choice->work;
    if (is_faster_in_chunks(choice, c) || (!choice->facts.alone && !work->channel_sums && has_many_singles(choice, c)))
        return false;
    if (!choice->facts.alone && work->channel_sums)
        return lanes_of_held(choice, c);
    const uint64_t room = choice->facts.alone ? CPU_SEGMENT : LANE * choice->facts.most_lanes;
    const uint64_t holders = cln_or_else(c->lanes, cln_smaller(CLN_HOLDERS, choice->facts.most_lanes));
    return work->group_size <= room / work->held_size ||
           (!choice->facts.alone && work->group_size <= cln_held_elements(work, c, holders));
}

/* Vectors that the lanes share: those of a segment, a channel, a chunk of a channel, or a row of channels last. */
static uint64_t shared_vectors(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t vectors = cln_divide_up(cln_group_row(work, c, true), c->vec);
    const bool in_chunks = !work->channels_last && c->chunks > 1;
    return in_chunks ? cln_divide_up(vectors, cln_config_channel_chunks(work, c)) : vectors;
}

/* Channels last: the power of two that leaves the fewest lanes idle, of those that read whole sectors of memory. */
static uint64_t lanes_of_last(const struct cln_choice *choice, const struct cln_config *c) {
    enum { LEAST = 8, LEAST_BYTES = 64, MOST = 32 };
    const uint64_t vectors = shared_vectors(choice->work, c), most = choice->facts.most_lanes;
    const uint64_t least = cln_larger(LEAST, LEAST_BYTES / (c->vec * choice->work->x_size));
    const uint64_t all = cln_larger(cln_power_of_two_at_least(vectors), 2);
    uint64_t best = cln_smaller(cln_smaller(least, all), most);
    for (uint64_t lanes = best; lanes <= cln_smaller(MOST, most); lanes *= 2)
        if (cln_divide_up(vectors, lanes) * lanes <= cln_divide_up(vectors, best) * best)
            best = lanes;
    return best;
}

/* Enough segments for a work-group, within half of the local memory. */
static uint64_t segments_of(const struct cln_choice *choice, const struct cln_config *c) {
    enum { ITEMS = 128 };
    struct cln_config own = *c;
    if (choice->facts.alone || c->reduce == CLN_REDUCE_SUBGROUP)
        return 1;
    own.segments = (uint32_t)cln_larger(cln_smaller(ITEMS, choice->facts.most_lanes) / c->lanes, 1);
    while (own.segments > 1 && cln_last_bytes(choice->work, &own) > choice->device->local_memory / 2)
        own.segments /= 2;
    return own.segments;
}

enum { CPU_ELEMENTS = 1 << 16 }; /* of a chunk on a CPU */

/* Halves a number of rows until it is at most so many times the square root of all rows. */
static uint64_t halved(uint64_t rows, uint64_t times, uint64_t all) {
    while (rows > 1 && rows * rows / (times * times) > all)
        rows /= 2;
    return rows;
}

/* The largest number of chunks, from half of a number up to it, with equally many rows for each phase, or else that number:
 * compilers know the lengths of such loops. */
static uint64_t even_chunks(uint64_t chunks, uint64_t phases, uint64_t rows) {
    for (uint64_t even = chunks; even >= cln_divide_up(chunks, 2); even--)
        if (rows % cln_product(even, phases) == 0)
            return even;
    return chunks;
}

/* Chunks of a sample's rows with channels last, on a GPU. A small image has smaller chunks, so that they occupy the device.
 * Where vectors are narrow, or channels few, a chunk has more rows, as a work-group of few elements takes as long as a
 * larger one. */
static uint64_t gpu_chunks(const struct cln_choice *choice, const struct cln_config *c) {
    enum { ROWS = 64, ROWS_BACKWARD = 128, LEAST = 16, MOST = 512 };
    enum { ELEMENTS = 8192, ELEMENTS_BACKWARD = 4096 }; /* of the lanes that take a chunk */
    const struct cln_workload *const work = choice->work;
    const uint64_t all = cln_group_rows(work, c);
    struct cln_config own = *c;
    own.chunks = 2; /* any number of several */
    own.vec = (uint32_t)vec_of(choice, c);
    own.lanes = (uint32_t)cln_or_else(c->lanes, lanes_of_last(choice, &own));
    own.segments = (uint32_t)cln_or_else(c->segments, segments_of(choice, &own));
    const uint64_t elements = work->channel_sums ? ELEMENTS_BACKWARD : ELEMENTS;
    const uint64_t wide = cln_larger(halved(work->channel_sums ? ROWS_BACKWARD : ROWS, 2, all), LEAST);
    const uint64_t narrow = halved(elements / own.lanes / own.vec, 6, all);
    const uint64_t chunks = cln_smaller(cln_divide_up(all, cln_larger(wide, narrow)), MOST);
    return narrow > wide ? even_chunks(chunks, own.segments, all) : chunks;
}

/* The same on a CPU. Rows of several positions are long, so that few of them make a chunk. */
static uint64_t cpu_rows(const struct cln_workload *work, const struct cln_config *c) {
    enum { ROWS = 256 };
    const uint64_t positions = cln_config_row_positions(work, c);
    return positions > 1 ? cln_smaller(CPU_ELEMENTS / (positions * work->channels), ROWS) : ROWS;
}

/* A chunk is large compared with its sums, and small enough that there are chunks for the whole device. */
static uint64_t chunks_of(const struct cln_choice *choice, const struct cln_config *c) {
    enum { GPU_ELEMENTS = 1 << 12 };
    enum { LARGE = 1 << 24 }; /* elements of a sample that has chunks for the whole device if they are twice as large */
    const struct cln_workload *const work = choice->work;
    const bool alone = choice->facts.alone;
    if (!c->lanes && lanes_of_slice(choice, c))
        return 1;
    if (work->channels_last)
        return alone ? cln_smaller(cln_divide_up(cln_group_rows(work, c), cpu_rows(work, c)), UINT32_MAX)
                     : gpu_chunks(choice, c);
    if (keeps_segment(choice, c))
        return 1;
    const bool large = cln_product(work->channels, work->spatial) >= LARGE;
    const uint64_t elements = alone ? CPU_ELEMENTS : large ? 2 * GPU_ELEMENTS : GPU_ELEMENTS;
    const uint64_t of_channel = cln_divide_up(work->spatial, elements);
    return cln_larger(cln_smaller(of_channel * work->channels_of_group, UINT32_MAX), cln_smaller(work->group_size, 2));
}

/* Channels first: lanes that hold a segment, or take a chunk. Few of them have enough loads under way each. Where a segment
 * is too large for the registers of so many lanes, fewer with more registers may hold it; where vectors are narrow, only
 * they do without spills. A single lane would not take the elements before a chunk's first whole vector. */
static uint64_t lanes_of_first(const struct cln_choice *choice, const struct cln_config *c) {
    enum { VECTORS = 10, FEW = 8, WARP = 32, WIDE = 512, HELD_WIDE = 40 };
    const struct cln_workload *const work = choice->work;
    const uint64_t vectors = shared_vectors(work, c), most = choice->facts.most_lanes;
    const bool held_by_most = vectors * c->vec <= (uint64_t)2 * WIDE * HELD_WIDE; /* as in group_norm.cl */
    const uint64_t few = c->chunks > 1 && c->vec == 1 ? FEW : WARP;
    const uint64_t several = cln_group_begins_anywhere(work, c, true) ? 2 : 1;
    const uint64_t at_least = cln_larger(cln_smaller(few, cln_power_of_two_at_least(vectors)), several);
    const uint64_t of_lane = c->chunks > 1 ? VECTORS : cln_larger(VECTORS, cln_divide_up(HELD_OF_LANE, c->vec));
    const uint64_t lanes = cln_smaller(cln_larger(cln_power_of_two_at_least(cln_divide_up(vectors, of_lane)), at_least),
                                       held_by_most ? most : cln_smaller(most, WIDE));
    const bool fewer = c->chunks == 1 && !work->channel_sums && lanes > CLN_HOLDERS &&
                       (work->group_size > cln_held_elements(work, c, lanes) || c->vec < SHORT) &&
                       work->group_size <= cln_held_elements(work, c, CLN_HOLDERS);
    return fewer ? CLN_HOLDERS : lanes;
}

static uint64_t lanes_of(const struct cln_choice *choice, const struct cln_config *c) {
    if (choice->facts.alone ||
        (!cln_group_begins_anywhere(choice->work, c, true) && cln_group_row(choice->work, c, true) % c->vec))
        return 1;
    const uint64_t of_slice = lanes_of_slice(choice, c);
    const uint64_t kept = c->chunks == 1 && !of_slice ? lanes_of_held(choice, c) : of_slice;
    if (kept)
        return kept;
    return choice->work->channels_last ? lanes_of_last(choice, c) : lanes_of_first(choice, c);
}

/* Only with channels last do streaming stores gain. They are chosen after the vectors, which therefore do not depend on the
 * number of samples. */
static uint64_t stores_of(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t aligned = cln_lowest_bit(choice->work->alignment | cln_group_row(choice->work, c, c->lanes > 1));
    return choice->work->channels_last && aligned % c->vec == 0 ? cln_stores_values(choice, c).value[0] : CLN_STORES_CACHED;
}

static uint64_t row_split_of(const struct cln_choice *choice, const struct cln_config *c) {
    const bool exchange = c->iterations == 1 && cln_group_gains_by_exchange(choice->device, choice->work, c);
    return exchange ? CLN_ROW_SPLIT_EXCHANGE : CLN_ROW_SPLIT_TWO_PASSES;
}

/* Slices that no work-group holds whole, or whose rows would then be narrow, may be held in pieces; so are those whose
 * exchange is forced. */
static void prefer_slice_pieces(const struct cln_choice *choice, struct cln_config *c) {
    struct cln_config whole = *c;
    whole.chunks = 1;
    whole.vec = (uint32_t)cln_or_else(c->vec, vec_of_slice(choice, c));
    whole.lanes = (uint32_t)lanes_of_slice(choice, &whole);
    if (cln_exchanges(c) || !whole.lanes || cln_slice_is_slow(choice->work, &whole))
        cln_group_choose_slice_pieces(choice, whole.vec, c);
}

/* Fills in every knob that is not forced. */
static struct cln_config complete(const struct cln_choice *choice) {
    struct cln_config c = *choice->forced;
    c.isa = (uint32_t)cln_or_else(c.isa, cln_isa_values(choice, &c).value[0]);
    c.iterations = (uint32_t)cln_or_else(c.iterations, 1);
    prefer_slice_pieces(choice, &c);
    if (!choice->work->channels_last && !choice->facts.alone && !keeps_segment(choice, &c))
        cln_group_choose_segment_pieces(choice, &c);
    c.chunks = (uint32_t)cln_or_else(c.chunks, chunks_of(choice, &c));
    c.vec = (uint32_t)cln_or_else(c.vec, vec_of(choice, &c));
    c.lanes = (uint32_t)cln_or_else(c.lanes, lanes_of(choice, &c));
    c.segments = (uint32_t)cln_or_else(c.segments, segments_of(choice, &c));
    c.reduce = (uint32_t)cln_or_else(c.reduce, cln_reduce_values(choice, &c).value[0]);
    c.stores = (uint32_t)cln_or_else(c.stores, stores_of(choice, &c));
    c.row_split = (uint32_t)cln_or_else(c.row_split, row_split_of(choice, &c));
    return c;
}

clnorm_status cln_config_choose_group(const clnorm_device_info *device, const struct cln_workload *work,
                                      const struct cln_config *forced, struct cln_config *config) {
    const clnorm_status status = cln_knobs_check(forced, work->users);
    if (status)
        return status;
    const struct cln_choice choice = {device, cln_facts_of(device), work, forced};
    *config = complete(&choice);
    return cln_check_group(device, work, config);
}
