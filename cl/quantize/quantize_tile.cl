/* Codes of x by given or measured scales, and their transpose. Each work-group of LANES work-items writes a tile.
 *
 * Macros (src/program/spec.h): X_DTYPE, Q_DTYPE, SCALE_DTYPE (none: the scale is an argument), SCALING, GROUP_SIZE, GROUPS,
 * STOCHASTIC, WRITE_Q, TRANSPOSED, AMAX, TILE_ROWS, TILE_COLS, ROW_VEC, VEC, LANES, SEGMENTS (1), REDUCE, STORES, ISA,
 * FP8_ISA, ELEMENT_ALIGNED; perhaps LEADS and TAILS. */

#include "common/arguments.h"
#include "quantize/quantize.h"
#include "quantize/quantize_args.h"

struct call {
    MEMBERS(QUANTIZE_TILE_ARGS)
    float whole_scale;
    bool aligned; /* wide accesses at their own size's alignment */
};

#include "quantize/quantize_call.h"

#define WHOLE (SCALING == SCALING_TENSOR && PRESENT(SCALE_DTYPE)) /* one scale, which is measured */
#if WHOLE
#include "quantize/whole_scale.h"
#endif

/* Rows of a vector's columns share no values. */
struct columns {
    char unused; /* a struct has a member */
};

struct taken {
    PACKED(X_DTYPE) x;
    float scale;
};

static inline struct columns columns_at(const struct call *call, const ulong column) {
    (void)call, (void)column;
    return (struct columns){0};
}

static inline float scale_at_place(const struct call *call, const ulong row, const ulong column) {
#if SCALING == SCALING_ROW
    return LOAD1(SCALE_DTYPE)(call->scale + row);
#elif SCALING == SCALING_GROUP
    return LOAD1(SCALE_DTYPE)(call->scale + row * GROUPS + column / GROUP_SIZE);
#else
    return call->whole_scale;
#endif
}

static inline struct taken take(const struct call *call, const ulong row, const ulong column, const bool whole) {
    return (struct taken){whole ? load_whole(call, row, column, LOAD_LAST) : load_x(call, row, column, LOAD_LAST),
                          scale_at_place(call, row, column)};
}

static inline BYTES codes_of(const struct call *call, const struct columns *columns, const struct taken *taken,
                             const ulong row, const ulong column) {
    (void)columns;
    return quantized(call, row, column, WIDEN(X_DTYPE)(taken->x), taken->scale);
}

#include "quantize/tile.h"

#if WHOLE
#define SCRATCH_SIZE WHOLE_SCRATCH
#define WHOLE_SCALE whole_scale((struct whole){ARGUMENTS(WHOLE_SCALE_ARGS)}, scratch)
#else
#define SCRATCH_SIZE 1
#define WHOLE_SCALE given
#endif

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void quantize_tile(PARAMETERS(QUANTIZE_TILE_ARGS)) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[SCRATCH_SIZE];
    (void)scratch;
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct call call = {ARGUMENTS(QUANTIZE_TILE_ARGS), .whole_scale = WHOLE_SCALE, .aligned = !ELEMENT_ALIGNED};
    put_tile(&call, (local uchar *)tile);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void quantize_tile_unaligned(PARAMETERS(QUANTIZE_TILE_ARGS)) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[SCRATCH_SIZE];
    (void)scratch;
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct call call = {ARGUMENTS(QUANTIZE_TILE_ARGS), .whole_scale = WHOLE_SCALE, .aligned = false};
    put_tile(&call, (local uchar *)tile);
}
#endif
