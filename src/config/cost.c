#include "config/cost.h"

#include <math.h>

#include "base/arithmetic.h"
#include "config/resources.h"

bool cln_registers_fit(const struct cln_facts *facts, uint64_t items, uint64_t item_registers) {
    return item_registers <= facts->item_registers && item_registers * items <= facts->registers;
}

bool cln_spills(const struct cln_facts *facts, const struct cln_workload *work, const struct cln_config *c) {
    return !cln_registers_fit(facts, (uint64_t)c->lanes * c->segments, cln_least_registers(work, c));
}

uint64_t cln_resident_groups(const struct cln_facts *facts, uint64_t items, uint64_t item_registers, uint64_t local_bytes) {
    const uint64_t by_registers = facts->registers / cln_larger(item_registers * items, 1);
    const uint64_t by_items = facts->resident_items / items;
    const uint64_t by_local = facts->resident_local / (local_bytes + 1024); /* 1 KiB: the driver's own */
    const uint64_t groups = cln_smaller(cln_smaller(by_registers, by_items), cln_smaller(by_local, facts->resident_groups));
    return cln_larger(groups, 1);
}

double cln_reduction_ns(const struct cln_facts *facts, uint64_t lanes) {
    if (lanes == 1)
        return 0;
    if (lanes <= facts->simd)
        return facts->shuffle_ns;
    return facts->barrier_ns + 0.4 * facts->barrier_ns * log2((double)lanes / facts->simd);
}

double cln_rows_in_step(const struct cln_facts *facts, const struct cln_config *c) {
    return fmax(1, (double)facts->simd / c->lanes);
}

double cln_both_limits(double a, double b, double sharpness) {
    return pow(pow(a, sharpness) + pow(b, sharpness), 1 / sharpness);
}
