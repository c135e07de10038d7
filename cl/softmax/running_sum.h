/* Sums of many vectors of one lane, UNROLL at a time. They are taken in runs, since the rounding errors of one long chain
 * of additions would add up. */
#ifndef RUNNING_SUM_H
#define RUNNING_SUM_H

#include "common/vector.h"

#define RUN_BLOCKS 16 /* blocks of UNROLL vectors that are added one after the other */

struct running_sum {
    realv run[UNROLL]; /* of the current run */
    realv runs;        /* of the runs before it */
    uint blocks;       /* in the current run */
};

static inline void running_sum_start(struct running_sum *sum) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        sum->run[j] = 0;
    sum->runs = 0;
    sum->blocks = 0;
}

static inline void running_sum_end_run(struct running_sum *sum) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++) {
        sum->runs += sum->run[j];
        sum->run[j] = 0;
    }
    sum->blocks = 0;
}

static inline void running_sum_end_block(struct running_sum *sum) {
    if (++sum->blocks == RUN_BLOCKS)
        running_sum_end_run(sum);
}

/* The sum over all elements. */
static inline real running_sum_total(struct running_sum *sum) {
    running_sum_end_run(sum);
    return sum_elements(sum->runs);
}

#endif
