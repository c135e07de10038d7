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
    double elements; /* of a tile that a lane has */
    double resident; /* work-groups that fit on a compute unit */
    double active;   /* work-groups that run on a compute unit at once */
    double sums;     /* over rows: dweight, dbias */
};

static struct count count(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t local = cln_backward_local_bytes(work, c, cln_config_span(choice->device, work, c));
    const uint64_t registers = cln_smaller(cln_backward_registers(work, c), choice->facts.item_registers);
    const uint64_t resident = cln_resident_groups(&choice->facts, (uint64_t)c->lanes * c->segments, registers, local);
    return (struct count){
        .facts = &choice->facts,
        .work = work,
        .c = c,
        .tiles = (double)cln_tiles(work, c),
        .elements = (double)cln_elements_per_lane(work, c),
        .resident = (double)resident,
        .active = (double)cln_smaller(resident, c->groups_per_cu),
        .sums = work->sums_rows ? 1 + (double)work->both_sums : 0,
    };
}

static double bandwidth(const struct count *n) {
    return n->facts->bytes_per_ns * n->facts->compute_units;
}

/* How often x and dy are read. With accumulator=columns a few neighbouring lanes read a piece of each row again: the
 * narrower their vectors, the less of what memory delivers for it they use. */
static double passes(const struct count *n) {
    const bool twice = n->c->tile < n->work->group_size && n->c->row_split == CLN_ROW_SPLIT_TWO_PASSES;
    const double pieces = fmax(16 / ((double)n->c->vec * (double)n->work->x_size), 1); /* of 16 bytes */
    if (n->c->accumulator == CLN_ACCUMULATOR_COLUMNS)
        return 1.9 + 0.36 * (pieces - 1);
    return twice ? 1.9 : 1;
}

/* The time of memory traffic. */
static double memory_ns(const struct count *n) {
    const double elements = (double)(n->work->rows * n->work->groups) * (double)n->work->group_size;
    return passes(n) * cln_moved_tensors(n->work) * elements * (double)n->work->x_size / bandwidth(n);
}

/* The latency of a row's loads. The pipeline and the prefetch hide a part of it. */
static double loads_ns(const struct count *n) {
    const double depth = n->c->pipeline == 1 ? 1 : 0.5;
    const double ahead = n->c->prefetch == CLN_PREFETCH_NEXT ? 0.5 : 1;
    const double again = n->c->keep == CLN_KEEP_REGISTERS ? 1 : 1.8;
    const double weights = n->c->weights == CLN_WEIGHTS_EARLY ? 0 : 0.18;
    /* The wait for the other tiles' sums, most of which a pipeline of three rows hides. */
    const double exchange = !cln_exchanges(n->c) ? 0 : n->c->pipeline == 3 ? 0.3 : 0.8;
    return n->facts->latency_ns * (depth * ahead * again + weights + exchange);
}

static double reduction_ns(const struct count *n) {
    return (n->work->norm == CLNORM_LAYER_NORM ? 1.8 : 1) * cln_reduction_ns(n->facts, n->c->lanes);
}

/* The arithmetic of a work-group on its rows, including its idle lanes. Sums in memory or local memory add a cost that
 * grows with the columns of a lane. */
static double arithmetic_ns(const struct count *n) {
    const double in_local = n->c->accumulator == CLN_ACCUMULATOR_LOCAL    ? 0.7
                            : n->c->accumulator == CLN_ACCUMULATOR_SPLIT  ? 0.35
                            : n->c->accumulator == CLN_ACCUMULATOR_MEMORY ? 1
                                                                          : 0;
    return (1.5 + in_local * n->elements) * (0.8 + 1.6 / n->c->vec) * n->elements * n->c->lanes * n->c->segments /
           n->facts->elements_per_ns;
}

/* The time of all iterations, in each of which a work-group takes a row, or several at once. */
static double rows_ns(const struct count *n) {
    const double segments = (double)(n->work->rows * n->work->groups) * n->tiles;
    const double steps = fmax(1, segments / (n->active * n->facts->compute_units * n->c->segments));
    const double filling = cln_exchanges(n->c) ? n->c->pipeline - 1 : 0; /* steps before the pipeline is full */
    const double work = arithmetic_ns(n);
    return (steps + filling) * fmax(loads_ns(n) + reduction_ns(n) + work, n->active * work);
}

/* The time to write slots of partial sums, and to add them up in a second kernel. */
static double slots_ns(const struct count *n) {
    if (n->sums == 0 || n->c->accumulator == CLN_ACCUMULATOR_COLUMNS)
        return 0;
    const double row_groups = fmax(1, n->active * n->facts->compute_units / (n->tiles * (double)n->work->groups));
    const double slots = fmin(row_groups, (double)cln_divide_up(n->work->rows, n->c->segments));
    const double columns = (double)(n->work->groups * n->work->group_size);
    return 8 * slots * columns * n->sums * (double)n->work->real_size / bandwidth(n) + 2 * n->facts->launch_ns;
}

double cln_backward_cost(const struct cln_choice *choice, const struct cln_config *c) {
    const double spilled = 1e15;
    const struct count n = count(choice, c);
    const double late = c->groups_per_cu / n.resident; /* above 1: some work-groups wait until others end */
    const double waves = late > 1 ? 1 + 0.4 * (late - 1) : 1;
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    const bool fits = cln_registers_fit(n.facts, items, cln_backward_least_registers(n.work, c));
    const double launches = c->tile < n.work->group_size ? 2 : 1;
    return waves * cln_both_limits(memory_ns(&n), rows_ns(&n), 1.9) + slots_ns(&n) + launches * n.facts->launch_ns +
           (fits ? 0 : spilled);
}
