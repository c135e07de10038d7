#include "config.h"

/* Measured on an H200: beside each row the time over that of a copy of the least traffic. Dropout's random words take so
 * many registers and instructions that a row is better held than read and drawn for again; late weights leave registers to
 * the draws where rows of 4-byte elements, or residuals, take many themselves; 64 registers that the compiler is told of
 * let it have more loads under way than those it would choose by itself. The first row that matches is taken. */
static const struct row {
    enum cln_work work;
    uint64_t x_size;     /* bytes of an element */
    uint64_t group_size; /* from here on, down from the row before */
    clnorm_keep keep;
    uint32_t lanes, segments, unroll;
    clnorm_weights weights;
    uint32_t registers, shelved;
} rows[] = {
    {CLN_WORK_ADD, 2, 16385, CLNORM_KEEP_REREAD, 1024, 1, 4, CLNORM_WEIGHTS_KEPT, 0, 0},    /* 65536: 1.07 */
    {CLN_WORK_ADD, 4, 49153, CLNORM_KEEP_LOCAL, 1024, 1, 8, CLNORM_WEIGHTS_KEPT, 0, 12},    /* 65536: 1.09, reread 1.15 */
    {CLN_WORK_ADD, 4, 16385, CLNORM_KEEP_REREAD, 1024, 1, 8, CLNORM_WEIGHTS_KEPT, 0, 0},    /* 65536: 1.15 */
    {CLN_WORK_ADD, 4, 8193, CLNORM_KEEP_REGISTERS, 1024, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0}, /* 16384: 1.02 */
    {CLN_WORK_ADD, 4, 4097, CLNORM_KEEP_REGISTERS, 512, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0},  /* 8192: 1.04 */
    {CLN_WORK_ADD, 4, 2049, CLNORM_KEEP_REGISTERS, 256, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0},  /* 4096: 1.03 */

    {CLN_WORK_DROPOUT, 2, 32769, CLNORM_KEEP_LOCAL, 1024, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0}, /* 65536: 1.23, reread 1.63 */
    {CLN_WORK_DROPOUT, 2, 16385, CLNORM_KEEP_REGISTERS, 1024, 1, 1, CLNORM_WEIGHTS_LATE, 64, 0}, /* 32768: 1.12 */
    {CLN_WORK_DROPOUT, 2, 8193, CLNORM_KEEP_REGISTERS, 512, 1, 1, CLNORM_WEIGHTS_LATE, 64, 0},   /* 16384: 1.03 */
    {CLN_WORK_DROPOUT, 2, 4097, CLNORM_KEEP_REGISTERS, 256, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0},   /* 8192: 1.04 */
    {CLN_WORK_DROPOUT, 2, 2049, CLNORM_KEEP_REGISTERS, 256, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0},   /* 4096: 1.02 */
    {CLN_WORK_DROPOUT, 2, 1025, CLNORM_KEEP_REGISTERS, 64, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},
    {CLN_WORK_DROPOUT, 2, 513, CLNORM_KEEP_REGISTERS, 32, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},    /* 1024: 1.03 */
    {CLN_WORK_DROPOUT, 2, 129, CLNORM_KEEP_REGISTERS, 16, 8, 1, CLNORM_WEIGHTS_LATE, 0, 0},    /* 256: 1.09 */
    {CLN_WORK_DROPOUT, 4, 16385, CLNORM_KEEP_REREAD, 1024, 1, 8, CLNORM_WEIGHTS_LATE, 0, 0},   /* 65536: 1.37 */
    {CLN_WORK_DROPOUT, 4, 8193, CLNORM_KEEP_REGISTERS, 1024, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0}, /* 16384: 1.02 */
    {CLN_WORK_DROPOUT, 4, 4097, CLNORM_KEEP_REGISTERS, 512, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},  /* 8192: 1.02 */
    {CLN_WORK_DROPOUT, 4, 2049, CLNORM_KEEP_REGISTERS, 256, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},  /* 4096: 1.04 */

    {CLN_WORK_CHAIN, 2, 32769, CLNORM_KEEP_LOCAL, 1024, 1, 2, CLNORM_WEIGHTS_KEPT, 0, 6}, /* 65536: 1.28, reread 1.44 */
    {CLN_WORK_CHAIN, 2, 16385, CLNORM_KEEP_REGISTERS, 1024, 1, 1, CLNORM_WEIGHTS_LATE, 64, 0}, /* 32768: 1.10 */
    {CLN_WORK_CHAIN, 2, 8193, CLNORM_KEEP_REGISTERS, 512, 1, 1, CLNORM_WEIGHTS_LATE, 64, 0},   /* 16384: 1.03 */
    {CLN_WORK_CHAIN, 2, 4097, CLNORM_KEEP_REGISTERS, 256, 1, 1, CLNORM_WEIGHTS_LATE, 64, 0},   /* 8192: 1.03 */
    {CLN_WORK_CHAIN, 2, 2049, CLNORM_KEEP_REGISTERS, 128, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0},   /* 4096: 1.06 */
    {CLN_WORK_CHAIN, 2, 1025, CLNORM_KEEP_REGISTERS, 64, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0},
    {CLN_WORK_CHAIN, 2, 513, CLNORM_KEEP_REGISTERS, 32, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0}, /* 1024: 1.03 */
    {CLN_WORK_CHAIN, 2, 129, CLNORM_KEEP_REGISTERS, 16, 8, 1, CLNORM_WEIGHTS_LATE, 0, 0},  /* 256: 1.08 */
    {CLN_WORK_CHAIN, 4, 24577, CLNORM_KEEP_LOCAL, 1024, 1, 4, CLNORM_WEIGHTS_KEPT, 0,
     12}, /* 65536: 1.10, reread 1.20; 32768: 1.08 */
    {CLN_WORK_CHAIN, 4, 8193, CLNORM_KEEP_REGISTERS, 1024, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0}, /* 16384, 20480: 1.04 */
    {CLN_WORK_CHAIN, 4, 4097, CLNORM_KEEP_REGISTERS, 256, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},   /* 8192: 1.04 */
    {CLN_WORK_CHAIN, 4, 2049, CLNORM_KEEP_REGISTERS, 128, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},   /* 4096: 1.04 */

    {CLN_WORK_QUANTIZED, 2, 16385, CLNORM_KEEP_REREAD, 1024, 1, 8, CLNORM_WEIGHTS_KEPT, 0, 0},   /* as without scales */
    {CLN_WORK_QUANTIZED, 2, 8193, CLNORM_KEEP_REGISTERS, 512, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},  /* 16384: 1.21 */
    {CLN_WORK_QUANTIZED, 2, 4097, CLNORM_KEEP_REGISTERS, 128, 1, 1, CLNORM_WEIGHTS_LATE, 0, 0},  /* 8192: 1.10 */
    {CLN_WORK_QUANTIZED, 2, 2049, CLNORM_KEEP_REGISTERS, 128, 1, 1, CLNORM_WEIGHTS_EARLY, 0, 0}, /* 4096: 1.16 */
    {CLN_WORK_QUANTIZED, 2, 1025, CLNORM_KEEP_REGISTERS, 64, 2, 1, CLNORM_WEIGHTS_EARLY, 0, 0},
    {CLN_WORK_QUANTIZED, 2, 513, CLNORM_KEEP_REGISTERS, 32, 4, 1, CLNORM_WEIGHTS_EARLY, 0, 0}, /* 1024: 1.17 */

    {CLN_WORK_SOFTMAX, 2, 16385, CLNORM_KEEP_REREAD, 512, 1, 4, 0, 0, 0},  /* 65536: 1.10 */
    {CLN_WORK_SOFTMAX, 2, 8193, CLNORM_KEEP_REREAD, 256, 1, 4, 0, 0, 0},   /* 16384: 1.01 */
    {CLN_WORK_SOFTMAX, 2, 4097, CLNORM_KEEP_REREAD, 128, 1, 4, 0, 0, 0},   /* 8192: 1.01 */
    {CLN_WORK_SOFTMAX, 4, 16385, CLNORM_KEEP_REREAD, 1024, 1, 4, 0, 0, 0}, /* 65536: 1.07 */
    {CLN_WORK_SOFTMAX, 4, 8193, CLNORM_KEEP_REREAD, 512, 1, 4, 0, 0, 0},   /* 16384: 1.00 */

    {CLN_WORK_SOFTMAX_BACKWARD, 2, 16385, CLNORM_KEEP_REREAD, 1024, 1, 2, 0, 0, 0},   /* 65536: 1.07 */
    {CLN_WORK_SOFTMAX_BACKWARD, 2, 8193, CLNORM_KEEP_REREAD, 512, 1, 2, 0, 0, 0},     /* 16384: 0.98 */
    {CLN_WORK_SOFTMAX_BACKWARD, 4, 16385, CLNORM_KEEP_REREAD, 1024, 1, 4, 0, 0, 0},   /* 65536: 1.39 */
    {CLN_WORK_SOFTMAX_BACKWARD, 4, 8193, CLNORM_KEEP_REGISTERS, 1024, 1, 1, 0, 0, 0}, /* 16384: 0.97 */
};

bool cln_config_tuned(const struct cln_workload *work, clnorm_config *config) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (row->work != work->work || row->x_size != work->x_size || work->group_size < row->group_size)
            continue;
        config->keep = row->keep;
        config->lanes = row->lanes;
        config->segments = row->segments;
        config->unroll = row->unroll;
        config->weights = row->weights;
        config->registers = row->registers;
        config->shelved = row->shelved;
        return true;
    }
    return false;
}
