#include "pairwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct pairwise {
    unsigned factors;
    unsigned levels[PAIRWISE_FACTORS];
    unsigned first[PAIRWISE_FACTORS]; /* index of a factor's level 0 among the levels of all factors */
    unsigned total;                   /* levels of all factors */
    unsigned next;                    /* pairs before this one have been seen */
    bool *seen;                       /* [total · total]: the pair of two indices, the smaller one first */
    bool *met;                        /* [total]: a case has had this level */
    struct random random;
};

struct pairwise *pairwise_make(const unsigned *levels, unsigned factors, uint64_t seed) {
    struct pairwise *pairwise = calloc(1, sizeof *pairwise);
    if (pairwise != NULL) {
        pairwise->factors = factors;
        pairwise->random = (struct random){seed};
        for (unsigned i = 0; i < factors; i++) {
            pairwise->levels[i] = levels[i];
            pairwise->first[i] = pairwise->total;
            pairwise->total += levels[i];
        }
        pairwise->seen = calloc(pairwise->total, pairwise->total);
        pairwise->met = calloc(pairwise->total, 1);
    }
    if (pairwise == NULL || pairwise->seen == NULL || pairwise->met == NULL) {
        fprintf(stderr, "no memory for a table of pairs\n");
        exit(1);
    }
    return pairwise;
}

void pairwise_free(struct pairwise *pairwise) {
    if (pairwise != NULL) {
        free(pairwise->seen);
        free(pairwise->met);
        free(pairwise);
    }
}

static bool *pair_of(const struct pairwise *pairwise, const unsigned *level, unsigned a, unsigned b) {
    return &pairwise->seen[(pairwise->first[a] + level[a]) * pairwise->total + pairwise->first[b] + level[b]];
}

/* The factor of a level's index. */
static unsigned factor_of(const struct pairwise *pairwise, unsigned number) {
    unsigned factor = 0;
    while (factor + 1 < pairwise->factors && number >= pairwise->first[factor + 1])
        factor++;
    return factor;
}

/* Moves on to a pair that no case has had; false where there is none. */
static bool find_unseen(struct pairwise *pairwise) {
    for (; pairwise->next < pairwise->total * pairwise->total; pairwise->next++) {
        const unsigned a = factor_of(pairwise, pairwise->next / pairwise->total);
        const unsigned b = factor_of(pairwise, pairwise->next % pairwise->total);
        if (a < b && !pairwise->seen[pairwise->next])
            return true;
    }
    return false;
}

/* Number of pairs that a factor's level makes with the levels of other factors and that no case has had. */
static unsigned gain_of(const struct pairwise *pairwise, const unsigned *level, const unsigned *others, unsigned count,
                        unsigned factor) {
    unsigned gain = 0;
    for (unsigned i = 0; i < count; i++)
        gain += others[i] < factor ? !*pair_of(pairwise, level, others[i], factor)
                                   : !*pair_of(pairwise, level, factor, others[i]);
    return gain;
}

/* Sets a factor to the level with the largest gain, to any of several. Returns the gain. */
static unsigned set_best(struct pairwise *pairwise, unsigned *level, const unsigned *others, unsigned count,
                         unsigned factor) {
    unsigned best = 0;
    unsigned most = 0;
    unsigned equals = 0;
    for (level[factor] = 0; level[factor] < pairwise->levels[factor]; level[factor]++) {
        const unsigned gain = gain_of(pairwise, level, others, count, factor);
        equals = gain > most ? 1 : equals + (gain == most);
        if (gain > most || (gain == most && random_below(&pairwise->random, equals) == 0))
            best = level[factor];
        most = gain > most ? gain : most;
    }
    level[factor] = best;
    return most;
}

/* Makes a case with the next pair. Its other factors are set one after another in random order. Returns the number of new
 * pairs. After Cohen, Dalal, Fredman and Patton 1997, "The AETG system". */
static unsigned propose(struct pairwise *pairwise, unsigned *level) {
    const unsigned numbers[] = {pairwise->next / pairwise->total, pairwise->next % pairwise->total};
    unsigned order[PAIRWISE_FACTORS] = {0};
    for (unsigned i = 0; i < pairwise->factors; i++)
        order[i] = i;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned factor = factor_of(pairwise, numbers[i]);
        level[factor] = numbers[i] - pairwise->first[factor];
        order[factor] = order[i];
        order[i] = factor;
    }
    unsigned gain = 1;
    for (unsigned i = 2; i < pairwise->factors; i++) {
        const unsigned other = i + (unsigned)random_below(&pairwise->random, pairwise->factors - i);
        const unsigned factor = order[other];
        order[other] = order[i];
        order[i] = factor;
        gain += set_best(pairwise, level, order, i, factor);
    }
    return gain;
}

/* Counts the pairs of a case as seen. Returns the number of levels that no case had before. */
static unsigned count_pairs(struct pairwise *pairwise, const unsigned *level) {
    unsigned new_levels = 0;
    for (unsigned a = 0; a < pairwise->factors; a++) {
        bool *const met = &pairwise->met[pairwise->first[a] + level[a]];
        new_levels += !*met;
        *met = true;
        for (unsigned b = a + 1; b < pairwise->factors; b++)
            *pair_of(pairwise, level, a, b) = true;
    }
    return new_levels;
}

bool pairwise_next_of_all(struct pairwise *pairwise, unsigned *level, bool *is_new) {
    enum { PROPOSALS = 50 };
    unsigned most = 0;
    if (!find_unseen(pairwise))
        return false;
    for (int i = 0; i < PROPOSALS; i++) {
        unsigned proposal[PAIRWISE_FACTORS];
        const unsigned gain = propose(pairwise, proposal);
        if (gain > most) {
            most = gain;
            memcpy(level, proposal, pairwise->factors * sizeof *level);
        }
    }
    *is_new = count_pairs(pairwise, level) > 0;
    return true;
}

bool pairwise_next(struct pairwise *pairwise, unsigned *level) {
    unsigned next[PAIRWISE_FACTORS];
    bool is_new;
    while (pairwise_next_of_all(pairwise, next, &is_new))
        if (is_new || !fixture_is_quick()) {
            memcpy(level, next, pairwise->factors * sizeof *level);
            return true;
        }
    return false;
}

void pairwise_cycle(struct pairwise **pairwise, const unsigned *levels, unsigned factors, unsigned *level, uint64_t seed) {
    bool is_new;
    while (*pairwise == NULL || !pairwise_next_of_all(*pairwise, level, &is_new)) {
        pairwise_free(*pairwise);
        *pairwise = pairwise_make(levels, factors, seed);
    }
}
