#include "config/resources.h"

#include "base/arithmetic.h"

bool cln_leads(const struct cln_workload *work, const struct cln_config *c) {
    const bool at_elements = work->any_address && c->stores != CLN_STORES_STREAMING;
    return !at_elements && c->vec <= work->lead_vec && work->alignment % c->vec != 0;
}

uint64_t cln_reach(const struct cln_workload *work, const struct cln_config *c) {
    return work->group_size + (cln_leads(work, c) ? c->vec - 1 : 0);
}

uint64_t cln_tiles(const struct cln_workload *work, const struct cln_config *c) {
    return c->tile < work->group_size ? cln_divide_up(cln_reach(work, c), c->tile) : 1;
}

uint64_t cln_even_tile(const struct cln_workload *work, const struct cln_config *c, uint64_t most) {
    enum { LINE = 128 }; /* bytes of a cache line */
    const uint64_t columns = cln_reach(work, c), vec = cln_larger(c->vec, 1), line = cln_larger(LINE / work->x_size, vec);
    const uint64_t even = cln_divide_up(columns, cln_divide_up(columns, most)), step = most % line ? vec : line;
    return cln_smaller(cln_divide_up(even, step) * step, most);
}

uint64_t cln_x_bytes(const struct cln_workload *work) {
    return cln_product(cln_product(work->rows, work->groups), cln_product(work->group_size, work->x_size));
}

unsigned cln_moved_tensors(const struct cln_workload *work) {
    if (work->users == CLN_KNOBS_BACKWARD)
        return 3 + (unsigned)work->more_inputs + work->gated; /* x, dy and dx; a gate has dz */
    switch (work->kind) {
    case CLN_KIND_GATED:
    case CLN_KIND_SOFTMAX_BACKWARD:
        return 3;
    case CLN_KIND_ADD:
    case CLN_KIND_CHAIN:
        return 4;
    default:
        return 2;
    }
}

/* --------------------------------------------------------------------------------------------------------- forward */

uint64_t cln_shared_vectors(const struct cln_workload *work, const struct cln_config *c) {
    return cln_divide_up(cln_divide_up(cln_reach(work, c), c->vec), cln_larger(c->chunks, 1));
}

uint64_t cln_vectors_per_lane(const struct cln_workload *work, const struct cln_config *c) {
    return cln_divide_up(cln_shared_vectors(work, c), c->lanes);
}

uint64_t cln_held_bytes(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t element = cln_holds_pieces(work, c) ? cln_piece_element(work) : work->held_size;
    return cln_vectors_per_lane(work, c) * c->vec * element;
}

uint64_t cln_registers_of(uint64_t bytes) {
    return cln_divide_up(bytes, 4);
}

uint64_t cln_most_registers(const struct cln_config *c, uint64_t held) {
    enum { FEW = 40, MANY = 64 };                   /* held */
    enum { MOST_OF_FEW = 128, MOST_OF_MANY = 168 }; /* for 4 and 3 work-groups of 128 items */
    const uint64_t most = held <= FEW ? MOST_OF_FEW : MOST_OF_MANY;
    const bool fits = held <= MANY && cln_product(most, cln_product(c->lanes, c->segments)) <= CLN_REGISTERS_OF_UNIT;
    return c->isa == CLN_ISA_PTX && fits ? most : 0;
}

uint64_t cln_softmax_most_registers(const struct cln_workload *work, const struct cln_config *c) {
    return cln_holds_pieces(work, c) ? cln_most_registers(c, cln_registers_of(cln_held_bytes(work, c))) : 0;
}

bool cln_holds_pieces(const struct cln_workload *work, const struct cln_config *c) {
    return work->users == CLN_KNOBS_SOFTMAX && cln_exchanges(c);
}

uint64_t cln_piece_element(const struct cln_workload *work) {
    return work->kind == CLN_KIND_SOFTMAX_BACKWARD ? work->held_size : work->x_size;
}

uint64_t cln_scratch_bytes(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t in_step = c->reduce == CLN_REDUCE_SHUFFLE ? cln_smaller(c->lanes, 32) : 1;
    return 4 * (uint64_t)c->lanes * c->segments / in_step * work->real_size;
}

uint64_t cln_config_local_vectors(const clnorm_device_info *device, const struct cln_workload *work,
                                  const struct cln_config *c) {
    enum { ALIGNMENT = 64, /* of each array */ L1 = 32 << 10 };
    const uint64_t scratch = cln_scratch_bytes(work, c) + 2 * (uint64_t)ALIGNMENT;
    if (c->keep != CLN_KEEP_LOCAL || !work->local_size || c->segments > 1 || scratch > device->local_memory)
        return 0;
    const uint64_t each = (uint64_t)c->lanes * c->vec * work->local_size;
    const uint64_t room = (device->local_memory - scratch) / each, all = cln_vectors_per_lane(work, c);
    if (c->local_vectors || room >= all)
        return cln_smaller(cln_smaller(room, cln_or_else(c->local_vectors, all)), all);
    /* NVIDIA's L1 cache is the rest of the same memory, and rows that are read again need it. */
    const bool shared = device->family == CLNORM_PLATFORM_NVIDIA && device->local_memory >= (uint64_t)4 * L1;
    return (device->local_memory - (shared ? L1 : 0) - scratch) / each;
}

/* Registers for addresses, sums, and the arithmetic on a vector, and for weights that are shifted to it. */
static uint64_t arithmetic(const struct cln_workload *work, const struct cln_config *c) {
    const bool weighted = work->users == CLN_KNOBS_BACKWARD || work->kind < CLN_KIND_SOFTMAX;
    const uint64_t shifted = cln_leads(work, c) && weighted ? (work->norm == CLNORM_LAYER_NORM ? 16 : 8) : 0;
    return 16 + 3 * cln_registers_of(c->vec * work->real_size) + shifted;
}

/* The weights and biases of a column. */
static uint64_t affine_tensors(const struct cln_workload *work) {
    return work->kind >= CLN_KIND_SOFTMAX ? 0 : work->norm == CLNORM_LAYER_NORM ? 2 : 1;
}

/* Further registers where rows begin anywhere within a vector, of which a lane takes so many at once: for weights of
 * several vectors (AFFINES_AT_ONCE in cl/norm/norm.h) and addresses in a loop. The gradient of softmax keeps parts of its
 * products. Fitted to what ptxas uses for 100 kernels, which does not keep the z of several vectors apart. */
static uint64_t leading_registers(const struct cln_workload *work, const struct cln_config *c, uint64_t vectors) {
    if (!cln_leads(work, c))
        return 0;
    if (work->kind == CLN_KIND_SOFTMAX_BACKWARD)
        return c->keep == CLN_KEEP_REGISTERS && work->x_size < work->real_size ? vectors * 11 / 2 : 0;
    const uint64_t at_once = c->weights == CLN_WEIGHTS_EARLY || work->y_scaled ? 1
                             : work->norm == CLNORM_LAYER_NORM                 ? 2
                                                                               : 4;
    const uint64_t addresses = c->keep == CLN_KEEP_REGISTERS ? 0 : 2 * (uint64_t)cln_moved_tensors(work);
    return (cln_smaller(at_once, cln_larger(vectors, 1)) - 1) * affine_tensors(work) *
               cln_registers_of(c->vec * work->x_size) +
           addresses;
}

/* Where a lane holds many vectors of 2-byte elements for an 8-bit y, the compiler widens some before they are needed.
 * Fitted to what ptxas uses for 14 kernels. */
static uint64_t code_registers(const struct cln_workload *work, const struct cln_config *c, uint64_t vectors) {
    enum { FEW = 4 };
    const bool widens = work->y_scaled && c->keep == CLN_KEEP_REGISTERS && work->x_size < work->real_size;
    return widens && vectors > FEW ? (vectors - FEW) * c->vec / 2 : 0;
}

uint64_t cln_forward_registers(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t vectors = c->keep == CLN_KEEP_REGISTERS ? cln_vectors_per_lane(work, c)
                                                           : cln_smaller(c->unroll, cln_vectors_per_lane(work, c));
    const uint64_t held = cln_holds_pieces(work, c) ? 2 * cln_registers_of(cln_held_bytes(work, c))
                                                    : vectors * cln_registers_of(c->vec * work->held_size);
    const uint64_t weights = affine_tensors(work) + (work->kind == CLN_KIND_GATED); /* z comes with them */
    const uint64_t early =
        c->weights == CLN_WEIGHTS_EARLY ? weights * vectors * cln_registers_of(c->vec * work->x_size) : 0;
    return arithmetic(work, c) + held + early + leading_registers(work, c, vectors) + code_registers(work, c, vectors);
}

/* -------------------------------------------------------------------------------------------------------- backward */

uint64_t cln_elements_per_lane(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t columns = c->tile < work->group_size ? c->tile : cln_reach(work, c);
    return cln_divide_up(cln_divide_up(columns, c->vec), c->lanes) * c->vec;
}

uint64_t cln_row_vectors(const struct cln_workload *work, const struct cln_config *c) {
    return work->groups * cln_divide_up(work->group_size, c->vec);
}

/* A row of few vectors gets narrow lines, so that there are more work-groups. Where rows are few, lines are wider, as long
 * as each compute unit has a work-group: narrow ones would be more than the rows. */
uint64_t cln_column_lanes(const struct cln_workload *work, const struct cln_config *c, uint64_t compute_units) {
    const uint64_t vectors = cln_row_vectors(work, c), items = (uint64_t)c->lanes * c->segments;
    const uint64_t least = vectors < 256 ? 2 : vectors < 512 ? 4 : 8;
    const uint64_t lines = cln_power_of_two_at_least(cln_divide_up(work->rows, c->unroll));
    const uint64_t most = cln_power_of_two_at_most(cln_larger(vectors / cln_larger(compute_units, 1), 1));
    return cln_smaller(items, cln_larger(least, cln_smaller(cln_divide_up(items, lines), most)));
}

/* Backward: whether the sums over rows stay in registers until the last row. */
static bool accumulates_in_registers(const struct cln_config *c) {
    return c->accumulator == CLN_ACCUMULATOR_REGISTERS || c->accumulator == CLN_ACCUMULATOR_COLUMNS;
}

bool cln_unrolls_columns(const struct cln_config *c) {
    return c->keep == CLN_KEEP_REGISTERS || accumulates_in_registers(c) || c->accumulator == CLN_ACCUMULATOR_SPLIT;
}

uint64_t cln_backward_local_bytes(const struct cln_workload *work, const struct cln_config *c, uint64_t span) {
    const uint64_t sums = work->norm == CLNORM_LAYER_NORM ? 2 : 1; /* of a tile, of two rows: cl/norm/team.h */
    const uint64_t quads = cln_exchanges(c) ? 2 * sums * cln_divide_up(cln_tiles(work, c), 4) : 1;
    const uint64_t messages = (quads + 1) * sizeof(cl_float4) + 3 * sizeof(cl_uint); /* one quad for alignment */
    const uint64_t scratch = 4 * (uint64_t)c->lanes * c->segments * work->real_size + messages;
    const uint64_t columns =
        cln_unrolls_columns(c) ? cln_elements_per_lane(work, c) * c->lanes : cln_divide_up(c->tile, c->vec) * c->vec;
    const uint64_t line = columns * work->real_size;
    switch (c->accumulator) {
    case CLN_ACCUMULATOR_LOCAL:
        return scratch + 2 * span * c->segments * line;
    case CLN_ACCUMULATOR_SPLIT:
        return scratch + c->segments * line;
    case CLN_ACCUMULATOR_COLUMNS:
        return scratch + 2 * (uint64_t)c->lanes * c->segments * c->vec * work->real_size;
    case CLN_ACCUMULATOR_REGISTERS:
        return scratch + (c->segments > 1 ? c->segments * line : 0);
    default:
        return scratch;
    }
}

uint64_t cln_config_span(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c) {
    const bool whole = c->tile == work->group_size;
    if (!whole || cln_unrolls_columns(c))
        return 1;
    if (c->accumulator == CLN_ACCUMULATOR_MEMORY)
        return work->groups;
    const uint64_t most = device->local_memory / (4 * work->real_size); /* columns: half of the local memory */
    return work->groups <= most / work->group_size ? work->groups : 1;
}

uint64_t cln_config_abreast(const struct cln_workload *work, const struct cln_config *c) {
    enum { LARGE = 8 << 20, LINE = 128, LINES = 4 }; /* bytes of x; of an access of memory; the fewest in a large x */
    const uint64_t weight_rows = work->weight_repeat <= 1 ? cln_larger(work->weight_rows, 1) : 1;
    const uint64_t neighbours = work->groups > 1 ? work->groups : weight_rows;
    if (!cln_unrolls_columns(c) || c->accumulator == CLN_ACCUMULATOR_COLUMNS || cln_leads(work, c) ||
        c->tile < work->group_size)
        return 1;
    const uint64_t segment = cln_product(work->group_size, work->x_size);
    const bool large = cln_x_bytes(work) >= LARGE;
    const uint64_t least = cln_divide_up(large ? LINES * LINE : LINE, segment);
    const uint64_t most = cln_smaller(cln_smaller(neighbours, least), c->segments);
    return cln_divide_up(neighbours, cln_divide_up(neighbours, most));
}

uint64_t cln_rows_at_once(const struct cln_workload *work, const struct cln_config *c) {
    return c->segments / cln_config_abreast(work, c);
}

uint64_t cln_blocks(const struct cln_workload *work, const struct cln_config *c, uint64_t span) {
    const uint64_t abreast = work->groups > 1 ? cln_config_abreast(work, c) : 1;
    return cln_divide_up(work->groups / span, abreast) * cln_tiles(work, c);
}

uint64_t cln_weight_blocks(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t abreast = work->groups > 1 ? 1 : cln_config_abreast(work, c);
    return cln_divide_up(cln_larger(work->weight_rows, 1), abreast);
}

uint64_t cln_config_row_groups(const clnorm_device_info *device, const struct cln_config *c, uint64_t blocks) {
    return cln_larger((uint64_t)c->groups_per_cu * device->compute_units / blocks, 1);
}

uint64_t cln_groups_of_class(uint64_t at_once, uint64_t classes, uint64_t rows, uint64_t taken) {
    enum {
        MOST_WAVES = 4,
        START = 10 /* iterations that take as long as a work-group's slot and its first loads */
    };
    uint64_t best = 1, least = UINT64_MAX;
    for (uint64_t waves = 1; waves <= MOST_WAVES; waves++) {
        const uint64_t groups = cln_larger(cln_smaller(waves * at_once / classes, rows), 1);
        const uint64_t iterations = cln_divide_up(rows, groups * taken);
        const uint64_t time = cln_divide_up(groups * classes, at_once) * (iterations + START);
        if (time < least) {
            least = time;
            best = groups;
        }
    }
    return best;
}

/* The sums that a lane holds for each of its columns. */
static uint64_t sums_in_registers(const struct cln_workload *work, const struct cln_config *c) {
    if (c->accumulator == CLN_ACCUMULATOR_REGISTERS)
        return (uint64_t)work->sums_rows + work->both_sums;
    return c->accumulator == CLN_ACCUMULATOR_SPLIT && work->sums_rows;
}

/* Those of a work-item that sums columns: a vector of each input for each row that it takes at once, and the sums. */
static uint64_t registers_of_columns(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t inputs = 2 + work->more_inputs; /* x and dy */
    const uint64_t held = c->unroll * inputs * cln_registers_of(c->vec * work->x_size);
    return c->accumulator == CLN_ACCUMULATOR_COLUMNS ? held + 2 * cln_registers_of(c->vec * work->real_size) : 0;
}

/* Those of a work-item that goes through rows. */
static uint64_t registers_of_rows(const struct cln_workload *work, const struct cln_config *c) {
    const uint64_t elements = cln_elements_per_lane(work, c), vectors = elements / c->vec;
    const uint64_t vector = cln_registers_of(c->vec * work->x_size);
    const uint64_t inputs = 2 + work->more_inputs; /* x and dy */
    const uint64_t rows = c->keep == CLN_KEEP_REGISTERS ? c->pipeline : 0;
    const uint64_t held = rows * inputs * vectors * vector;
    const uint64_t sums = sums_in_registers(work, c) * cln_registers_of(elements * work->real_size);
    const uint64_t early = c->weights == CLN_WEIGHTS_EARLY ? vectors * vector : 0;
    const uint64_t addresses = vectors * (c->pipeline == 1 ? cln_larger(c->vec / 2, 1) : 4);
    const uint64_t gate = work->gated ? elements * 2 : 0; /* factors and slopes */
    return held + sums + early + addresses + gate;
}

uint64_t cln_backward_least_registers(const struct cln_workload *work, const struct cln_config *c) {
    return arithmetic(work, c) + cln_larger(registers_of_rows(work, c), registers_of_columns(work, c));
}

/* The constants, also that of a gate, are fitted to the registers that ptxas uses for 570 kernels of every kind. It keeps a
 * gate's products too where it has the registers. */
uint64_t cln_backward_registers(const struct cln_workload *work, const struct cln_config *c) {
    enum { SPARE = 40, GATED_SPARE = 12 };
    const uint64_t spare = work->gated ? GATED_SPARE + cln_elements_per_lane(work, c) * 3 / 2 : SPARE;
    return arithmetic(work, c) + cln_larger(registers_of_rows(work, c) + spare, registers_of_columns(work, c));
}

uint64_t cln_least_registers(const struct cln_workload *work, const struct cln_config *c) {
    enum { OFFSETS = 4 }; /* with an 8-bit y, for the addresses of rows at any offset */
    if (work->users == CLN_KNOBS_ELEMENTS)
        return 0;
    if (work->users == CLN_KNOBS_BACKWARD)
        return cln_backward_least_registers(work, c);
    return cln_forward_registers(work, c) + (work->y_scaled && cln_leads(work, c) ? OFFSETS : 0);
}
