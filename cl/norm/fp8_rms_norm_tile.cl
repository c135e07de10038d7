/* The second pass of RMS norm on an 8-bit x: y from x again, quantised, and its transpose. Each work-group of LANES
 * work-items writes a tile.
 *
 * Macros (src/program/spec.h): X_DTYPE, X_SCALE_DTYPE, WEIGHT_DTYPE, Q_DTYPE (of y), SCALE_DTYPE, GROUP_SIZE, COMPATIBLE,
 * WRITE_Q, TRANSPOSED, TILE_ROWS, TILE_COLS, ROW_VEC, VEC, LANES, SEGMENTS (1), REDUCE, AMAX (0), STORES, ISA, FP8_ISA,
 * ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "norm/fp8_rms_norm_args.h"
#include "quantize/whole_scale.h"

struct call {
    MEMBERS(FP8_RMS_NORM_TILE_ARGS)
    float y_scale, inverse; /* 1 / y_scale */
    bool aligned;           /* wide accesses at their own size's alignment */
};

#include "norm/fp8_rms_norm.h"

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

static inline struct taken take(const struct call *call, const ulong row, const ulong column, const bool whole) {
    (void)whole;
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

#if WRITE_Q
static inline void put(const struct call *call, const ulong row, const ulong column, const BYTES codes, const bool whole) {
    (void)whole;
    store_bytes(call->q + row * call->q_stride + column, codes, call->aligned);
}
#endif

#include "quantize/tile.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void fp8_rms_norm_tile(PARAMETERS(FP8_RMS_NORM_TILE_ARGS)) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[WHOLE_SCRATCH];
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const float y_scale = whole_scale((struct whole){ARGUMENTS(WHOLE_SCALE_ARGS)}, scratch);
    const struct call call = {ARGUMENTS(FP8_RMS_NORM_TILE_ARGS), .y_scale = y_scale, .inverse = divide1(1, y_scale),
                              .aligned = !ELEMENT_ALIGNED};
    put_tile(&call, (local uchar *)tile);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
fp8_rms_norm_tile_unaligned(PARAMETERS(FP8_RMS_NORM_TILE_ARGS)) {
    local tile_unit tile[TILE_UNITS];
    local float scratch[WHOLE_SCRATCH];
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const float y_scale = whole_scale((struct whole){ARGUMENTS(WHOLE_SCALE_ARGS)}, scratch);
    const struct call call = {ARGUMENTS(FP8_RMS_NORM_TILE_ARGS), .y_scale = y_scale, .inverse = divide1(1, y_scale),
                              .aligned = false};
    put_tile(&call, (local uchar *)tile);
}
#endif
