/* Transposes codes. Each work-group of LANES work-items writes a tile.
 *
 * Macros (src/program/spec.h): X_DTYPE (the codes'), WRITE_Q (0), TRANSPOSED (1), TILE_ROWS, TILE_COLS, ROW_VEC, VEC,
 * LANES, SEGMENTS (1), REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "common/fp8.h"
#include "quantize/transpose_args.h"

struct call {
    MEMBERS(TRANSPOSE_ARGS)
    global uchar *q; /* unused: a member that tile.h names */
    ulong q_stride;
    bool aligned; /* wide accesses at their own size's alignment */
};

struct columns {
    char unused; /* a struct has a member */
};

struct taken {
    BYTES codes;
};

static inline struct columns columns_at(const struct call *call, const ulong column) {
    (void)call, (void)column;
    return (struct columns){0};
}

static inline struct taken take(const struct call *call, const ulong row, const ulong column, const bool whole) {
    (void)whole;
    return (struct taken){load_bytes(call->codes + row * call->codes_stride + column, call->aligned, LOAD_LAST)};
}

static inline BYTES codes_of(const struct call *call, const struct columns *columns, const struct taken *taken,
                             const ulong row, const ulong column) {
    (void)call, (void)columns, (void)row, (void)column;
    return taken->codes;
}

#include "quantize/tile.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void transpose(PARAMETERS(TRANSPOSE_ARGS)) {
    local tile_unit tile[TILE_UNITS];
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct call call = {ARGUMENTS(TRANSPOSE_ARGS), .aligned = !ELEMENT_ALIGNED};
    put_tile(&call, (local uchar *)tile);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void transpose_unaligned(PARAMETERS(TRANSPOSE_ARGS)) {
    local tile_unit tile[TILE_UNITS];
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct call call = {ARGUMENTS(TRANSPOSE_ARGS), .aligned = false};
    put_tile(&call, (local uchar *)tile);
}
#endif
