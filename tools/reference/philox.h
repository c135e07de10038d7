/* The random numbers of kernels. */
#ifndef REFERENCE_PHILOX_H
#define REFERENCE_PHILOX_H

#include "clnorm/clnorm.h"

/* Philox 4x32-10, which makes four words of a counter and a key: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers:
 * as easy as 1, 2, 3". */
void ref_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/* Whether dropout keeps an element: see clnorm_norm_desc. */
bool ref_kept(clnorm_seed seed, double probability, uint64_t row, uint64_t column);

/* The random word of stochastic rounding for an element of a call: see clnorm_quantize_desc. */
uint32_t ref_draw(clnorm_seed seed, uint64_t element);

#endif
