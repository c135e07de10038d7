/* Sums of many vectors of one lane, UNROLL at a time. They are taken in runs, since the rounding errors of one long chain
 * of additions would add up. The runs of a lane with very many of them are added up in sets. */
#ifndef RUNNING_SUM_H
#define RUNNING_SUM_H

#include "common/segment.h"
#include "common/vector.h"

#define RUN_BLOCKS 16 /* blocks of UNROLL vectors that are added one after the other */

#define SET_RUNS 64
#define HAS_SETS (VECTORS / LANES / (UNROLL * RUN_BLOCKS) > 4 * SET_RUNS)

struct running_sum {
    realv run[UNROLL]; /* of the current run */
    realv runs;        /* of the runs before it, with HAS_SETS of those in its set */
    realv sets;        /* with HAS_SETS: of the sets before that one */
    uint blocks;       /* in the current run */
    uint ended;        /* with HAS_SETS: runs in the current set */
};

static inline void running_sum_start(struct running_sum *sum) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        sum->run[j] = 0;
    sum->runs = sum->sets = 0;
    sum->blocks = sum->ended = 0;
}

static inline void running_sum_end_run(struct running_sum *sum) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++) {
        sum->runs += sum->run[j];
        sum->run[j] = 0;
    }
    sum->blocks = 0;
    if (HAS_SETS && ++sum->ended == SET_RUNS) {
        sum->sets += sum->runs;
        sum->runs = 0;
        sum->ended = 0;
    }
}

static inline void running_sum_end_block(struct running_sum *sum) {
    if (++sum->blocks == RUN_BLOCKS)
        running_sum_end_run(sum);
}

/* The sum over all elements. */
static inline real running_sum_total(struct running_sum *sum) {
    running_sum_end_run(sum);
    return sum_elements(HAS_SETS ? sum->sets + sum->runs : sum->runs);
}

#endif
