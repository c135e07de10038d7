#include "config/candidates.h"

#include <string.h>

#include "base/arithmetic.h"
#include "config/resources.h"

/* ------------------------------------------------------------------------------------------------------ the product */

static void walk(const struct cln_choice *choice, const struct cln_axis *axis, const struct cln_config *decided,
                 cln_visit_fn visit, void *user) {
    if (!axis->values) {
        visit(decided, user);
        return;
    }
    const int knob = (int)(axis->knob / sizeof(uint32_t));
    const uint32_t forced = cln_knob_value(choice->forced, knob);
    const bool has = cln_knobs[knob].users & choice->work->users;
    const struct cln_values values = forced || !has ? cln_one_value(forced) : axis->values(choice, decided);
    for (uint32_t i = 0; i < values.count; i++) {
        struct cln_config next = *decided;
        cln_knob_set(&next, knob, values.value[i]);
        walk(choice, axis + 1, &next, visit, user);
    }
}

void cln_candidates(const struct cln_choice *choice, const struct cln_axis *axes, cln_visit_fn visit, void *user) {
    walk(choice, axes, choice->forced, visit, user);
}

/* ------------------------------------------------------------------------------------------------------ common axes */

struct cln_values cln_one_value(uint64_t value) {
    return (struct cln_values){1, {(uint32_t)value}};
}

void cln_add_value(struct cln_values *values, uint64_t value) {
    for (uint32_t i = 0; i < values->count; i++)
        if (values->value[i] == value)
            return;
    if (values->count < sizeof values->value / sizeof *values->value)
        values->value[values->count++] = (uint32_t)value;
}

struct cln_values cln_isa_values(const struct cln_choice *choice, const struct cln_config *c) {
    (void)c;
    return cln_one_value(choice->facts.ptx ? CLN_ISA_PTX : CLN_ISA_PORTABLE);
}

/* Whether vectors are whole lines of a CPU's cache, or nearly all are: a norm's long rows may begin anywhere within one
 * (cl/common/lead.h), if there are enough of them for no row to be split into chunks. */
static bool stores_lines(const struct cln_choice *choice, uint64_t vec) {
    enum { LINE = 64, LONG = 32 }; /* bytes; vectors */
    const struct cln_workload *const work = choice->work;
    const bool whole = choice->forced->chunks < 2 && choice->forced->lanes < 2 && choice->forced->segments < 2 &&
                       2 * work->rows * work->groups > choice->facts.compute_units;
    const bool leads = work->users == CLN_KNOBS_FORWARD && choice->device->family == CLNORM_PLATFORM_POCL && whole &&
                       vec <= work->lead_vec && work->group_size >= LONG * vec;
    return (vec <= work->alignment || leads) && vec * work->x_size >= LINE;
}

/* Whether the last cache serves what is read and written. Where short rows are written for as many bytes as are read, it
 * serves them until the reads alone fill it. */
static bool fits_cache(const struct cln_choice *choice) {
    enum { SHORT = 4096 }; /* bytes of a row */
    const struct cln_workload *const work = choice->work;
    const uint64_t row = work->group_size * work->x_size, tensors = cln_moved_tensors(work);
    const uint64_t served = tensors == 2 && row < SHORT ? 1 : tensors;
    return cln_product(served, cln_x_bytes(work)) <= choice->facts.cache || !choice->facts.cache;
}

/* A CPU reads each line that it writes, except by streaming stores, which leave no output in its cache. They are slow with
 * parts of lines, so of 2-byte and 8-bit elements. A norm after dropout and a sum reads its residual_out again, which
 * should be in the cache. */
static bool gains_by_streaming(const struct cln_choice *choice, const struct cln_config *c) {
    const struct cln_workload *const work = choice->work;
    struct cln_config streaming = *c;
    streaming.stores = CLN_STORES_STREAMING;
    const uint64_t vec = cln_or_else(c->vec, cln_widest_vector(choice, &streaming));
    const bool bytes = work->y_scaled || work->users == CLN_KNOBS_QUANTIZE;
    return choice->facts.alone && !fits_cache(choice) && stores_lines(choice, vec) && !bytes &&
           work->kind != CLN_KIND_CHAIN;
}

/* On GPUs streaming stores were slower in every measurement, so that only tuning tries them. */
struct cln_values cln_stores_values(const struct cln_choice *choice, const struct cln_config *c) {
    return cln_one_value(gains_by_streaming(choice, c) ? CLN_STORES_STREAMING : CLN_STORES_CACHED);
}

struct cln_values cln_reduce_values(const struct cln_choice *choice, const struct cln_config *c) {
    const bool whole_warps = (uint64_t)c->lanes * c->segments >= 32;
    return cln_one_value(choice->facts.shuffles && whole_warps ? CLN_REDUCE_SHUFFLE : CLN_REDUCE_TREE);
}

uint64_t cln_least_lanes(const struct cln_choice *choice, const struct cln_config *c) {
    enum { SECTOR = 32, NARROW = 128 };                      /* bytes */
    const bool together = choice->facts.resident_groups > 1; /* llvmpipe makes vectors of the lanes of a segment */
    const bool narrow = together && choice->work->group_size * choice->work->x_size <= NARROW;
    return narrow ? 1 : cln_larger(8, SECTOR / (c->vec * choice->work->x_size));
}

uint64_t cln_widest_vector(const struct cln_choice *choice, const struct cln_config *c) {
    const bool any_address = cln_config_element_aligned(choice->device, c);
    const uint64_t size = any_address ? choice->work->real_size : choice->work->x_size; /* of an element in a register */
    return cln_larger(cln_smaller(choice->facts.vector_bytes / size, 16), 1);
}

uint64_t cln_vec_of_row(const struct cln_choice *choice) {
    const uint64_t columns = choice->work->group_size;
    return choice->facts.alone ? cln_power_of_two_at_least(columns) : cln_power_of_two_at_most(columns);
}

uint64_t cln_vec_of_rope(const struct cln_choice *choice, uint64_t most) {
    return cln_smaller(most, cln_or_else(cln_config_rope_vec(choice->work), most));
}

bool cln_finds_weights(const struct cln_facts *facts, const struct cln_workload *work) {
    return work->columns_of_weight > 1 && facts->resident_groups > 1;
}

struct cln_values cln_vec_values(const struct cln_choice *choice, const struct cln_config *c, uint64_t most,
                                 bool narrower) {
    enum { FEW_REGISTERS = 128, MANY = 8 }; /* MANY vectors: in fewer, most are partly filled */
    struct cln_values values = {0, {0}};
    const uint64_t lead_vec = cln_smaller(cln_widest_vector(choice, c), choice->work->lead_vec);
    if (!cln_config_element_aligned(choice->device, c) && lead_vec > most && choice->work->group_size >= MANY * lead_vec)
        cln_add_value(&values, lead_vec);
    cln_add_value(&values, most);
    for (uint64_t vec = most / 2; (narrower || choice->facts.item_registers < FEW_REGISTERS) && vec >= 1; vec /= 2)
        cln_add_value(&values, vec);
    return values;
}
