#include <math.h>

#include "base/arithmetic.h"
#include "config/cost.h"
#include "config/resources.h"

enum { LINE = 128 }; /* bytes of a GPU's cache line */

/* A candidate and its counts. */
struct count {
    const struct cln_facts *facts;
    const struct cln_workload *work;
    const struct cln_config *c;
    double vectors;  /* of a lane */
    double batches;  /* of vectors that a lane loads at once, the last of which is masked */
    double waits;    /* where it loads those of the last batch one by one */
    double resident; /* work-groups of a compute unit at once */
    double groups;   /* work-groups of the launch */
    double at_once;  /* work-groups of the device at once */
};

/* Whole batches of unroll vectors, and the rest one by one. */
static uint64_t waits(uint64_t vectors, uint32_t unroll) {
    const uint64_t whole = cln_larger(unroll, 1);
    return vectors / whole + vectors % whole;
}

static struct count count(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    const uint64_t local = cln_scratch_bytes(work, c) +
                           cln_config_local_vectors(choice->device, work, c) * c->lanes * c->vec * work->local_size;
    const uint64_t shared = cln_shared_vectors(work, c);
    const uint64_t vectors = cln_divide_up(shared, c->lanes), least = shared / c->lanes; /* of one lane or another */
    const bool held = c->keep == CLN_KEEP_REGISTERS;
    const uint64_t most = cln_or_else(cln_softmax_most_registers(work, c), UINT64_MAX);
    const uint64_t registers = cln_smaller(most, cln_forward_registers(work, c));
    const uint64_t resident = cln_resident_groups(&choice->facts, items, registers, local);
    return (struct count){
        .facts = &choice->facts,
        .work = work,
        .c = c,
        .vectors = (double)vectors,
        .batches = held ? 1 : (double)cln_divide_up(vectors, c->unroll),
        .waits = held ? 1 : (double)cln_larger(waits(vectors, c->unroll), waits(least, c->unroll)),
        .resident = (double)resident,
        .groups = (double)cln_divide_up(work->rows * work->groups, c->segments) * (double)cln_larger(c->chunks, 1),
        .at_once = (double)resident * choice->facts.compute_units,
    };
}

/* Bytes of x in the segments, or their chunks, of work_groups work-groups. */
static double bytes_of(const struct count *n, double work_groups) {
    const double columns = (double)n->work->group_size / (double)cln_larger(n->c->chunks, 1);
    return work_groups * n->c->segments * columns * (double)n->work->x_size;
}

/* The traffic of a second read that misses the last cache, beside that of all tensors. Of softmax it was measured: the
 * first of two kernels reads all rows before the second does; a work-group that has whole rows reads the end of its row
 * first. */
static double missed(const struct count *n) {
    const double inputs = n->work->kind == CLN_KIND_SOFTMAX_BACKWARD ? 2 : 1, cache = (double)n->facts->cache;
    const double between = bytes_of(n, fmin(n->at_once, n->groups)), all = inputs / cln_moved_tensors(n->work);
    const double some = between > 0.75 * cache ? 0.25 : 0;
    if (n->work->users != CLN_KNOBS_SOFTMAX)
        return some;
    if (n->c->chunks > 1)
        return inputs * bytes_of(n, n->groups) > 0.6 * cache ? all : 0;
    return fmax(some, (1 - 1.3 * cache / (inputs * between)) * all);
}

/* Bytes that all work-groups read and write: an 8-bit y has one for each element of x. */
static double traffic(const struct count *n) {
    const double tensors = n->work->y_scaled ? 1 + 1 / (double)n->work->x_size : cln_moved_tensors(n->work);
    return tensors * bytes_of(n, n->groups);
}

/* The time of memory traffic, with the part of a second read that misses the caches. Where others have no work-group,
 * a compute unit gets little more than its share of the bandwidth. */
static double memory_ns(const struct count *n) {
    const double bytes = traffic(n);
    const double l1 = 140e3, share = 1.6;
    const double busy = fmin(share * n->groups, n->facts->compute_units);
    double times = 1;
    if (n->c->keep == CLN_KEEP_REREAD && bytes_of(n, n->resident) > l1)
        times += 0.1;
    if (n->c->keep == CLN_KEEP_REREAD)
        times += missed(n);
    return times * bytes / (n->facts->bytes_per_ns * busy);
}

/* Consecutive sums over lanes: the mean and then the variance, or both at once where the segment is read again. */
static double sums(const struct cln_workload *work, const struct cln_config *c) {
    if (work->kind == CLN_KIND_SOFTMAX)
        return 1.5;
    if (work->kind == CLN_KIND_SOFTMAX_BACKWARD || work->norm != CLNORM_LAYER_NORM)
        return 1;
    return c->keep == CLN_KEEP_REGISTERS ? 2 : 0.6;
}

/* Latencies of z beyond the first: a gate is read late, four vectors at a time, and waited for before each store. */
static double late_gate(const struct count *n) {
    const bool late = n->work->kind == CLN_KIND_GATED && n->c->weights != CLN_WEIGHTS_EARLY;
    return late && n->facts->resident_groups > 1 ? 1.5 * (ceil(n->vectors / 4) - 1) : 0;
}

/* Latencies of weights that do not come with x. */
static double weights_latencies(const struct count *n) {
    const double found = cln_finds_weights(n->facts, n->work) ? 2 : 0;
    return n->c->weights == CLN_WEIGHTS_LATE ? 0.15 + found : n->c->weights == CLN_WEIGHTS_KEPT ? 0.3 + found : 0;
}

/* The latency of a work-group's loads: batch after batch, a second read, and weights. Norms mask their first read. */
static double loads_ns(const struct count *n) {
    const double batches = n->work->kind >= CLN_KIND_SOFTMAX ? n->waits : n->batches;
    const double first = 1 + 0.8 * (batches - 1) + 0.1 * (n->vectors - 1);
    const double again = n->c->keep == CLN_KEEP_REREAD  ? 0.2 * (1 + 0.9 * (n->waits - 1))
                         : n->c->keep == CLN_KEEP_LOCAL ? 0.8
                                                        : 0;
    return n->facts->latency_ns * (first + again + weights_latencies(n) + late_gate(n));
}

/* How many times a norm's arithmetic an 8-bit y takes, for its scale and its codes, which is much with few work-items in
 * step on a compute unit: one's instructions wait for each other. Where registers do not hold a row, the norm is computed
 * twice. Fitted to 81 configs that were measured on an H200. */
static double times_of_codes(const struct count *n) {
    const double each = n->c->keep == CLN_KEEP_REGISTERS ? 40 : 80;
    const double in_step = n->resident * n->c->lanes * n->c->segments / n->facts->simd;
    return n->work->y_scaled && n->facts->resident_groups > 1 ? each * (1 + 8 / in_step) : 1;
}

/* The arithmetic of a work-group, including its idle lanes. A work-item's addresses and its part of the sums over lanes
 * take as long as the arithmetic on so many elements. */
static double arithmetic_ns(const struct count *n) {
    const double of_item = n->facts->resident_groups == 1 ? 0 : 100, items = n->c->lanes * n->c->segments;
    const double exponentials = n->work->kind == CLN_KIND_SOFTMAX ? 2 : 1;
    const double elements = times_of_codes(n) * exponentials * (0.8 + 1.6 / n->c->vec) * n->vectors * n->c->vec;
    return (elements + of_item) * items / n->facts->elements_per_ns;
}

/* A work-group's accesses to memory and local memory by vectors of less than 16 bytes. One access serves the work-items
 * that run in step. The time of wider ones is hidden by that of memory. */
static double accesses_ns(const struct count *n) {
    const double each = 0.5, narrow = 1 - fmin(1, (double)(n->c->vec * n->work->x_size) / 16);
    const double again = n->c->keep == CLN_KEEP_LOCAL ? 2 : n->c->keep == CLN_KEEP_REREAD ? 1 : 0;
    const double weights = n->work->kind >= CLN_KIND_SOFTMAX || n->work->norm == CLNORM_LAYER_NORM ? 2 : 1;
    const double vectors = n->vectors * n->c->lanes * n->c->segments / n->facts->simd;
    return n->facts->resident_groups == 1 ? 0 : narrow * each * (cln_moved_tensors(n->work) + again + weights) * vectors;
}

/* Lines of the cache that so many neighbouring rows have at most. */
static double lines_of_rows(const struct count *n, double rows) {
    return rows * (double)n->work->group_size * (double)n->work->x_size / LINE + 1;
}

/* Whether a compute unit's first cache keeps the lines of all rows under way until their lanes are through with them. Few
 * accesses to a line need it for a short time. */
static bool keeps_lines(const struct count *n) {
    const double room = 26.5e3; /* accesses of work-items, on an H100 */
    const double rows = (double)n->facts->resident_items / n->c->lanes;
    const double accesses = cln_moved_tensors(n->work) * (double)n->work->group_size / n->c->vec;
    return n->vectors == 1 || rows * accesses <= room;
}

/* The accesses of a work-group to lines of the cache that its work-items in step do not fill: where a row has few lanes,
 * neighbouring lanes read different rows. A wide access is made in parts, and takes longer still. */
static double scattered_ns(const struct count *n) {
    const double lanes = n->c->lanes, rows = cln_rows_in_step(n->facts, n->c),
                 parts = fmax(1, (double)(n->c->vec * n->work->x_size) / 4);
    const double each = pow(parts, 1.5) * (keeps_lines(n) ? 0.45 : 0.8);
    const double filled = lanes * n->c->vec * (double)n->work->x_size / LINE;
    const double lines = fmin(rows * fmax(1, filled), lines_of_rows(n, rows));
    const double accesses = n->vectors * cln_moved_tensors(n->work) * lanes * n->c->segments / n->facts->simd;
    return n->facts->resident_groups == 1 ? 0 : each * fmax(0, lines - rows * filled) * accesses;
}

/* A work-group's stores of partly filled vectors, the first and the last of each row, element by element. A store touches a
 * line for each row in step. */
static double edges_ns(const struct count *n) {
    const double each = 1.3, rows = cln_rows_in_step(n->facts, n->c), outputs = n->work->kind == CLN_KIND_ADD ? 2 : 1;
    const double partly_filled = rows > 1 ? fmin(2, n->vectors) : 2; /* vectors of the rows in step */
    const double stores = outputs * partly_filled * n->c->vec * n->c->segments / rows;
    return cln_leads(n->work, n->c) ? each * stores * fmin(rows, lines_of_rows(n, rows)) : 0;
}

/* Waves of work-groups; the last one leaves some compute units idle. */
static double waves(const struct count *n) {
    const double even = n->groups / n->at_once;
    return even > 4 ? even : fmax(1, 0.25 * ceil(even) + 0.75 * even);
}

/* The wait of a work-group for the totals of others. */
static double exchange_ns(const struct count *n) {
    const double each = 3 * n->facts->latency_ns + cln_reduction_ns(n->facts, n->c->lanes);
    return cln_holds_pieces(n->work, n->c) ? sums(n->work, n->c) * each : 0;
}

uint64_t cln_forward_at_once(const clnorm_device_info *device, const struct cln_workload *work,
                             const struct cln_config *c) {
    static const struct cln_config automatic = {0};
    const struct cln_choice choice = {device, cln_facts_of(device), work, &automatic};
    return (uint64_t)count(&choice, c).at_once;
}

double cln_forward_cost(const struct cln_choice *choice, const struct cln_config *c) {
    const double start = 350, dispatch = 75; /* ns of a work-group: until it runs, until the next starts */
    const struct count n = count(choice, c);
    const double instructions = arithmetic_ns(&n) + accesses_ns(&n) + scattered_ns(&n) + edges_ns(&n);
    const double alone =
        loads_ns(&n) + sums(n.work, c) * cln_reduction_ns(n.facts, c->lanes) + exchange_ns(&n) + start + instructions;
    const double begun = dispatch * fmin(n.resident, n.groups / n.facts->compute_units);
    const double pieces =
        n.groups / n.at_once; /* of each work-group, of which two are under way where totals are exchanged */
    const double under_way = cln_holds_pieces(n.work, c) ? fmin(fmax(pieces, 1), 2) : 1;
    const double each = cln_both_limits(alone / under_way, fmax(n.resident * instructions, begun), 6);
    const bool twice = c->chunks > 1 && !cln_holds_pieces(n.work, c);
    const double launches = twice ? 2 : 1, passes = twice ? 1.5 : 1; /* the first of two writes nothing */
    return cln_both_limits(memory_ns(&n), passes * waves(&n) * each, 3.5) + launches * n.facts->launch_ns;
}
