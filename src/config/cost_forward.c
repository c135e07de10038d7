#include <math.h>

#include "base/arithmetic.h"
#include "config/cost.h"
#include "config/resources.h"

/* A candidate and its counts. */
struct count {
    const struct cln_facts *facts;
    const struct cln_workload *work;
    const struct cln_config *c;
    double vectors;  /* of a lane */
    double batches;  /* of vectors that a lane loads at once */
    double resident; /* work-groups of a compute unit at once */
    double groups;   /* work-groups of the launch */
    double at_once;  /* work-groups of the device at once */
};

static struct count count(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    const uint64_t local = cln_scratch_bytes(work, c) +
                           cln_config_local_vectors(choice->device, work, c) * c->lanes * c->vec * work->local_size;
    const uint64_t chunks = cln_larger(c->chunks, 1);
    const uint64_t vectors = cln_divide_up(cln_divide_up(cln_divide_up(cln_reach(work, c), c->vec), chunks), c->lanes);
    const uint64_t resident = cln_resident_groups(&choice->facts, items, cln_forward_registers(work, c), local);
    return (struct count){
        .facts = &choice->facts,
        .work = work,
        .c = c,
        .vectors = (double)vectors,
        .batches = c->keep == CLN_KEEP_REGISTERS ? 1 : (double)cln_divide_up(vectors, c->unroll),
        .resident = (double)resident,
        .groups = (double)cln_divide_up(work->rows * work->groups, c->segments) * (double)chunks,
        .at_once = (double)resident * choice->facts.compute_units,
    };
}

/* Bytes of x in the segments of work_groups work-groups. */
static double bytes_of(const struct count *n, double work_groups) {
    return work_groups * n->c->segments * (double)n->work->group_size * (double)n->work->x_size;
}

/* The time of memory traffic, with the part of a second read that misses the caches. */
static double memory_ns(const struct count *n) {
    const double bytes = cln_moved_tensors(n->work) * bytes_of(n, n->groups) / (double)cln_larger(n->c->chunks, 1);
    const double l1 = 140e3;
    double times = 1;
    if (n->c->keep == CLN_KEEP_REREAD && bytes_of(n, n->resident) > l1)
        times += 0.1;
    if (n->c->keep == CLN_KEEP_REREAD && bytes_of(n, fmin(n->at_once, n->groups)) > 0.75 * (double)n->facts->cache)
        times += 0.25;
    return times * bytes / (n->facts->bytes_per_ns * n->facts->compute_units);
}

/* Consecutive sums over lanes: the mean and then the variance, or both at once where the segment is read again. */
static double sums(const struct cln_workload *work, const struct cln_config *c) {
    if (work->work == CLN_WORK_SOFTMAX)
        return 1.5;
    if (work->work == CLN_WORK_SOFTMAX_BACKWARD || work->norm != CLNORM_LAYER_NORM)
        return 1;
    return c->keep == CLN_KEEP_REGISTERS ? 2 : 0.6;
}

/* The latency of a work-group's loads: batch after batch, a second read, and weights. */
static double loads_ns(const struct count *n) {
    const double first = 1 + 0.8 * (n->batches - 1) + 0.1 * (n->vectors - 1);
    const double ahead = n->c->prefetch == CLN_PREFETCH_NEXT ? 0.75 : 1;
    const double again = n->c->keep == CLN_KEEP_REREAD  ? 0.2 * (1 + 0.9 * (n->batches - 1))
                         : n->c->keep == CLN_KEEP_LOCAL ? 0.1
                                                        : 0;
    const double weights = n->c->weights == CLN_WEIGHTS_LATE ? 0.15 : n->c->weights == CLN_WEIGHTS_KEPT ? 0.3 : 0;
    return n->facts->latency_ns * (ahead * first + again + weights);
}

/* The arithmetic of a work-group, including its idle lanes. */
static double arithmetic_ns(const struct count *n) {
    const double exponentials = n->work->work == CLN_WORK_SOFTMAX ? 2 : 1;
    const double elements = n->vectors * n->c->vec * n->c->lanes * n->c->segments;
    return exponentials * (0.8 + 1.6 / n->c->vec) * elements / n->facts->elements_per_ns;
}

/* A work-group's accesses to memory and local memory by vectors of less than 16 bytes. One access serves the work-items
 * that run in step. The time of wider ones is hidden by that of memory. */
static double accesses_ns(const struct count *n) {
    const double each = 0.8, narrow = 1 - fmin(1, (double)(n->c->vec * n->work->x_size) / 16);
    const double again = n->c->keep == CLN_KEEP_LOCAL ? 2 : n->c->keep == CLN_KEEP_REREAD ? 1 : 0;
    const double weights = n->work->work >= CLN_WORK_SOFTMAX || n->work->norm == CLNORM_LAYER_NORM ? 2 : 1;
    const double ahead = n->c->prefetch == CLN_PREFETCH_NEXT ? 1 : 0;
    const double vectors = n->vectors * n->c->lanes * n->c->segments / n->facts->simd;
    return n->facts->resident_groups == 1
               ? 0
               : narrow * each * (cln_moved_tensors(n->work) + again + weights + ahead) * vectors;
}

/* The accesses of a work-group to lines of the cache that its work-items in step do not fill: where a row has few lanes,
 * neighbouring lanes read different rows. */
static double scattered_ns(const struct count *n) {
    const double each = 1.3, line = 128, lanes = n->c->lanes, rows = fmax(1, n->facts->simd / lanes);
    const double piece = lanes * n->c->vec * (double)n->work->x_size;
    const double row = (double)n->work->group_size * (double)n->work->x_size;
    const double lines = fmin(rows * fmax(1, piece / line), rows * row / line + 1);
    const double accesses = n->vectors * cln_moved_tensors(n->work) * lanes * n->c->segments / n->facts->simd;
    return n->facts->resident_groups == 1 ? 0 : each * fmax(0, lines - rows * piece / line) * accesses;
}

/* The latency of partly filled vectors where segments are so narrow that work-items in step have few others: their elements
 * are stored one by one, and their weights read within bounds. */
static double edges_ns(const struct count *n) {
    const double each = 1000; /* ns of a tensor of 1-byte elements */
    return cln_leads(n->work, n->c) && n->c->lanes <= n->facts->simd && n->vectors <= 2
               ? each * (double)cln_affine_tensors(n->work) / (double)n->work->x_size
               : 0;
}

/* Waves of work-groups; the last one leaves some compute units idle. */
static double waves(const struct count *n) {
    const double even = n->groups / n->at_once;
    return even > 4 ? even : fmax(1, 0.25 * ceil(even) + 0.75 * even);
}

double cln_forward_cost(const struct cln_choice *choice, const struct cln_config *c) {
    const double spilled = 1e15, start = 350, dispatch = 75; /* ns of a work-group: until it runs, until the next starts */
    const struct count n = count(choice, c);
    const double work = arithmetic_ns(&n) + accesses_ns(&n) + scattered_ns(&n);
    const double alone = loads_ns(&n) + sums(n.work, c) * cln_reduction_ns(n.facts, c->lanes) + edges_ns(&n) + start + work;
    const double begun = dispatch * fmin(n.resident, n.groups / n.facts->compute_units);
    const double each = fmax(alone, fmax(n.resident * work, begun));
    const double launches = c->chunks > 1 ? 2 : 1;
    const bool fits = cln_registers_fit(n.facts, (uint64_t)c->lanes * c->segments, cln_forward_registers(n.work, c));
    return cln_both_limits(memory_ns(&n), waves(&n) * each, 3.5) + launches * n.facts->launch_ns + (fits ? 0 : spilled);
}
