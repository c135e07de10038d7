#include "pairwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct pairwise {
    unsigned factors;
    unsigned levels[PAIRWISE_FACTORS];
    unsigned first[PAIRWISE_FACTORS]; /* the number that level 0 of a factor has among the levels of all */
    unsigned total;                   /* levels of all factors */
    unsigned next;                    /* pairs before this one have been seen */
    bool *seen;                       /* [total · total]: the pair of two numbers, the smaller one first */
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
    }
    if (pairwise == NULL || pairwise->seen == NULL) {
        fprintf(stderr, "no memory for a table of pairs\n");
        exit(1);
    }
    return pairwise;
}

void pairwise_free(struct pairwise *pairwise) {
    if (pairwise != NULL) {
        free(pairwise->seen);
        free(pairwise);
    }
}

static bool *pair_of(const struct pairwise *pairwise, const unsigned *level, unsigned a, unsigned b) {
    return &pairwise->seen[(pairwise->first[a] + level[a]) * pairwise->total + pairwise->first[b] + level[b]];
}

static unsigned new_pairs(const struct pairwise *pairwise, const unsigned *level) {
    unsigned count = 0;
    for (unsigned a = 0; a < pairwise->factors; a++)
        for (unsigned b = a + 1; b < pairwise->factors; b++)
            count += !*pair_of(pairwise, level, a, b);
    return count;
}

/* The factor and level that a number means. */
static unsigned factor_of(const struct pairwise *pairwise, unsigned number) {
    unsigned factor = 0;
    while (factor + 1 < pairwise->factors && number >= pairwise->first[factor + 1])
        factor++;
    return factor;
}

/* Moves on to a pair that no case has had yet; false when there is none. */
static bool find_unseen(struct pairwise *pairwise) {
    for (; pairwise->next < pairwise->total * pairwise->total; pairwise->next++) {
        const unsigned a = factor_of(pairwise, pairwise->next / pairwise->total);
        const unsigned b = factor_of(pairwise, pairwise->next % pairwise->total);
        if (a < b && !pairwise->seen[pairwise->next])
            return true;
    }
    return false;
}

/* A random case with that pair in it. */
static void propose(struct pairwise *pairwise, unsigned *level) {
    const unsigned numbers[] = {pairwise->next / pairwise->total, pairwise->next % pairwise->total};
    for (unsigned i = 0; i < pairwise->factors; i++)
        level[i] = (unsigned)random_below(&pairwise->random, pairwise->levels[i]);
    for (int i = 0; i < 2; i++) {
        const unsigned factor = factor_of(pairwise, numbers[i]);
        level[factor] = numbers[i] - pairwise->first[factor];
    }
}

bool pairwise_next(struct pairwise *pairwise, unsigned *level) {
    enum { PROPOSALS = 200 };
    if (!find_unseen(pairwise))
        return false;
    unsigned most = 0;
    for (int i = 0; i < PROPOSALS; i++) {
        unsigned proposal[PAIRWISE_FACTORS];
        propose(pairwise, proposal);
        const unsigned count = new_pairs(pairwise, proposal);
        if (count > most) {
            most = count;
            memcpy(level, proposal, pairwise->factors * sizeof *level);
        }
    }
    for (unsigned a = 0; a < pairwise->factors; a++)
        for (unsigned b = a + 1; b < pairwise->factors; b++)
            *pair_of(pairwise, level, a, b) = true;
    return true;
}
