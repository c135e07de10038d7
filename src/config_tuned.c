#include "config.h"

/* What measurements on NVIDIA GPUs (H200) say: beside each row the time over that of a copy of the least traffic, and of
 * plain norms behind a comma that of the gated norm, which takes their rows where it has none of its own. The first row
 * that matches is taken.
 *
 * Wide segments that are read twice, by way of the L1 and L2 caches, leave registers free for more work-groups; from 65536
 * columns on, what counts is how much of one segment is under way at once. Dropout's random words take so many registers
 * and instructions that a row is better held than read and drawn for again; late weights leave registers to the draws where
 * rows of 4-byte elements, or residuals, take many themselves; 64 registers that the compiler is told of let it have more
 * loads under way than those it would choose by itself. */
enum {
    EITHER = 0,
    LAYER = CLNORM_LAYER_NORM,
    RMS = CLNORM_RMS_NORM,
    REGISTERS = CLNORM_KEEP_REGISTERS,
    REREAD = CLNORM_KEEP_REREAD,
    LOCAL = CLNORM_KEEP_LOCAL,
    LATE = CLNORM_WEIGHTS_LATE,
    EARLY = CLNORM_WEIGHTS_EARLY,
    KEPT = CLNORM_WEIGHTS_KEPT,
    NEXT = CLNORM_PREFETCH_NEXT
};
static const struct row {
    enum cln_work work;
    int norm;
    uint64_t x_size;     /* bytes of an element */
    uint64_t group_size; /* from here on, down from the row before */
    /* As in a config. */
    uint32_t keep, lanes, segments, unroll, weights, registers, shelved, prefetch, asked;
} rows[] = {
    {CLN_WORK_GATED, LAYER, 2, 49153, LOCAL, 1024, 1, 8, LATE, 0, 0, 0, 0},   /* not measured with prefetch */
    {CLN_WORK_GATED, RMS, 2, 49153, REREAD, 1024, 1, 8, KEPT, 0, 0, NEXT, 2}, /* 65536: 1.08, without prefetch 1.11 */
    {CLN_WORK_NORM, LAYER, 2, 49153, LOCAL, 1024, 1, 8, LATE, 0, 0, NEXT, 0}, /* 65536: 1.03, without prefetch 1.08 */
    {CLN_WORK_NORM, EITHER, 2, 16385, REREAD, 1024, 1, 8, KEPT, 0, 0, 0, 0},  /* 65536: RMS 1.01; 32768: LN 1.04 */
    {CLN_WORK_NORM, EITHER, 2, 8193, REREAD, 512, 1, 4, KEPT, 0, 0, 0, 0},    /* 16384: 1.01, 1.00; 11008: 1.04, 1.04 */
    {CLN_WORK_NORM, RMS, 2, 8192, REREAD, 512, 1, 2, KEPT, 0, 0, 0, 0},       /* 0.99, 0.99 */
    {CLN_WORK_NORM, EITHER, 2, 4097, REREAD, 256, 1, 4, KEPT, 0, 0, 0, 0},    /* 5120: LN 1.04, RMS 1.01; 8192: LN 1.01 */
    {CLN_WORK_NORM, EITHER, 2, 4096, REREAD, 256, 1, 1, LATE, 0, 0, 0, 0},    /* LN 1.01, RMS 0.99, 1.00 */
    {CLN_WORK_NORM, EITHER, 2, 2049, REREAD, 128, 1, 4, KEPT, 0, 0, 0, 0},    /* 2560: 1.02; 3072: LN 1.05, RMS 1.01 */
    {CLN_WORK_NORM, RMS, 2, 513, REGISTERS, 64, 2, 1, EARLY, 0, 0, 0, 0},     /* 1024: 1.00, 1.02 */
    {CLN_WORK_NORM, LAYER, 4, 49153, LOCAL, 1024, 1, 8, KEPT, 0, 12, 0, 0},   /* 65536: 1.18, reread 1.24 */
    {CLN_WORK_NORM, EITHER, 4, 16385, REREAD, 1024, 1, 8, LATE, 0, 0, 0, 0},  /* 65536: LN 1.22, RMS 1.11, 1.08 */
    {CLN_WORK_NORM, RMS, 4, 8193, REREAD, 1024, 1, 2, LATE, 0, 0, 0, 0},      /* 16384: 0.99, 0.99; 11008: 0.99 */
    {CLN_WORK_NORM, LAYER, 4, 8193, REREAD, 512, 1, 8, KEPT, 0, 0, 0, 0},     /* 16384: 1.01; 11008: 1.02 */
    {CLN_WORK_NORM, RMS, 4, 4097, REREAD, 512, 1, 4, LATE, 0, 0, 0, 0},       /* 8192: 0.99, 0.98; 5120: 0.99 */
    {CLN_WORK_NORM, LAYER, 4, 4097, REREAD, 512, 1, 2, LATE, 0, 0, 0, 0},     /* 8192: 0.99; 5120: 1.02 */
    {CLN_WORK_NORM, EITHER, 4, 4096, REREAD, 512, 1, 1, LATE, 0, 0, 0, 0},    /* LN 1.00, RMS 0.99, 0.98 */
    {CLN_WORK_NORM, EITHER, 4, 2049, REREAD, 256, 1, 4, KEPT, 0, 0, 0, 0},    /* 2560: 1.00; 3072: LN 1.01, RMS 1.00 */

    {CLN_WORK_ADD, EITHER, 2, 16385, REREAD, 1024, 1, 4, KEPT, 0, 0, 0, 0},    /* 65536: 1.07 */
    {CLN_WORK_ADD, EITHER, 4, 49153, LOCAL, 1024, 1, 8, KEPT, 0, 12, 0, 0},    /* 65536: 1.09, reread 1.15 */
    {CLN_WORK_ADD, EITHER, 4, 16385, REREAD, 1024, 1, 8, KEPT, 0, 0, 0, 0},    /* 65536: 1.15 */
    {CLN_WORK_ADD, EITHER, 4, 8193, REGISTERS, 1024, 1, 1, EARLY, 0, 0, 0, 0}, /* 16384: 1.02 */
    {CLN_WORK_ADD, EITHER, 4, 4097, REGISTERS, 512, 1, 1, EARLY, 0, 0, 0, 0},  /* 8192: 1.04 */
    {CLN_WORK_ADD, EITHER, 4, 2049, REGISTERS, 256, 1, 1, EARLY, 0, 0, 0, 0},  /* 4096: 1.03 */

    {CLN_WORK_DROPOUT, EITHER, 2, 32769, LOCAL, 1024, 1, 1, LATE, 0, 0, 0, 0},      /* 65536: 1.23, reread 1.63 */
    {CLN_WORK_DROPOUT, EITHER, 2, 16385, REGISTERS, 1024, 1, 1, LATE, 64, 0, 0, 0}, /* 32768: 1.12 */
    {CLN_WORK_DROPOUT, EITHER, 2, 8193, REGISTERS, 512, 1, 1, LATE, 64, 0, 0, 0},   /* 16384: 1.03 */
    {CLN_WORK_DROPOUT, EITHER, 2, 4097, REGISTERS, 256, 1, 1, EARLY, 0, 0, 0, 0},   /* 8192: 1.04 */
    {CLN_WORK_DROPOUT, EITHER, 2, 2049, REGISTERS, 256, 1, 1, EARLY, 0, 0, 0, 0},   /* 4096: 1.02 */
    {CLN_WORK_DROPOUT, EITHER, 2, 1025, REGISTERS, 64, 1, 1, LATE, 0, 0, 0, 0},
    {CLN_WORK_DROPOUT, EITHER, 2, 513, REGISTERS, 32, 1, 1, LATE, 0, 0, 0, 0},    /* 1024: 1.03 */
    {CLN_WORK_DROPOUT, EITHER, 2, 129, REGISTERS, 16, 8, 1, LATE, 0, 0, 0, 0},    /* 256: 1.09 */
    {CLN_WORK_DROPOUT, EITHER, 4, 16385, REREAD, 1024, 1, 8, LATE, 0, 0, 0, 0},   /* 65536: 1.37 */
    {CLN_WORK_DROPOUT, EITHER, 4, 8193, REGISTERS, 1024, 1, 1, LATE, 0, 0, 0, 0}, /* 16384: 1.02 */
    {CLN_WORK_DROPOUT, EITHER, 4, 4097, REGISTERS, 512, 1, 1, LATE, 0, 0, 0, 0},  /* 8192: 1.02 */
    {CLN_WORK_DROPOUT, EITHER, 4, 2049, REGISTERS, 256, 1, 1, LATE, 0, 0, 0, 0},  /* 4096: 1.04 */

    {CLN_WORK_CHAIN, EITHER, 2, 32769, LOCAL, 1024, 1, 2, KEPT, 0, 6, 0, 0},      /* 65536: 1.28, reread 1.44 */
    {CLN_WORK_CHAIN, EITHER, 2, 16385, REGISTERS, 1024, 1, 1, LATE, 64, 0, 0, 0}, /* 32768: 1.10 */
    {CLN_WORK_CHAIN, EITHER, 2, 8193, REGISTERS, 512, 1, 1, LATE, 64, 0, 0, 0},   /* 16384: 1.03 */
    {CLN_WORK_CHAIN, EITHER, 2, 4097, REGISTERS, 256, 1, 1, LATE, 64, 0, 0, 0},   /* 8192: 1.03 */
    {CLN_WORK_CHAIN, EITHER, 2, 2049, REGISTERS, 128, 1, 1, EARLY, 0, 0, 0, 0},   /* 4096: 1.06 */
    {CLN_WORK_CHAIN, EITHER, 2, 1025, REGISTERS, 64, 1, 1, EARLY, 0, 0, 0, 0},
    {CLN_WORK_CHAIN, EITHER, 2, 513, REGISTERS, 32, 1, 1, EARLY, 0, 0, 0, 0},    /* 1024: 1.03 */
    {CLN_WORK_CHAIN, EITHER, 2, 129, REGISTERS, 16, 8, 1, LATE, 0, 0, 0, 0},     /* 256: 1.08 */
    {CLN_WORK_CHAIN, EITHER, 4, 24577, LOCAL, 1024, 1, 4, KEPT, 0, 12, 0, 0},    /* 65536: 1.10, reread 1.20; 32768: 1.08 */
    {CLN_WORK_CHAIN, EITHER, 4, 8193, REGISTERS, 1024, 1, 1, EARLY, 0, 0, 0, 0}, /* 16384, 20480: 1.04 */
    {CLN_WORK_CHAIN, EITHER, 4, 4097, REGISTERS, 256, 1, 1, LATE, 0, 0, 0, 0},   /* 8192: 1.04 */
    {CLN_WORK_CHAIN, EITHER, 4, 2049, REGISTERS, 128, 1, 1, LATE, 0, 0, 0, 0},   /* 4096: 1.04 */

    {CLN_WORK_QUANTIZED, EITHER, 2, 16385, REREAD, 1024, 1, 8, KEPT, 0, 0, 0, 0},   /* as without scales */
    {CLN_WORK_QUANTIZED, EITHER, 2, 8193, REGISTERS, 512, 1, 1, LATE, 0, 0, 0, 0},  /* 16384: 1.21 */
    {CLN_WORK_QUANTIZED, EITHER, 2, 4097, REGISTERS, 128, 1, 1, LATE, 0, 0, 0, 0},  /* 8192: 1.10 */
    {CLN_WORK_QUANTIZED, EITHER, 2, 2049, REGISTERS, 128, 1, 1, EARLY, 0, 0, 0, 0}, /* 4096: 1.16 */
    {CLN_WORK_QUANTIZED, EITHER, 2, 1025, REGISTERS, 64, 2, 1, EARLY, 0, 0, 0, 0},
    {CLN_WORK_QUANTIZED, EITHER, 2, 513, REGISTERS, 32, 4, 1, EARLY, 0, 0, 0, 0}, /* 1024: 1.17 */

    {CLN_WORK_SOFTMAX, EITHER, 2, 16385, REREAD, 512, 1, 4, 0, 0, 0, 0, 0},  /* 65536: 1.10 */
    {CLN_WORK_SOFTMAX, EITHER, 2, 8193, REREAD, 256, 1, 4, 0, 0, 0, 0, 0},   /* 16384: 1.01 */
    {CLN_WORK_SOFTMAX, EITHER, 2, 4097, REREAD, 128, 1, 4, 0, 0, 0, 0, 0},   /* 8192: 1.01 */
    {CLN_WORK_SOFTMAX, EITHER, 4, 16385, REREAD, 1024, 1, 4, 0, 0, 0, 0, 0}, /* 65536: 1.07 */
    {CLN_WORK_SOFTMAX, EITHER, 4, 8193, REREAD, 512, 1, 4, 0, 0, 0, 0, 0},   /* 16384: 1.00 */

    {CLN_WORK_SOFTMAX_BACKWARD, EITHER, 2, 16385, REREAD, 1024, 1, 2, 0, 0, 0, 0, 0},   /* 65536: 1.07 */
    {CLN_WORK_SOFTMAX_BACKWARD, EITHER, 2, 8193, REREAD, 512, 1, 2, 0, 0, 0, 0, 0},     /* 16384: 0.98 */
    {CLN_WORK_SOFTMAX_BACKWARD, EITHER, 4, 16385, REREAD, 1024, 1, 4, 0, 0, 0, 0, 0},   /* 65536: 1.39 */
    {CLN_WORK_SOFTMAX_BACKWARD, EITHER, 4, 8193, REGISTERS, 1024, 1, 1, 0, 0, 0, 0, 0}, /* 16384: 0.97 */
};

static bool take_row(enum cln_work as, const struct cln_workload *work, clnorm_config *config) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (row->work != as || (row->norm && row->norm != (int)work->norm) || row->x_size != work->x_size ||
            work->group_size < row->group_size)
            continue;
        config->keep = row->keep;
        config->lanes = row->lanes;
        config->segments = row->segments;
        config->unroll = row->unroll;
        config->weights = row->weights;
        config->registers = row->registers;
        config->shelved = row->shelved;
        if (!config->prefetch) {
            config->prefetch = row->prefetch;
            config->asked = row->asked;
        }
        return true;
    }
    return false;
}

bool cln_config_tuned(const struct cln_workload *work, clnorm_config *config) {
    if (take_row(work->work, work, config))
        return true;
    const bool exponentials = work->work >= CLN_WORK_SOFTMAX && work->x_size == 2; /* which cost more than registers do */
    return !exponentials && take_row(CLN_WORK_NORM, work, config);
}
