/* The model's choice: the candidate with the least estimated time. */
#include <string.h>

#include "base/arithmetic.h"
#include "base/status.h"
#include "config/candidates.h"
#include "config/check.h"
#include "config/cost.h"

/* How an operation's configs are found: candidates, rules and estimate. */
struct method {
    const struct cln_axis *axes;
    clnorm_status (*check)(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c);
    double (*cost)(const struct cln_choice *choice, const struct cln_config *c);
};

static double same_cost(const struct cln_choice *choice, const struct cln_config *c) {
    (void)choice, (void)c;
    return 0;
}

static struct method method_of(enum cln_knob_users users) {
    if (users == CLN_KNOBS_BACKWARD)
        return (struct method){cln_backward_axes, cln_check_backward, cln_backward_cost};
    if (users == CLN_KNOBS_ELEMENTS)
        return (struct method){cln_element_axes, cln_check_elements, same_cost};
    return (struct method){cln_forward_axes, cln_check_forward, cln_forward_cost};
}

/* A config whose registers would spill costs more than any other, so that it is chosen only where forced knobs leave no
 * other. */
static double cost_of(const struct method *method, const struct cln_choice *choice, const struct cln_config *c) {
    const double spilled = 1e15;
    return method->cost(choice, c) + (cln_spills(&choice->facts, choice->work, c) ? spilled : 0);
}

/* --------------------------------------------------------------------------------------------------------- the best */

/* The state of the search. */
struct search {
    const struct cln_choice *choice;
    struct method method;
    struct cln_config best, refused;
    double best_ns;
    bool found, has_refused;
};

static void consider(const struct cln_config *candidate, void *user) {
    struct search *const search = user;
    const double ns = cost_of(&search->method, search->choice, candidate);
    if (search->found && ns >= search->best_ns)
        return;
    if (search->method.check(search->choice->device, search->choice->work, candidate)) {
        if (!search->has_refused)
            search->refused = *candidate;
        search->has_refused = true;
        return;
    }
    search->best = *candidate;
    search->best_ns = ns;
    search->found = true;
}

clnorm_status cln_config_choose(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *forced, struct cln_config *config) {
    const clnorm_status status = cln_knobs_check(forced, work->users);
    if (status)
        return status;
    const struct cln_choice choice = {device, cln_facts_of(device), work, forced};
    struct search search = {.choice = &choice, .method = method_of(work->users)};
    struct cln_failure before;
    cln_failure_keep(&before);
    cln_candidates(&choice, search.method.axes, consider, &search);
    cln_failure_restore(&before);
    if (!search.found)
        return search.method.check(device, work, &search.refused);
    *config = search.best;
    return CLNORM_SUCCESS;
}

double cln_config_cost(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *config) {
    static const struct cln_config automatic = {0};
    const struct cln_choice choice = {device, cln_facts_of(device), work, &automatic};
    return method_of(work->users).cost(&choice, config);
}

clnorm_status cln_config_choose_reread(const clnorm_device_info *device, const struct cln_workload *work,
                                       const struct cln_config *forced, struct cln_config *config) {
    if (forced->keep && forced->keep != CLN_KEEP_REREAD)
        return cln_config_refuse("keep", forced->keep, "reread or 0 in this operation");
    return cln_config_choose(device, work, forced, config);
}

/* ------------------------------------------------------------------------------------------------- any number of rows */

struct cln_workload cln_config_many_rows(const struct cln_workload *work) {
    enum { ROWS = 1 << 16, ELEMENTS = 1 << 25 };
    struct cln_workload many = *work;
    many.rows = cln_larger(ROWS, ELEMENTS / cln_larger(work->groups * work->group_size, 1));
    return many;
}

clnorm_status cln_config_share_out(cln_choose_fn choose, const clnorm_device_info *device, const struct cln_workload *work,
                                   const clnorm_config *desc_config, struct cln_config *config) {
    struct cln_config forced, ordered = *config;
    const clnorm_status status = cln_config_open(desc_config, &forced);
    ordered.iterations = forced.iterations;
    ordered.run_length = forced.run_length;
    ordered.stores = forced.stores;
    return status ? status : choose(device, work, &ordered, config);
}

/* ----------------------------------------------------------------------------------------------------- the best few */

enum { MOST_ALIKE = 2 }; /* ranked configs that share out their work alike */

/* Sorted by time. */
struct ranking {
    const struct cln_choice *choice;
    struct method method;
    struct cln_config *configs;
    double *ns;
    size_t count, capacity;
};

/* Whether two configs divide the work in the same way. */
static bool alike(const struct cln_config *a, const struct cln_config *b) {
    return a->lanes == b->lanes && a->segments == b->segments && a->keep == b->keep && a->tile == b->tile &&
           a->chunks == b->chunks && a->accumulator == b->accumulator && a->row_split == b->row_split;
}

static void remove_at(struct ranking *ranking, size_t i) {
    ranking->count--;
    memmove(&ranking->configs[i], &ranking->configs[i + 1], (ranking->count - i) * sizeof *ranking->configs);
    memmove(&ranking->ns[i], &ranking->ns[i + 1], (ranking->count - i) * sizeof *ranking->ns);
}

static void insert_at(struct ranking *ranking, size_t i, const struct cln_config *candidate, double ns) {
    memmove(&ranking->configs[i + 1], &ranking->configs[i], (ranking->count - i) * sizeof *ranking->configs);
    memmove(&ranking->ns[i + 1], &ranking->ns[i], (ranking->count - i) * sizeof *ranking->ns);
    ranking->configs[i] = *candidate;
    ranking->ns[i] = ns;
    ranking->count++;
}

static void rank(const struct cln_config *candidate, void *user) {
    struct ranking *const ranking = user;
    const double ns = cost_of(&ranking->method, ranking->choice, candidate);
    size_t place = ranking->count, same = 0, last_alike = 0;
    while (place > 0 && ranking->ns[place - 1] > ns)
        place--;
    for (size_t i = 0; i < ranking->count; i++)
        if (alike(&ranking->configs[i], candidate)) {
            same++;
            last_alike = i;
        }
    const bool crowded = same >= MOST_ALIKE, full = ranking->count == ranking->capacity;
    if ((crowded && place > last_alike) || (!crowded && full && place == ranking->count) ||
        ranking->method.check(ranking->choice->device, ranking->choice->work, candidate))
        return;
    if (crowded)
        remove_at(ranking, last_alike);
    else if (full)
        ranking->count--;
    insert_at(ranking, place, candidate, ns);
}

size_t cln_config_rank(const clnorm_device_info *device, const struct cln_workload *work, struct cln_config *configs,
                       size_t capacity) {
    static const struct cln_config automatic = {0};
    double ns[CLN_MOST_RANKED];
    const struct cln_choice choice = {device, cln_facts_of(device), work, &automatic};
    struct ranking ranking = {.choice = &choice,
                              .method = method_of(work->users),
                              .configs = configs,
                              .ns = ns,
                              .capacity = capacity < CLN_MOST_RANKED ? capacity : CLN_MOST_RANKED};
    struct cln_failure before;
    cln_failure_keep(&before);
    if (ranking.capacity && work->users != CLN_KNOBS_GROUP) /* group norm has rules, and no model */
        cln_candidates(&choice, ranking.method.axes, rank, &ranking);
    cln_failure_restore(&before);
    return ranking.count;
}
