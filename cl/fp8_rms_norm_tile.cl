/* The second pass of RMS norm on 8-bit x: y from x again, quantised, and its transpose; a tile a work-group of LANES
 * work-items.
 *
 * Macros (src/spec.h): X_DTYPE, X_SCALE_DTYPE, WEIGHT_DTYPE, Q_DTYPE (of y), SCALE_DTYPE, GROUP_SIZE, COMPATIBLE, WRITE_Q,
 * TRANSPOSED, TILE_ROWS, TILE_COLS, ROW_VEC, VEC, LANES, SEGMENTS (1), REDUCE, AMAX (0), STORES, ISA, FP8_ISA,
 * ELEMENT_ALIGNED. */

#include "whole_scale.h"

#include "fp8_rms_norm.h"

struct columns {
    floatv weight;
};

struct taken {
    BYTES x;
    float x_scale, rstd;
};

static inline struct columns columns_at(const struct call *call, const ulong column) {
    return (struct columns){weight_at(call, column)};
}

static inline struct taken take(const struct call *call, const ulong row, const ulong column) {
    return (struct taken){load_codes(call, row, column, LOAD_PLAIN), scale_of_x(call, row, column), call->rstd[row]};
}

static inline BYTES codes_of(const struct call *call, const struct columns *columns, const struct taken *taken,
                             const ulong row, const ulong column) {
    (void)row, (void)column;
    const floatv x = WIDEN(X_DTYPE)(taken->x);
#if COMPATIBLE
    const floatv y = y_step_by_step(x, taken->x_scale, taken->rstd, columns->weight);
    return DIVIDED(Q_DTYPE)(widen_bf16(narrow_bf16(y)), call->y_scale);
#else
    const float factor = taken->x_scale * taken->rstd * call->inverse;
    return NARROW(Q_DTYPE)(weighted(x * factor, columns->weight));
#endif
}

#include "tile.h"

#define PARAMETERS                                                                                                         \
    const global uchar *x, const ulong x_at, const global STORAGE(X_SCALE_DTYPE) * x_scale, const ulong x_scale_at,        \
        const global STORAGE(WEIGHT_DTYPE) * weight, const ulong weight_at, const global float *rstd, const ulong rstd_at, \
        global STORAGE(SCALE_DTYPE) * y_scale, const ulong y_scale_at, global uchar *y, const ulong y_at,                  \
        global uchar *y_t, const ulong y_t_at, const global float *magnitudes, const ulong magnitudes_at,                  \
        const ulong work, const ulong rows, const ulong cols, const ulong x_stride, const ulong y_stride,                  \
        const ulong y_t_stride, const ulong count

#define CALL(aligned)                                                                                                     \
    {                                                                                                                     \
        x + x_at, x_scale + x_scale_at, weight + weight_at, rstd + rstd_at, y + y_at, y_t + y_t_at, rows, cols, x_stride, \
            y_stride, y_t_stride, scale, divide1(1, scale), aligned                                                       \
    }

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void fp8_rms_norm_tile(PARAMETERS) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[WHOLE_SCRATCH];
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct whole whole = {y_scale + y_scale_at, 0, magnitudes + magnitudes_at, count};
    const float scale = whole_scale(whole, scratch);
    const struct call call = CALL(!ELEMENT_ALIGNED);
    put_tile(&call, work, (local uchar *)tile);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void fp8_rms_norm_tile_any(PARAMETERS) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[WHOLE_SCRATCH];
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const struct whole whole = {y_scale + y_scale_at, 0, magnitudes + magnitudes_at, count};
    const float scale = whole_scale(whole, scratch);
    const struct call call = CALL(false);
    put_tile(&call, work, (local uchar *)tile);
}
#endif
