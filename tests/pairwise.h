/* Pairwise coverage with few cases: every level of a factor meets every level of every other factor at least once. Quick
 * tests (fixture_is_quick()) have those of them with a level that no case before had: the driver's cache has their kernels
 * if all cases ran. */
#ifndef TEST_PAIRWISE_H
#define TEST_PAIRWISE_H

#include <stdbool.h>
#include <stdint.h>

enum { PAIRWISE_FACTORS = 24 };

struct pairwise;

/* levels: [factors] numbers of levels, each at least 1. The same seed gives the same cases. Ends the process when memory
 * runs out. */
struct pairwise *pairwise_make(const unsigned *levels, unsigned factors, uint64_t seed);

/* NULL is allowed. */
void pairwise_free(struct pairwise *pairwise);

/* The next case: a level for each factor. false: no case is left, and level is as it was. */
bool pairwise_next(struct pairwise *pairwise, unsigned *level);

/* The next case of all, in quick tests too. is_new: it has a level that no case before had. */
bool pairwise_next_of_all(struct pairwise *pairwise, unsigned *level, bool *is_new);

/* The same without an end: after the last case, a new sequence is made from seed. *pairwise is NULL at first. */
void pairwise_cycle(struct pairwise **pairwise, const unsigned *levels, unsigned factors, unsigned *level, uint64_t seed);

#endif
