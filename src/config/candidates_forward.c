/* The forward norms, softmax, quantisation, norms of slices, and elementwise operations. */
#include "base/arithmetic.h"
#include "config/candidates.h"
#include "config/resources.h"

/* Where lanes find weights, arithmetic limits the time. If the widest vectors then leave lanes idle, narrower ones may
 * leave fewer. */
static bool may_gain_by_narrower(const struct cln_choice *choice, uint64_t widest) {
    const uint64_t vectors = cln_divide_up(choice->work->group_size, cln_power_of_two_at_most(widest));
    return cln_finds_weights(&choice->facts, choice->work) && cln_power_of_two_at_least(vectors) != vectors;
}

static struct cln_values vec_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const bool any_address = cln_config_element_aligned(choice->device, c);
    const uint64_t most = any_address ? cln_or_else(work->whole, cln_vec_of_row(choice)) : work->alignment;
    const uint64_t widest = cln_smaller(cln_widest_vector(choice, c), cln_vec_of_rope(choice, most));
    return cln_vec_values(choice, c, widest, may_gain_by_narrower(choice, widest));
}

/* Work-groups that exchange totals each hold pieces of rows: the lanes of a piece, and bytes of its inputs. A lane has 64
 * elements at most. */
static uint64_t piece_lanes(const struct cln_choice *choice) {
    enum { LANES = 128 };
    return cln_smaller(LANES, choice->facts.most_lanes);
}

static uint64_t piece_bytes(const struct cln_choice *choice) {
    enum { LANE_BYTES = 256, LANE_ELEMENTS = 64 };
    return piece_lanes(choice) * cln_smaller(LANE_BYTES, LANE_ELEMENTS * cln_piece_element(choice->work));
}

/* Whether a knob is forced that says how the work-groups of whole segments run. */
static bool whole_segments(const struct cln_config *f) {
    return f->lanes || f->segments || f->iterations || f->keep || f->unroll || f->weights || f->local_vectors;
}

/* Rows of softmax that one work-group can hardly hold are read from memory twice, unless the cache has them all, or several
 * work-groups exchange their totals. */
static struct cln_values row_split_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { MOST_OF_UNIT = 2 }; /* pieces of a row that a compute unit holds at least, so that none is waited for in vain */
    const struct cln_workload *const work = choice->work;
    const struct cln_facts *const facts = &choice->facts;
    const uint64_t row = cln_product(work->group_size, cln_piece_element(work));
    const uint64_t pieces = cln_divide_up(row, piece_bytes(choice));
    const bool wide = pieces > 2 && pieces <= (uint64_t)MOST_OF_UNIT * facts->compute_units;
    const bool misses = work->rows > cln_or_else(facts->l2, facts->cache) / 2 / row;
    struct cln_values values = cln_one_value(CLN_ROW_SPLIT_TWO_PASSES);
    if (facts->ptx && wide && misses && c->vec == cln_widest_vector(choice, c) && work->real_size == sizeof(cl_float) &&
        !choice->forced->chunks && !whole_segments(choice->forced))
        cln_add_value(&values, CLN_ROW_SPLIT_EXCHANGE);
    return values;
}

/* Few wide segments leave most of the device idle, so two kernels can take them in chunks, with a work-group each. CPUs
 * gain by it wherever they have idle units; on GPUs the model weighs the second launch, for the widest vectors. */
static struct cln_values chunks_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { CPU_WIDE = 131072, CPU_CHUNK = 32768, GPU_CHUNK = 4096, CPU_SHARERS = 2, GPU_SHARERS = 8 };
    const struct cln_workload *const work = choice->work;
    const uint64_t segments = work->rows * work->groups, units = choice->facts.compute_units;
    struct cln_values values = cln_one_value(1);
    if (cln_holds_pieces(choice->work, c))
        return cln_one_value(cln_divide_up(cln_product(cln_reach(work, c), cln_piece_element(work)), piece_bytes(choice)));
    if (whole_segments(choice->forced) || work->y_scaled || work->rope || !segments || segments >= units)
        return values;
    if (choice->facts.alone)
        return work->group_size < CPU_WIDE || 2 * segments > units
                   ? values
                   : cln_one_value(cln_smaller(CPU_SHARERS * units / segments, work->group_size / CPU_CHUNK));
    if (c->vec < cln_smaller(cln_widest_vector(choice, c), work->lead_vec))
        return values;
    const uint64_t most = cln_smaller(GPU_SHARERS * units / segments, cln_divide_up(work->group_size, GPU_CHUNK));
    for (uint64_t chunks = cln_power_of_two_at_most(cln_larger(most, 1)), i = 0; chunks > 1 && i < 4; chunks /= 2, i++)
        cln_add_value(&values, chunks);
    return values;
}

/* Maximum work-items that share a segment, given forced segments. */
static uint64_t most_lanes(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t most = choice->facts.most_items / cln_larger(c->segments, 1);
    const uint64_t lanes = cln_smaller(cln_power_of_two_at_most(cln_larger(most, 1)), choice->facts.most_lanes);
    return cln_smaller(lanes, cln_or_else(cln_config_rope_lanes(choice->work, c), lanes));
}

static struct cln_values lanes_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { MOST_VECTORS = 64 };
    const uint64_t least = cln_least_lanes(choice, c);
    if (cln_holds_pieces(choice->work, c))
        return cln_one_value(piece_lanes(choice));
    const uint64_t vectors = cln_shared_vectors(choice->work, c);
    const uint64_t most = cln_smaller(most_lanes(choice, c), cln_power_of_two_at_least(vectors));
    struct cln_values values = cln_one_value(most);
    for (uint64_t lanes = most / 2; lanes >= least && vectors <= MOST_VECTORS * lanes; lanes /= 2)
        cln_add_value(&values, lanes);
    return values;
}

/* Several segments fill up a small work-group. Two times as many work-items as run in step are enough for rows that these
 * do not share. Work-groups of narrower rows, which are soon done, take a fifth longer with less than NARROW. */
static struct cln_values segments_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { ITEMS = 256, NARROW = 128 };
    const bool alone = c->lanes >= ITEMS || choice->facts.most_lanes == 1 || choice->facts.resident_groups == 1;
    if (alone || c->chunks > 1 || c->keep == CLN_KEEP_LOCAL || c->reduce == CLN_REDUCE_SUBGROUP)
        return cln_one_value(1);
    const uint64_t most = cln_power_of_two_at_most(cln_smaller(ITEMS, choice->facts.most_items) / c->lanes);
    const uint64_t simd = choice->facts.simd, least = c->lanes < simd ? cln_larger(NARROW, 2 * simd) : 2 * simd;
    struct cln_values values = {0, {0}};
    for (uint64_t segments = most; segments >= 1 && (segments == most || segments * c->lanes >= least); segments /= 2)
        cln_add_value(&values, segments);
    return values;
}

/* The bytes of a segment that a lane's registers may hold: 192 of 255, as the others serve addresses and arithmetic.
 * Softmax, dropout, rotations and an 8-bit y take more of those. */
static uint64_t most_held(const struct cln_workload *work) {
    const bool plain = work->kind == CLN_KIND_NORM || work->kind == CLN_KIND_GATED || work->kind == CLN_KIND_ADD;
    return plain && work->users == CLN_KNOBS_FORWARD && !work->y_scaled && !work->rope ? 768 : 256;
}

static struct cln_values keep_values(const struct cln_choice *choice, const struct cln_config *c) {
    struct cln_values values = {0, {0}};
    const enum cln_knob_users users = choice->work->users;
    const bool again = users == CLN_KNOBS_QUANTIZE || users == CLN_KNOBS_SLICES;
    if (again || c->chunks > 1)
        return cln_one_value(cln_holds_pieces(choice->work, c) ? CLN_KEEP_REGISTERS : CLN_KEEP_REREAD);
    if (choice->facts.alone) /* a CPU's registers hold one vector */
        return cln_one_value(choice->work->group_size <= c->vec ? CLN_KEEP_REGISTERS : CLN_KEEP_REREAD);
    if (cln_held_bytes(choice->work, c) <= most_held(choice->work))
        cln_add_value(&values, CLN_KEEP_REGISTERS);
    cln_add_value(&values, CLN_KEEP_REREAD);
    const bool much_local = choice->facts.local_memory >= (uint64_t)160 << 10 && c->lanes >= 128;
    if (much_local && choice->work->local_size && c->segments == 1 && cln_vectors_per_lane(choice->work, c) > 2)
        cln_add_value(&values, CLN_KEEP_LOCAL);
    return values;
}

/* Vectors that a lane loads at once. The gradient of softmax reads two tensors, and four vectors of 2-byte elements of each
 * need more registers than a CPU has. */
static struct cln_values unroll_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    if (choice->facts.alone)
        return cln_one_value(work->kind == CLN_KIND_SOFTMAX_BACKWARD && work->x_size == 2 ? 2 : 4);
    if (c->keep == CLN_KEEP_REGISTERS)
        return cln_one_value(1);
    const uint64_t vectors = cln_divide_up(cln_shared_vectors(choice->work, c), c->lanes);
    struct cln_values values = {0, {0}};
    for (uint64_t unroll = 1; unroll <= 8 && (unroll == 1 || unroll <= vectors); unroll *= 2)
        cln_add_value(&values, unroll);
    return values;
}

static struct cln_values weights_values(const struct cln_choice *choice, const struct cln_config *c) {
    struct cln_values values = cln_one_value(CLN_WEIGHTS_LATE);
    if (c->keep == CLN_KEEP_REGISTERS)
        cln_add_value(&values, CLN_WEIGHTS_EARLY);
    else if (choice->facts.ptx)
        cln_add_value(&values, CLN_WEIGHTS_KEPT);
    return values;
}

/* A CPU's work-group goes through 32 KiB of x, to be worth its start, unless that leaves fewer than four work-groups per
 * compute unit. */
static struct cln_values iterations_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t bytes = choice->facts.alone && !cln_holds_pieces(choice->work, c) ? 32 << 10 : 0;
    const uint64_t wish = cln_divide_up(bytes, work->group_size * work->x_size * c->segments);
    const uint64_t groups = cln_divide_up(work->rows * work->groups, c->segments);
    return cln_one_value(cln_larger(cln_smaller(wish, groups / (4 * (uint64_t)choice->facts.compute_units)), 1));
}

const struct cln_axis cln_forward_axes[] = {
    {offsetof(struct cln_config, isa), cln_isa_values},
    {offsetof(struct cln_config, stores), cln_stores_values},
    {offsetof(struct cln_config, vec), vec_values},
    {offsetof(struct cln_config, row_split), row_split_values},
    {offsetof(struct cln_config, chunks), chunks_values},
    {offsetof(struct cln_config, lanes), lanes_values},
    {offsetof(struct cln_config, segments), segments_values},
    {offsetof(struct cln_config, keep), keep_values},
    {offsetof(struct cln_config, unroll), unroll_values},
    {offsetof(struct cln_config, weights), weights_values},
    {offsetof(struct cln_config, iterations), iterations_values},
    {offsetof(struct cln_config, reduce), cln_reduce_values},
    {0, NULL},
};

/* ---------------------------------------------------------------------------------------------- elementwise operations */

static struct cln_values element_vec_values(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t wish = cln_widest_vector(choice, c);
    return cln_one_value(cln_config_element_aligned(choice->device, c) ? wish : cln_smaller(wish, choice->work->alignment));
}

/* No more than a row has vectors. */
static struct cln_values element_lanes_values(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t vectors = cln_power_of_two_at_least(cln_divide_up(choice->work->group_size, c->vec));
    const uint64_t most = cln_smaller(choice->facts.most_lanes, choice->facts.resident_groups == 1 ? 64 : 128);
    return cln_one_value(cln_smaller(most, vectors));
}

/* Vectors that a lane loads at once: fewer where that occupies more compute units. */
static struct cln_values element_unroll_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t blocks = work->rows * cln_divide_up(work->group_size, (uint64_t)c->vec * c->lanes);
    uint32_t unroll = choice->facts.resident_groups == 1 ? 4 : 2;
    while (unroll > 1 && blocks / unroll < 4 * (uint64_t)choice->facts.compute_units)
        unroll /= 2;
    return cln_one_value(unroll);
}

static struct cln_values element_iterations_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t block = (uint64_t)c->vec * c->lanes * c->unroll;
    const uint64_t bytes = cln_smaller(block, work->group_size) * work->x_size;
    const uint64_t wish = cln_divide_up(choice->facts.alone ? 32 << 10 : 0, bytes);
    const uint64_t blocks = work->rows * cln_divide_up(work->group_size, block);
    return cln_one_value(cln_larger(cln_smaller(wish, blocks / (4 * (uint64_t)choice->facts.compute_units)), 1));
}

const struct cln_axis cln_element_axes[] = {
    {offsetof(struct cln_config, isa), cln_isa_values},
    {offsetof(struct cln_config, stores), cln_stores_values},
    {offsetof(struct cln_config, vec), element_vec_values},
    {offsetof(struct cln_config, lanes), element_lanes_values},
    {offsetof(struct cln_config, unroll), element_unroll_values},
    {offsetof(struct cln_config, iterations), element_iterations_values},
    {0, NULL},
};
