/* The norms' backward. */
#include "base/arithmetic.h"
#include "config/candidates.h"
#include "config/resources.h"

/* Whether a CPU's registers hold a work-item's sums of all columns. Not where a row has several groups: sums in memory are
 * those of whole rows. */
static bool holds_columns(const struct cln_choice *choice) {
    enum { NARROW = 256 }; /* bytes of four vectors in registers */
    const struct cln_workload *const work = choice->work;
    return choice->facts.alone && work->groups == 1 && work->group_size * work->real_size <= NARROW;
}

static struct cln_values vec_values(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t any = c->lanes > 1 ? cln_lowest_bit(choice->work->group_size) : cln_vec_of_row(choice);
    const uint64_t most = cln_config_element_aligned(choice->device, c) ? any : choice->work->alignment;
    return cln_vec_values(choice, c, cln_smaller(cln_widest_vector(choice, c), cln_vec_of_rope(choice, most)), false);
}

/* Where dweight and dbias are added up: on CPUs, whose registers are few, in caches, but for narrow rows. */
static struct cln_values accumulator_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t most_blocks = (uint64_t)1 << 20, few_rows = 2048;
    const uint64_t few_bytes = (uint64_t)choice->facts.compute_units << 16; /* of x: a second read costs less than slots */
    (void)c;
    if ((choice->facts.alone && !holds_columns(choice)) || work->groups > most_blocks)
        return cln_one_value(work->locked ? CLN_ACCUMULATOR_LOCAL : CLN_ACCUMULATOR_MEMORY);
    struct cln_values values = cln_one_value(CLN_ACCUMULATOR_REGISTERS);
    if (work->both_sums && choice->facts.resident_groups > 1)
        cln_add_value(&values, CLN_ACCUMULATOR_SPLIT);
    if (work->sums_rows && !work->locked && work->rows <= few_rows && work->weight_rows <= 1 && !work->columns_of_weight &&
        cln_x_bytes(work) <= few_bytes && choice->facts.ptx)
        cln_add_value(&values, CLN_ACCUMULATOR_COLUMNS);
    return values;
}

/* Maximum columns of a segment that a work-group has: limited by its local memory or its registers. */
static uint64_t most_columns(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t lanes = cln_or_else(c->lanes, choice->facts.most_lanes);
    uint64_t most = UINT32_MAX;
    if (c->accumulator == CLN_ACCUMULATOR_LOCAL || c->accumulator == CLN_ACCUMULATOR_SPLIT)
        most = choice->facts.local_memory / (4 * choice->work->real_size);
    if (c->accumulator != CLN_ACCUMULATOR_MEMORY && (c->accumulator != CLN_ACCUMULATOR_LOCAL || !choice->facts.alone))
        most = cln_smaller(most, lanes * cln_larger(choice->facts.most_lanes == 1 ? 64 : 32, c->vec));
    return cln_power_of_two_at_most(cln_larger(most, 16));
}

/* A whole segment where a work-group can hold it, and tiles of a wide one, of up to a power of two or three quarters of it.
 * The latter are not for accumulator=columns, with which they were not measured. */
static struct cln_values tile_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { MOST = 16384 };
    const uint64_t least = choice->facts.ptx ? 1024 : 2 * choice->facts.most_lanes,
                   wide = 4 * (uint64_t)choice->facts.most_lanes;
    const uint64_t cols = choice->work->group_size, most = most_columns(choice, c);
    struct cln_values values = {0, {0}};
    if (cols <= most)
        cln_add_value(&values, cols);
    if (values.count == 0 || (!choice->facts.alone && cols > wide))
        for (uint64_t tile = cln_smaller(cln_smaller(most, MOST), cln_power_of_two_at_most(cols - 1)); tile >= least;
             tile /= 2) {
            cln_add_value(&values, cln_even_tile(choice->work, c, tile));
            if (c->accumulator != CLN_ACCUMULATOR_COLUMNS && tile / 4 * 3 >= least)
                cln_add_value(&values, cln_even_tile(choice->work, c, tile / 4 * 3));
        }
    if (values.count == 0) /* no tile has the minimum of columns */
        cln_add_value(&values, cln_larger(cln_smaller(most, cols), c->vec));
    return values;
}

/* Teams whose vectors are narrower than they could be are slower. */
static struct cln_values row_split_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t tiles = cln_tiles(work, c), widest = choice->facts.vector_bytes / work->x_size;
    struct cln_values values = cln_one_value(CLN_ROW_SPLIT_TWO_PASSES);
    const bool wide = c->vec >= cln_smaller(work->lead_vec, widest);
    const bool teams =
        tiles > 1 && wide && cln_config_gains_by_exchange(choice->device, tiles) && work->real_size == sizeof(cl_float);
    if (teams && !work->sums_given && c->accumulator != CLN_ACCUMULATOR_COLUMNS && c->accumulator != CLN_ACCUMULATOR_MEMORY)
        cln_add_value(&values, CLN_ROW_SPLIT_EXCHANGE);
    return values;
}

/* Maximum work-items of a work-group: with accumulator=columns each has vectors in local memory. */
static uint64_t most_items(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t real = choice->work->real_size;
    const uint64_t of_group = real + sizeof(cl_uint), of_item = (4 + 2 * (uint64_t)c->vec) * real;
    return c->accumulator == CLN_ACCUMULATOR_COLUMNS
               ? cln_smaller(choice->facts.most_items, (choice->facts.local_memory - of_group) / of_item)
               : choice->facts.most_items;
}

/* Of a work-group that exchanges sums, a whole sub-group at least. */
static uint64_t least_lanes(const struct cln_choice *choice, const struct cln_config *c) {
    return cln_exchanges(c) ? 64 : cln_least_lanes(choice, c);
}

static struct cln_values lanes_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { OF_TEAM = 256, HELD = 32 }; /* larger work-groups waited longer for each other; elements, see keep_values */
    const uint64_t vectors = cln_divide_up(c->tile, c->vec);
    const uint64_t items = cln_power_of_two_at_most(cln_larger(most_items(choice, c) / cln_larger(c->segments, 1), 1));
    const uint64_t needed = cln_power_of_two_at_least(cln_divide_up(c->tile, HELD));
    const uint64_t of_team = cln_exchanges(c) ? cln_larger(OF_TEAM, needed) : choice->facts.most_lanes;
    const uint64_t most =
        cln_smaller(cln_smaller(items, cln_smaller(choice->facts.most_lanes, of_team)), cln_power_of_two_at_least(vectors));
    struct cln_values values = cln_one_value(most);
    const bool unrolled = c->accumulator != CLN_ACCUMULATOR_MEMORY && c->accumulator != CLN_ACCUMULATOR_LOCAL;
    const uint64_t elements = c->accumulator == CLN_ACCUMULATOR_COLUMNS ? CLN_MOST_ELEMENTS : CLN_MOST_ELEMENTS / 2;
    for (uint64_t lanes = most / 2; unrolled && lanes >= least_lanes(choice, c); lanes /= 2)
        if (cln_divide_up(vectors, lanes) * c->vec <= elements)
            cln_add_value(&values, lanes);
    return values;
}

static struct cln_values keep_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { MOST_ELEMENTS = 32 }; /* of a lane that holds a row */
    (void)choice;
    struct cln_values values = {0, {0}};
    const bool unrolled = c->accumulator != CLN_ACCUMULATOR_MEMORY && c->accumulator != CLN_ACCUMULATOR_LOCAL;
    if (unrolled && cln_elements_per_lane(choice->work, c) <= MOST_ELEMENTS)
        cln_add_value(&values, CLN_KEEP_REGISTERS);
    if (values.count == 0)
        cln_add_value(&values, CLN_KEEP_REREAD);
    return values;
}

/* Several rows fill up a work-group, whose sums are added up in local memory at the end, one row after the other. */
static struct cln_values segments_values(const struct cln_choice *choice, const struct cln_config *c) {
    enum { ITEMS = 512, MOST = 128 };
    const struct cln_workload *const work = choice->work;
    const bool one = choice->facts.alone || choice->facts.resident_groups == 1;
    if (one || !cln_unrolls_columns(c) || c->reduce == CLN_REDUCE_SUBGROUP || cln_exchanges(c))
        return cln_one_value(1);
    const uint64_t room = cln_smaller(cln_smaller(most_items(choice, c), ITEMS) / c->lanes, MOST);
    const uint64_t rows = cln_power_of_two_at_least(cln_larger(cln_divide_up(work->rows, choice->facts.compute_units), 1));
    struct cln_config widest = *c;
    widest.segments = (cl_uint)cln_larger(room, 1);
    const uint64_t abreast = cln_config_abreast(work, &widest);
    const uint64_t of_weight = cln_larger(work->rows / cln_larger(work->weight_rows, 1), 1) * abreast;
    uint64_t most =
        cln_smaller(cln_power_of_two_at_most(cln_larger(room, 1)), cln_smaller(rows, cln_power_of_two_at_least(of_weight)));
    while (most > 1 &&
           most * cln_elements_per_lane(choice->work, c) * c->lanes * work->real_size > choice->facts.local_memory / 2)
        most /= 2;
    struct cln_values values = cln_one_value(most);
    for (uint64_t segments = most / 2; segments >= 1 && segments * c->lanes >= 2 * (uint64_t)choice->facts.simd;
         segments /= 2)
        cln_add_value(&values, segments);
    return values;
}

static struct cln_values pipeline_values(const struct cln_choice *choice, const struct cln_config *c) {
    struct cln_values values = cln_one_value(1);
    const bool held = c->keep == CLN_KEEP_REGISTERS && c->accumulator != CLN_ACCUMULATOR_COLUMNS;
    if (held && !choice->facts.alone && choice->facts.resident_groups > 1)
        cln_add_value(&values, 2);
    if (held && cln_exchanges(c)) /* also hides the wait for the sums of other work-groups */
        cln_add_value(&values, 3);
    return values;
}

/* As many as fit in the registers of a compute unit. A CPU's core gets several, so that none is left with the last rows
 * alone, and more of the smaller ones where rows are split. Work-groups that exchange sums must run at once, so each is
 * counted with the most registers that a compiler can use. */
static struct cln_values groups_per_cu_values(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    if (choice->facts.alone)
        return cln_one_value(c->tile < choice->work->group_size ? 16 : 4);
    if (choice->facts.resident_groups == 1)
        return cln_one_value(2);
    const uint64_t by_items = choice->facts.resident_items / items;
    const uint64_t each =
        cln_exchanges(c) ? (uint64_t)choice->facts.item_registers + 1 : cln_backward_registers(choice->work, c);
    const uint64_t by_registers = choice->facts.registers / (items * each);
    const uint64_t most = cln_larger(cln_smaller(cln_smaller(by_items, by_registers), choice->facts.resident_groups), 1);
    struct cln_values values = cln_one_value(most);
    for (uint64_t groups = cln_power_of_two_at_most(most); groups >= 1 && groups * items >= 256; groups /= 2)
        cln_add_value(&values, groups);
    return values;
}

/* No longer than a work-group's share of the rows: with few rows, longer runs would leave other work-groups without any. */
static uint64_t longest_run(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t blocks = cln_blocks(work, c, cln_config_span(choice->device, work, c));
    const uint64_t share = cln_divide_up(work->rows, cln_config_row_groups(choice->device, c, blocks));
    return cln_smaller(cln_larger(cln_divide_up(share, cln_rows_at_once(work, c)), 1), UINT32_MAX);
}

/* On GPUs short runs keep the rows that are read at the same time contiguous in memory. */
static struct cln_values run_length_values(const struct cln_choice *choice, const struct cln_config *c) {
    const uint64_t longest = longest_run(choice, c);
    return cln_one_value(choice->facts.ptx || cln_leads(choice->work, c) ? 1 : longest);
}

/* Chunks of the sums over a tiled row: enough to occupy the device with few rows, each large enough for a work-group. */
static struct cln_values chunks_values(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    if (c->tile == work->group_size || cln_exchanges(c) || work->sums_given)
        return cln_one_value(1);
    const uint64_t wish = cln_divide_up(4 * (uint64_t)choice->facts.compute_units, work->rows * work->groups);
    const uint64_t most = cln_larger(work->group_size / cln_larger(4 * (uint64_t)c->lanes * c->vec, 1), 1);
    return cln_one_value(cln_smaller(cln_smaller(wish, most), 64));
}

static struct cln_values unroll_values(const struct cln_choice *choice, const struct cln_config *c) {
    (void)choice, (void)c;
    return cln_one_value(4);
}

static struct cln_values weights_values(const struct cln_choice *choice, const struct cln_config *c) {
    struct cln_values values = cln_one_value(CLN_WEIGHTS_LATE);
    if (choice->facts.resident_groups > 1 && cln_unrolls_columns(c))
        cln_add_value(&values, CLN_WEIGHTS_EARLY);
    return values;
}

/* Rows that use one row of weights are apart. A CPU prefetches them by itself only where they are whole cache lines. */
static bool needs_prefetch(const struct cln_workload *work) {
    enum { LINE = 64, FEW = 8 }; /* bytes; columns */
    return work->weight_rows > 1 && work->weight_repeat <= 1 && work->group_size >= FEW &&
           work->group_size * work->x_size % LINE;
}

static struct cln_values prefetch_values(const struct cln_choice *choice, const struct cln_config *c) {
    struct cln_values values = cln_one_value(CLN_PREFETCH_NONE);
    if (cln_unrolls_columns(c) && (choice->facts.ptx || (choice->facts.alone && needs_prefetch(choice->work))))
        cln_add_value(&values, CLN_PREFETCH_NEXT);
    return values;
}

const struct cln_axis cln_backward_axes[] = {
    {offsetof(struct cln_config, isa), cln_isa_values},
    {offsetof(struct cln_config, stores), cln_stores_values},
    {offsetof(struct cln_config, vec), vec_values},
    {offsetof(struct cln_config, accumulator), accumulator_values},
    {offsetof(struct cln_config, tile), tile_values},
    {offsetof(struct cln_config, row_split), row_split_values},
    {offsetof(struct cln_config, lanes), lanes_values},
    {offsetof(struct cln_config, keep), keep_values},
    {offsetof(struct cln_config, unroll), unroll_values},
    {offsetof(struct cln_config, segments), segments_values},
    {offsetof(struct cln_config, pipeline), pipeline_values},
    {offsetof(struct cln_config, weights), weights_values},
    {offsetof(struct cln_config, groups_per_cu), groups_per_cu_values},
    {offsetof(struct cln_config, run_length), run_length_values},
    {offsetof(struct cln_config, prefetch), prefetch_values},
    {offsetof(struct cln_config, chunks), chunks_values},
    {offsetof(struct cln_config, reduce), cln_reduce_values},
    {0, NULL},
};
