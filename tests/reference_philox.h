/* Philox 4x32-10 on the host, for what kernels draw at random. */
#ifndef TEST_REFERENCE_PHILOX_H
#define TEST_REFERENCE_PHILOX_H

#include <stdint.h>

/* The four words of a counter and a key. */
void ref_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

#endif
