#include "reference/philox.h"

#include <math.h>
#include <string.h>

/* Figure 2 of the paper: a round has two multiplications, whose halves are swapped. */
static void make_round(uint32_t words[4], const uint32_t key[2]) {
    const uint64_t first = (uint64_t)words[0] * 0xD2511F53U;
    const uint64_t second = (uint64_t)words[2] * 0xCD9E8D57U;
    const uint32_t next[4] = {
        (uint32_t)(second >> 32) ^ words[1] ^ key[0],
        (uint32_t)second,
        (uint32_t)(first >> 32) ^ words[3] ^ key[1],
        (uint32_t)first,
    };
    memcpy(words, next, sizeof next);
}

void ref_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]) {
    memcpy(words, counter, 4 * sizeof *words);
    for (uint32_t i = 0; i < 10; i++) {
        const uint32_t round_key[2] = {key[0] + i * 0x9E3779B9U, key[1] + i * 0xBB67AE85U}; /* Weyl sequences */
        make_round(words, round_key);
    }
}

bool ref_kept(clnorm_seed seed, double probability, uint64_t row, uint64_t column) {
    const uint32_t counter[4] = {(uint32_t)(column / 8), (uint32_t)row, (uint32_t)seed.offset,
                                 (uint32_t)(seed.offset >> 32)};
    const uint32_t key[2] = {(uint32_t)seed.seed, (uint32_t)(seed.seed >> 32)};
    uint32_t words[4];
    ref_philox(counter, key, words);
    const uint32_t even = words[column % 8 / 2];
    const uint32_t own = column % 2 ? even << 16 | even >> 16 : even;
    return own >= floor(probability * 0x1p32);
}

uint32_t ref_draw(clnorm_seed seed, uint64_t element) {
    const uint64_t draw = element / 4;
    const uint32_t counter[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), (uint32_t)seed.offset,
                                 (uint32_t)(seed.offset >> 32)};
    const uint32_t key[2] = {(uint32_t)seed.seed, (uint32_t)(seed.seed >> 32)};
    uint32_t words[4];
    ref_philox(counter, key, words);
    return words[element % 4];
}
