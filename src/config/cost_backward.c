#include <math.h>

#include "base/arithmetic.h"
#include "config/cost.h"
#include "config/resources.h"

/* A candidate and its counts. */
struct count {
    const struct cln_facts *facts;
    const struct cln_workload *work;
    const struct cln_config *c;
    double tiles;
    double blocks;   /* work-groups that share a row */
    double taken;    /* rows that a work-group takes at a time */
    double elements; /* of a tile that a lane has */
    double vectors;  /* of those elements */
    double resident; /* work-groups that fit on a compute unit */
    double active;   /* work-groups that run on a compute unit at once */
    double sums;     /* over rows: dweight, dbias */
};

static struct count count(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t span = cln_config_span(choice->device, work, c), local = cln_backward_local_bytes(work, c, span);
    const uint64_t registers = cln_smaller(cln_backward_registers(work, c), choice->facts.item_registers);
    const uint64_t resident = cln_resident_groups(&choice->facts, (uint64_t)c->lanes * c->segments, registers, local);
    return (struct count){
        .facts = &choice->facts,
        .work = work,
        .c = c,
        .tiles = (double)cln_tiles(work, c),
        .blocks = (double)cln_blocks(work, c, 1),
        .taken = (double)cln_rows_at_once(work, c),
        .elements = (double)cln_elements_per_lane(work, c),
        .vectors = (double)cln_elements_per_lane(work, c) / c->vec,
        .resident = (double)resident,
        .active = (double)cln_smaller(resident, c->groups_per_cu),
        .sums = work->sums_rows ? 1 + (double)work->both_sums : 0,
    };
}

static double bandwidth(const struct count *n) {
    return n->facts->bytes_per_ns * n->facts->compute_units;
}

static bool in_two_passes(const struct count *n) {
    return n->tiles > 1 && n->c->row_split == CLN_ROW_SPLIT_TWO_PASSES;
}

/* How often x and dy are read: again for the sums over a row that is split, and with accumulator=columns for those over
 * rows. There a few neighbouring lanes read a piece of each row: the narrower their vectors, the less of what memory
 * delivers for it they use. */
static double passes(const struct count *n) {
    const double pieces = fmax(16 / ((double)n->c->vec * (double)n->work->x_size), 1); /* of 16 bytes */
    const double columns = n->c->accumulator == CLN_ACCUMULATOR_COLUMNS ? 0.9 + 0.36 * (pieces - 1) : 0;
    return (in_two_passes(n) ? 1.9 : 1) + columns;
}

/* The time of memory traffic. */
static double memory_ns(const struct count *n) {
    const double elements = (double)(n->work->rows * n->work->groups) * (double)n->work->group_size;
    return passes(n) * cln_moved_tensors(n->work) * elements * (double)n->work->x_size / bandwidth(n);
}

/* The loads of a row that wait for each other. A work-group that does not hold its tile writes each vector before it loads
 * the next one. In two passes that is a wait for memory each time; else it has just summed the tile, which is in caches.
 * With accumulator=columns, where rows are few, no other work-group fills the waits. */
static double loads_in_turn(const struct count *n) {
    if (n->c->keep == CLN_KEEP_REGISTERS)
        return 1;
    if (in_two_passes(n))
        return n->vectors;
    const bool alone = n->c->accumulator == CLN_ACCUMULATOR_COLUMNS;
    return alone ? n->vectors * (1 + (double)n->work->more_inputs) : 1.8;
}

/* The latency of a row's loads. The pipeline and the prefetch hide a part of it. */
static double loads_ns(const struct count *n) {
    const double depth = n->c->pipeline == 1 ? 1 : 0.5;
    const double ahead = n->c->prefetch == CLN_PREFETCH_NEXT ? 0.5 : 1;
    const double weights = n->c->weights == CLN_WEIGHTS_EARLY ? 0 : 0.18;
    /* The wait for the other tiles' sums, most of which a pipeline of three rows hides. */
    const double exchange = !cln_exchanges(n->c) ? 0 : n->c->pipeline == 3 ? 0.3 : 0.8;
    return n->facts->latency_ns * (depth * ahead * loads_in_turn(n) + weights + exchange);
}

static double reduction_ns(const struct count *n) {
    return (n->work->norm == CLNORM_LAYER_NORM ? 1.8 : 1) * cln_reduction_ns(n->facts, n->c->lanes);
}

/* Cache lines that an access of the work-items which run in step touches. A row's piece that need not begin at a sector of
 * a line may reach into one more. A piece of less than a line touches one, but those of segments side by side no more than
 * these have. All rows are side by side where they use the same weights and have one group. */
static double cache_lines(const struct count *n) {
    const double line = 128, sector = 32; /* bytes */
    const double in_step = fmin(n->c->lanes, n->facts->simd), rows = cln_rows_in_step(n->facts, n->c);
    const double size = (double)n->work->x_size, piece = in_step * n->c->vec * size,
                 row = (double)n->work->group_size * size;
    const bool all = n->work->groups == 1 && n->work->weight_rows <= 1;
    const double abreast = all ? rows : fmin(rows, (double)cln_config_abreast(n->work, n->c));
    const bool anywhere = (double)n->work->alignment * size < sector;
    const double apart = abreast * (anywhere ? fmin(piece, row) / line + 1 : fmax(1, piece / line));
    const double together = abreast * (anywhere ? row : fmax(piece, row)) / line + anywhere;
    return rows / abreast * (abreast > 1 ? fmin(apart, together) : apart);
}

/* A compute unit's time for the rows that a work-group takes at once, including its idle lanes. Where work-items that run
 * in step have several rows, elements of vectors that may be partly filled take many more instructions. Sums in local
 * memory or memory add a cost that grows with the columns of a lane. */
static double arithmetic_ns(const struct count *n) {
    const double sums = n->c->accumulator == CLN_ACCUMULATOR_LOCAL    ? 0.7
                        : n->c->accumulator == CLN_ACCUMULATOR_SPLIT  ? 1.2
                        : n->c->accumulator == CLN_ACCUMULATOR_MEMORY ? 1
                                                                      : 0;
    const double elements = (1.5 + sums * n->elements) * (0.8 + 1.6 / n->c->vec) * n->elements;
    const double others = cln_rows_in_step(n->facts, n->c) - 1; /* rows of work-items that run in step */
    const double edges = cln_leads(n->work, n->c) ? n->c->vec * fmin(n->vectors, 2) * others : 0;
    const double accesses = n->facts->resident_groups == 1 ? 0 : cache_lines(n) * n->vectors * cln_moved_tensors(n->work);
    return (elements + 40 * edges + 5 * accesses) * n->c->lanes * n->c->segments / n->facts->elements_per_ns;
}

/* The iterations of a work-group, in each of which it takes a row, or several at once. The last of few is not full. Where a
 * row has more work-groups than run at once, the rest follow. */
static double steps(const struct count *n) {
    const double places = n->active * n->facts->compute_units;
    const double waves = fmax(1, n->blocks / places), at_once = fmax(1, places / n->blocks);
    const uint64_t alike = cln_leads(n->work, n->c) ? n->c->vec / n->work->alignment : 1;
    const uint64_t classes = alike * cln_weight_blocks(n->work, n->c);
    if (classes > 1 || n->work->weight_rows > 1) {
        const uint64_t rows = cln_divide_up(n->work->rows, alike * cln_larger(n->work->weight_rows, 1));
        const uint64_t groups = cln_groups_of_class((uint64_t)at_once, classes, rows, (uint64_t)n->taken);
        const double of_group = ceil((double)rows / ((double)groups * n->taken));
        return waves * ceil((double)(groups * classes) / at_once) * of_group;
    }
    const double even = (double)n->work->rows / (at_once * n->taken);
    return waves * (even > 4 ? even : fmax(1, 0.25 * even + 0.75 * ceil(even)));
}

static double rows_ns(const struct count *n) {
    const double filling = cln_exchanges(n->c) ? n->c->pipeline - 1 : 0; /* steps before the pipeline is full */
    const double work = arithmetic_ns(n);
    return (steps(n) + filling) * cln_both_limits(loads_ns(n) + reduction_ns(n), n->active * work, 4);
}

/* The time of all work-groups. With accumulator=columns those that sum columns take the places of others first. */
static double groups_ns(const struct count *n) {
    const double line = 15; /* to add up the sums of a line of lanes, one after the other */
    if (n->c->accumulator != CLN_ACCUMULATOR_COLUMNS)
        return rows_ns(n);
    const uint64_t lanes = cln_column_lanes(n->work, n->c, n->facts->compute_units);
    const uint64_t lines = (uint64_t)n->c->lanes * n->c->segments / lanes;
    const double groups = (double)cln_divide_up(cln_row_vectors(n->work, n->c), lanes);
    const double iterations = (double)cln_divide_up(n->work->rows, lines * n->c->unroll);
    const double each = iterations * n->facts->latency_ns + line * (double)lines;
    return fmax(each, groups / (n->resident * n->facts->compute_units) * each + rows_ns(n));
}

/* The time of the kernel that sums up the chunks of a row first, where it is split in two passes. */
static double first_pass_ns(const struct count *n) {
    if (!in_two_passes(n))
        return 0;
    const double chunks = (double)(n->work->rows * n->work->groups) * n->c->chunks;
    const double waves = fmax(1, chunks / (n->resident * n->facts->compute_units * n->c->segments));
    const uint64_t at_once = (uint64_t)n->c->lanes * n->c->vec * n->c->unroll; /* columns */
    const uint64_t iterations = cln_divide_up(cln_divide_up(n->work->group_size, n->c->chunks), at_once);
    return waves * (double)iterations * n->facts->latency_ns;
}

/* The time to write slots of partial sums, and to add them up in a second kernel. */
static double slots_ns(const struct count *n) {
    if (n->sums == 0 || n->c->accumulator == CLN_ACCUMULATOR_COLUMNS)
        return 0;
    const double row_groups = fmax(1, n->active * n->facts->compute_units / n->blocks);
    const double weight_rows = n->work->groups > 1 ? 1 : (double)cln_config_abreast(n->work, n->c); /* of a work-group */
    const double slots = fmin(row_groups, ceil((double)n->work->rows / (weight_rows * n->taken)));
    const double columns = weight_rows * (double)(n->work->groups * n->work->group_size);
    return 8 * slots * columns * n->sums * (double)n->work->real_size / bandwidth(n) + 2 * n->facts->launch_ns;
}

double cln_backward_cost(const struct cln_choice *choice, const struct cln_config *c) {
    const struct count n = count(choice, c);
    const double late = c->groups_per_cu / n.resident; /* above 1: some work-groups wait until others end */
    const double waves = late > 1 ? 1 + 0.4 * (late - 1) : 1;
    const double launches = in_two_passes(&n) ? 2.8 : 1; /* a kernel whose results this one reads comes before it */
    return waves * cln_both_limits(memory_ns(&n), groups_ns(&n) + first_pass_ns(&n), 1.9) + slots_ns(&n) +
           launches * n.facts->launch_ns;
}
