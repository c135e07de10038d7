#include "arithmetic.h"
#include "config.h"

/* What measurements on NVIDIA GPUs (H200) say. Beside each row: the time over that of a copy of the least traffic, for
 * layer norm and, behind a semicolon, for RMS norm. The first row that matches is taken.
 *
 * Rows are asked for beforehand (NEXT) where that was faster by more than runs differ: 4096 x 65536 took 1.27 rather than
 * 1.52 (gated, 2 bytes), 1.06 rather than 1.13 (4 bytes), as registers have no room for more rows that are under way. What
 * is asked for has to fit the L2 cache beside what is being written, and else is gone when it is due: gated rows of 8192
 * columns in 4 bytes took 1.22 rather than 1.09; and so it was where rstd, mean and the gradient of residual_out were asked
 * for as well. */
/* GATED: or with a residual; BOTH_SUMS: dweight and dbias, not gated; OF_8_BITS: x; FEW: rows, and sums over them. */
enum kind_of_work { ANY, GATED, BOTH_SUMS, OF_8_BITS, FEW };
enum {
    BEFORE = CLNORM_SUMS_BEFORE,
    EXCHANGED = CLNORM_SUMS_EXCHANGED,
    REGISTERS = CLNORM_KEEP_REGISTERS,
    REREAD = CLNORM_KEEP_REREAD,
    IN_REGISTERS = CLNORM_GATHER_REGISTERS,
    IN_LOCAL = CLNORM_GATHER_LOCAL,
    SPLIT = CLNORM_GATHER_SPLIT,
    BY_COLUMNS = CLNORM_GATHER_COLUMNS,
    IN_TURN = CLNORM_FETCH_IN_TURN,
    AHEAD = CLNORM_FETCH_AHEAD,
    FAR = CLNORM_FETCH_FAR,
    LATE = CLNORM_WEIGHTS_LATE,
    EARLY = CLNORM_WEIGHTS_EARLY,
    NONE = CLNORM_PREFETCH_NONE,
    NEXT = CLNORM_PREFETCH_NEXT
};
static const struct tuned {
    uint64_t x_size; /* bytes of an element */
    enum kind_of_work kind;
    uint64_t group_size; /* from here on, down from the row before */
    uint32_t lanes, segments;
    uint32_t tile; /* 0: group_size */
    int sums;      /* exchanged: only where rows keep the device busy with a team each */
    int keep, gather, fetch, weights;
    uint32_t rounds; /* of neighbouring rows; 0: all rows that a work-group has are neighbours */
    int prefetch;
} tuned[] = {
    /* Microseconds, and those with slots. A work-group has the lanes for a row that it has with many rows. */
    {2, FEW, 16385, 128, 1, 1024, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE}, /* 16x65536: 15.0, 31.1 */
    {2, FEW, 4097, 512, 1, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, LATE, 0, NONE},      /* 64x8192: 7.4, 14.6 */
    {2, FEW, 2049, 256, 1, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE},     /* 64x4096: 5.2, 10.9 */
    {2, FEW, 513, 64, 4, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE},       /* 64x1024: 5.8, 9.9 */
    {2, FEW, 129, 16, 16, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE},      /* 64x256: 4.9, 10.3 */
    {4, FEW, 16385, 128, 1, 1024, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE},
    {4, FEW, 4097, 512, 1, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, LATE, 0, NONE},
    {4, FEW, 2049, 256, 1, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE}, /* 64x4096: 6.0, 11.6 */
    {4, FEW, 513, 128, 2, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE},
    {4, FEW, 129, 32, 8, 0, BEFORE, REGISTERS, BY_COLUMNS, IN_TURN, EARLY, 0, NONE},
    /* More tiles than a team may have. */
    {2, ANY, 131073, 256, 1, 4096, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},      /* 65536: 1.78; 1.88 */
    {2, GATED, 16385, 512, 1, 8192, EXCHANGED, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 4, NEXT},    /* 65536: ; 1.27 */
    {2, BOTH_SUMS, 16385, 512, 1, 8192, EXCHANGED, REGISTERS, SPLIT, FAR, EARLY, 4, NEXT},         /* 65536: 1.29 */
    {2, ANY, 16385, 512, 1, 16384, EXCHANGED, REGISTERS, IN_REGISTERS, AHEAD, LATE, 0, NEXT},      /* 65536: ; 1.12 */
    {2, ANY, 16385, 256, 1, 4096, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},       /* few rows */
    {2, GATED, 8193, 256, 1, 4096, EXCHANGED, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NEXT},   /* 16384: ; 1.19 */
    {2, GATED, 8193, 512, 1, 0, BEFORE, REREAD, IN_REGISTERS, IN_TURN, LATE, 1, NONE},             /* 16384: ; 1.30 */
    {2, BOTH_SUMS, 8193, 256, 1, 4096, EXCHANGED, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 4, NEXT}, /* 16384: 1.25 */
    {2, BOTH_SUMS, 8193, 512, 1, 0, BEFORE, REGISTERS, SPLIT, IN_TURN, LATE, 1, NONE},             /* 16384: 1.40 */
    {2, OF_8_BITS, 8193, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, LATE, 1, NEXT},      /* 16384: ; 1.10 */
    {2, ANY, 8193, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, LATE, 1, NONE},            /* 16384: ; 1.10 */
    {2, OF_8_BITS, 8192, 1024, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 0, NONE},      /* 8192: ; 1.18 */
    {2, GATED, 4097, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 2, NEXT},         /* 8192: ; 1.04 */
    {2, ANY, 4097, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 2, NONE},             /* 8192: 1.10; 1.08 */
    {2, GATED, 2049, 256, 2, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NEXT},         /* 4096: ; 1.10 */
    {2, BOTH_SUMS, 2049, 256, 2, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 1, NONE},       /* 4096: 1.14 */
    {2, ANY, 2049, 256, 2, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 1, NEXT},             /* 4096: ; 1.09 */
    {2, GATED, 513, 64, 8, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},           /* 1024: ; 1.13 */
    {2, ANY, 513, 64, 8, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 2, NEXT},               /* 1024: 1.23; 1.18 */
    {2, GATED, 129, 16, 16, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 2, NEXT},            /* 256: ; 1.33 */
    {2, ANY, 129, 16, 32, 0, BEFORE, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 1, NONE},              /* 256: 1.47; 1.42 */
    {4, ANY, 131073, 256, 1, 2048, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},      /* 65536: 1.74; 1.76 */
    {4, GATED, 65537, 256, 1, 2048, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},     /* 65536: ; 1.74 */
    {4, GATED, 8193, 512, 1, 4096, EXCHANGED, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 2, NEXT},     /* 16384: ; 1.08 */
    {4, BOTH_SUMS, 16385, 512, 1, 8192, EXCHANGED, REGISTERS, SPLIT, AHEAD, EARLY, 1, NEXT},       /* 65536: 1.06 */
    {4, BOTH_SUMS, 8193, 512, 1, 8192, EXCHANGED, REGISTERS, SPLIT, AHEAD, EARLY, 1, NONE},        /* 16384: 1.08 */
    {4, ANY, 16385, 512, 1, 8192, EXCHANGED, REGISTERS, IN_REGISTERS, AHEAD, EARLY, 1, NEXT},      /* 65536: ; 1.09 */
    {4, ANY, 16385, 256, 1, 2048, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},       /* few rows */
    {4, GATED, 8193, 512, 1, 0, BEFORE, REREAD, IN_REGISTERS, IN_TURN, LATE, 1, NONE},             /* 16384: ; 1.39 */
    {4, BOTH_SUMS, 8193, 512, 1, 0, BEFORE, REGISTERS, IN_LOCAL, IN_TURN, LATE, 1, NONE},          /* 16384: 1.11 */
    {4, ANY, 8193, 1024, 1, 0, BEFORE, REGISTERS, IN_LOCAL, IN_TURN, LATE, 1, NONE},               /* 16384: ; 1.05 */
    {4, BOTH_SUMS, 4097, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NEXT},     /* 8192: 1.02 */
    {4, ANY, 4097, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},           /* 8192: ; 1.04 */
    {4, GATED, 2049, 512, 1, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NEXT},         /* 4096: ; 1.01 */
    {4, BOTH_SUMS, 2049, 256, 2, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NEXT},     /* 4096: 1.06 */
    {4, ANY, 2049, 256, 2, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},           /* 4096: ; 1.06 */
    {4, GATED, 513, 128, 4, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},          /* 1024: ; 1.06 */
    {4, ANY, 513, 128, 8, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},            /* 1024: 1.09; 1.08 */
    {4, GATED, 129, 32, 16, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},          /* 256: ; 1.16 */
    {4, ANY, 129, 32, 32, 0, BEFORE, REGISTERS, IN_REGISTERS, IN_TURN, EARLY, 1, NONE},            /* 256: 1.28; 1.26 */
};

bool cln_config_can_exchange(const clnorm_device_info *device, uint64_t tiles) {
    enum { MOST_TILES = 16, LAUNCHES_AT_ONCE = 8 /* that cannot take up the device with incomplete teams */ };
    return tiles == 1 || (device->family == CLNORM_PLATFORM_NVIDIA && tiles <= MOST_TILES &&
                          tiles * LAUNCHES_AT_ONCE <= device->compute_units);
}

/* Teams that the device has room for, and enough rows for a team each to keep it busy. */
static bool suits(const clnorm_device_info *device, const struct tuned *row, const struct cln_workload *work) {
    if (row->sums == CLNORM_SUMS_BEFORE)
        return true;
    const uint64_t tiles = cln_divide_up(work->group_size, row->tile);
    return cln_config_can_exchange(device, tiles) &&
           work->rows >= cln_divide_up(device->compute_units, tiles * work->groups);
}

/* Whether to read twice costs less than to write slots, wait, and add them up: 1024 rows of 4096 columns in 2 bytes take
 * 17.1 microseconds rather than 18.8, twice as many 30 rather than 26. work->gated: 512 rows 14.9 rather than 17.4. */
static bool has_few_rows(const struct cln_workload *work) {
    const uint64_t most = work->gated ? 4 << 20 : 8 << 20; /* bytes of x */
    return work->sums_rows && !work->locked && work->rows <= 2048 &&
           work->rows * work->groups * work->group_size <= most / work->x_size;
}

static bool matches(const struct tuned *row, const struct cln_workload *work) {
    return row->x_size == work->x_size && work->group_size >= row->group_size &&
           (row->kind == ANY || (row->kind == GATED && work->gated) || (row->kind == OF_8_BITS && work->of_8_bits) ||
            (row->kind == BOTH_SUMS && work->both_sums && !work->gated) || (row->kind == FEW && has_few_rows(work)));
}

bool cln_config_backward_tuned(const clnorm_device_info *device, const struct cln_workload *work, clnorm_config *c) {
    const bool forced = c->vec || c->lanes || c->segments || c->tile || c->keep || c->gather || c->fetch || c->weights ||
                        c->chunks || c->sums;
    const uint64_t vec = 16 / work->x_size;
    if (device->family != CLNORM_PLATFORM_NVIDIA || forced || work->alignment % vec || device->max_work_group_size < 1024 ||
        device->local_memory < (160 << 10))
        return false;
    for (size_t i = 0; i < sizeof tuned / sizeof tuned[0]; i++) {
        const struct tuned *row = &tuned[i];
        if (!matches(row, work) || !suits(device, row, work))
            continue;
        c->vec = (uint32_t)vec;
        c->lanes = row->lanes;
        c->segments = row->segments;
        c->tile = row->tile ? row->tile : (uint32_t)work->group_size;
        c->sums = (uint32_t)row->sums;
        c->keep = (uint32_t)row->keep;
        c->gather = (uint32_t)row->gather;
        c->fetch = (uint32_t)row->fetch;
        c->weights = (uint32_t)row->weights;
        if (!c->prefetch)
            c->prefetch = c->isa == CLNORM_ISA_PTX ? (uint32_t)row->prefetch : CLNORM_PREFETCH_NONE;
        if (!c->rounds)
            c->rounds = row->rounds;
        return true;
    }
    return false;
}
