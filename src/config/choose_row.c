#include "config/choose_row.h"

#include <math.h>

#include "base/arithmetic.h"
#include "base/status.h"
#include "config/cost.h"
#include "config/database.h"
#include "config/resources.h"

/* What a choice by a row depends on. */
struct problem {
    const clnorm_device_info *device;
    const struct cln_workload *work;
    cln_choose_fn choose;
};

/* A message of a choice that failed is not the caller's. */
static bool choose_quietly(const struct problem *p, const struct cln_workload *work, const struct cln_config *forced,
                           struct cln_config *config) {
    struct cln_failure before;
    cln_failure_keep(&before);
    const bool chosen = !p->choose(p->device, work, forced, config);
    cln_failure_restore(&before);
    return chosen;
}

/* ----------------------------------------------------------------------------------------------- at another width */

/* Whether a row was measured at less than half or more than twice the width. */
static bool is_far(const struct cln_workload *work, const struct cln_database_row *row) {
    return row->cols < work->group_size / 2 || row->cols / 2 > work->group_size;
}

/* The same bytes of x as rows of another width. */
static struct cln_workload at_width(const struct cln_workload *work, uint64_t cols) {
    struct cln_workload other = *work;
    other.group_size = cols;
    other.rows = cln_larger(cln_product(work->rows, work->group_size) / cols, 1);
    return other;
}

/* Whether a config takes no more registers than the device has, or than at the width that was measured. */
static bool registers_fit(const struct problem *p, const struct cln_database_row *row, const struct cln_config *c) {
    const struct cln_workload measured = at_width(p->work, row->cols);
    struct cln_config there = *c;
    there.tile = (uint32_t)cln_or_else(row->knobs.tile, row->cols);
    const struct cln_facts facts = cln_facts_of(p->device);
    return cln_least_registers(p->work, c) <= cln_least_registers(&measured, &there) || !cln_spills(&facts, p->work, c);
}

/* Fits a measured tile to a segment of another width: even tiles, with no more vectors of a lane. Returns false if one tile
 * would hold the whole segment. Without a tile a row is for whole segments. */
static bool fit_tile(const struct cln_workload *work, uint64_t measured, struct cln_config *c) {
    if (!c->tile)
        c->tile = (uint32_t)work->group_size;
    else if (measured != work->group_size) {
        const uint64_t step = (uint64_t)cln_larger(c->vec, 1) * cln_larger(c->lanes, 1);
        c->tile = (uint32_t)cln_even_tile(work, c, cln_divide_up(c->tile, step) * step);
        return c->tile < work->group_size;
    }
    return true;
}

/* Chooses the config by a row, and returns whether it suits the work. */
static bool suits(const struct problem *p, const struct cln_database_row *row, struct cln_config *config) {
    struct cln_config knobs = row->knobs;
    if (is_far(p->work, row) || (p->work->users == CLN_KNOBS_BACKWARD && !fit_tile(p->work, row->cols, &knobs)))
        return false;
    return choose_quietly(p, p->work, &knobs, config) && registers_fit(p, row, config);
}

/* ------------------------------------------------------------------------------------------------------- neighbours */

/* A config by the row of another width. */
struct neighbour {
    struct cln_config config;
    double cost; /* by the model */
    double time; /* over that at the row's width, for as many bytes */
    bool suits;
};

/* The part of the lanes' vectors that a segment fills. */
static double fullness(const struct cln_workload *work, const struct cln_config *c) {
    const bool backward = work->users == CLN_KNOBS_BACKWARD;
    const uint64_t each = backward ? cln_elements_per_lane(work, c) : cln_vectors_per_lane(work, c) * c->vec;
    const uint64_t columns = backward ? cln_smaller(c->tile, work->group_size) : work->group_size;
    return (double)columns / (double)cln_product(each, c->lanes);
}

/* Whether all lanes have as many vectors at the width that a row was measured at, but not at this one. Compilers unroll the
 * loops of such lanes, and keep what the first one reads for the second one. */
static bool loses_even_turns(const struct cln_workload *work, const struct cln_database_row *row) {
    const uint64_t turn = (uint64_t)cln_larger(row->knobs.vec, 1) * cln_larger(row->knobs.lanes, 1);
    return row->knobs.keep == CLN_KEEP_REREAD && row->cols % turn == 0 && work->group_size % turn;
}

/* The cost and the time by the model, which underestimates idle lanes and loops that are not unrolled. Returns false if it
 * knows nothing. */
static bool estimate(const struct problem *p, const struct cln_database_row *row, struct neighbour *n) {
    const double rolled = loses_even_turns(p->work, row) ? 1.2 : 1;
    const struct cln_workload there = at_width(p->work, row->cols);
    struct cln_config knobs = row->knobs, measured;
    if (p->work->users == CLN_KNOBS_BACKWARD)
        (void)fit_tile(&there, row->cols, &knobs);
    if (!choose_quietly(p, &there, &knobs, &measured))
        return false;
    const double cost_there = cln_config_cost(p->device, &there, &measured);
    n->cost = rolled * cln_config_cost(p->device, p->work, &n->config);
    if (!(cost_there > 0))
        return false;
    n->time = n->cost / cost_there * fmax(1, fullness(&there, &measured) / fullness(p->work, &n->config));
    return true;
}

static struct neighbour neighbour_of(const struct problem *p, const struct cln_database_row *row) {
    struct neighbour n = {.suits = false};
    n.suits = suits(p, row, &n.config) && estimate(p, row, &n);
    return n;
}

/* By the nearer row, if the other one is not clearly better for the width, and less costly. The model chooses where
 * that one is much slower than at its own width. The limits were fitted to 152 choices that were measured on an H200. */
static bool choose_neighbour(const struct problem *p, const struct cln_database_row *nearer,
                             const struct cln_database_row *other, struct cln_config *config) {
    const double clearly = 0.92, much = 1.4;
    const struct neighbour near = neighbour_of(p, nearer), far = neighbour_of(p, other);
    const bool takes_far = !near.suits || (far.suits && far.time < clearly * near.time && far.cost <= near.cost);
    const struct neighbour *const taken = takes_far ? &far : &near;
    if (!taken->suits || taken->time > much)
        return false;
    *config = taken->config;
    return true;
}

/* By the row of the work's width. */
static bool choose_own(const struct problem *p, const struct cln_database_row *row, struct cln_config *config) {
    struct cln_config own;
    if (!suits(p, row, &own))
        return false;
    *config = own;
    return true;
}

bool cln_config_choose_row(const clnorm_device_info *device, const struct cln_workload *work, const char *rows,
                           const char *name, bool few, cln_choose_fn choose, struct cln_config *config) {
    enum { WIDEST = 16 }; /* bytes of a vector */
    static const struct cln_config automatic = {0};
    const struct problem p = {device, work, choose};
    const uint64_t widest = cln_config_element_aligned(device, &automatic) ? 1 : WIDEST / work->x_size;
    const struct cln_database_widths widths = {cln_smaller(work->alignment, widest), widest,
                                               cln_smaller(work->lead_vec, widest) > work->alignment};
    const struct cln_database_rows found = cln_database_find(rows, name, work->group_size, few, widths);
    if (found.below.cols == work->group_size)
        return choose_own(&p, &found.below, config);
    if (!found.below.cols || !found.above.cols)
        return false;
    const bool nearer_below =
        (double)work->group_size * (double)work->group_size < (double)found.below.cols * (double)found.above.cols;
    return nearer_below ? choose_neighbour(&p, &found.below, &found.above, config)
                        : choose_neighbour(&p, &found.above, &found.below, config);
}
