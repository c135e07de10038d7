/* Codes of x by scales that are known, and their transpose: a tile a work-group of LANES work-items.
 *
 * Macros (src/spec.h): X_DTYPE, Q_DTYPE, SCALE_DTYPE (none: the scale is an argument), SCALING, GROUP_SIZE, GROUPS,
 * STOCHASTIC, WRITE_Q, TRANSPOSED, AMAX, TILE_ROWS, TILE_COLS, ROW_VEC, VEC, LANES, SEGMENTS (1), REDUCE, STORES, ISA,
 * FP8_ISA, ELEMENT_ALIGNED. */

#include "quantize_call.h"

#define WHOLE (SCALING == SCALING_TENSOR && PRESENT(SCALE_DTYPE)) /* one scale for all, which is no argument */
#if WHOLE
#include "whole_scale.h"
#endif

/* Columns have nothing in common. */
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
    return LOAD_SCALE(SCALE_DTYPE)(call->scale + row);
#elif SCALING == SCALING_GROUP
    return LOAD_SCALE(SCALE_DTYPE)(call->scale + row * GROUPS + column / GROUP_SIZE);
#else
    return call->given;
#endif
}

static inline struct taken take(const struct call *call, const ulong row, const ulong column) {
    return (struct taken){load_x(call, row, column, LOAD_LAST), scale_at_place(call, row, column)};
}

static inline BYTES codes_of(const struct call *call, const struct columns *columns, const struct taken *taken,
                             const ulong row, const ulong column) {
    (void)columns;
    return quantized(call, row, column, WIDEN(X_DTYPE)(taken->x), taken->scale);
}

#include "tile.h"

#define PARAMETERS                                                                                                         \
    const global STORAGE(X_DTYPE) * x, const ulong x_at, global STORAGE(SCALE_DTYPE) * scale, const ulong scale_at,        \
        global uchar *q, const ulong q_at, global uchar *q_t, const ulong q_t_at, global float *amax, const ulong amax_at, \
        const global float *magnitudes, const ulong magnitudes_at, const ulong work, const ulong rows, const ulong cols,   \
        const ulong x_stride, const ulong q_stride, const ulong q_t_stride, const ulong seed, const float given,           \
        const ulong count

#if WHOLE
#define SCRATCH_SIZE WHOLE_SCRATCH
#define WHOLE_SCALE \
    whole_scale((struct whole){scale + scale_at, amax + amax_at, magnitudes + magnitudes_at, count}, scratch)
#else
#define SCRATCH_SIZE 1
#define WHOLE_SCALE given
#endif

#define CALL(aligned)                                                                                                      \
    {                                                                                                                      \
        x + x_at, q + q_at, q_t + q_t_at, scale + scale_at, WHOLE_SCALE, rows, cols, x_stride, q_stride, q_t_stride, seed, \
            aligned                                                                                                        \
    }

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void quantize_tile(PARAMETERS) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[SCRATCH_SIZE];
    (void)scratch;
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct call call = CALL(!ELEMENT_ALIGNED);
    put_tile(&call, work, (local uchar *)tile);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void quantize_tile_any(PARAMETERS) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[SCRATCH_SIZE];
    (void)scratch;
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct call call = CALL(false);
    put_tile(&call, work, (local uchar *)tile);
}
#endif
