/* Shared by all kernels of the backward norms: the tensors of a call, and the gradients at one vector. */
#ifndef NORM_BACKWARD_H
#define NORM_BACKWARD_H

#include "common/arguments.h"
#include "common/dtype.h"
#include "common/lanes.h"
#include "common/segment.h"
#include "norm/activated.h"
#include "norm/dropout.h"
#include "norm/gate.h"
#include "norm/norm_backward_args.h"
#include "norm/norm_x.h"
#include "norm/scale_of_segment.h"
#include "norm/weight_map.h"

/* A work-group takes TILE columns of each of SPAN groups: all columns of a segment, or one of the TILES into which it is
 * split. */
#define SPLIT (TILE < GROUP_SIZE)
#define TILES (SPLIT ? (REACH + TILE - 1) / TILE : 1)
#define TILE_VECTORS (SPLIT ? TILE / VEC : VECTORS)
#define TILE_HELD ((TILE_VECTORS + LANES - 1) / LANES) /* maximum vectors of a lane */

/* Whether there are sums over rows. Their dtype is that of the slots or, with ACCUMULATOR_COLUMNS, of the outputs. */
#define DWEIGHT PRESENT(DWEIGHT_DTYPE)
#define DBIAS PRESENT(DBIAS_DTYPE)

/* Whether an output depends on c1 and c2. */
#define NEEDS_MEANS (PRESENT(DX_DTYPE) || PRESENT(DRESIDUAL_DTYPE) || (GATE_FIRST && PRESENT(DZ_DTYPE)))

/* Whether s is computed from x and these, instead of being x itself. */
#define ADDS_RESIDUAL (PRESENT(RESIDUAL_DTYPE) && !S_GIVEN)
#define SCALES_X ((DROPOUT || ROW_SCALE) && !S_GIVEN)

/* The arguments of a launch. */
struct call {
    MEMBERS(NORM_BACKWARD_ARGS)
    ulong rows;
    real poison;  /* with Y_GIVEN added to every dy: 0, or NaN if x̂ cannot be recovered from y */
    bool aligned; /* wide accesses at their own size's alignment */
};

#if ROPE
#include "norm/norm_rope.h"
#endif

static inline struct dice dice_of(const struct call *call) {
    const struct dice dice = {call->seed, call->seed_offset, (uint)call->threshold};
    return dice;
}

/* Where a row begins in each tensor with outer dimensions: the members of a struct, and their initialisers. */
/* clang-format off */
#define ROW_START_MEMBERS                                                                                   \
    START_MEMBER(x) START_MEMBER(dy) START_MEMBER(z) START_MEMBER(residual) START_MEMBER(dresidual_out)     \
    START_MEMBER(dx) START_MEMBER(dz) START_MEMBER(y) START_MEMBER(dresidual)
#define ROW_STARTS(row)                                                                                     \
    START(x, row) START(dy, row) START(z, row) START(residual, row) START(dresidual_out, row)               \
    START(dx, row) START(dz, row) START(y, row) START(dresidual, row)
/* clang-format on */

/* One segment of one row. */
struct row {
    ulong index;
    ulong group;
    ROW_START_MEMBERS
    real mean; /* 0 where it is not read */
    real rstd;
    uint lead;
    bool active; /* false past the share's last row, and without a segment: barriers alone are kept */
};

/* The address of a tensor's first element in a row's segment. */
#define SEGMENT_OF(tensor, row) (call->tensor + START_OF(tensor, row, (row)->index) + (row)->group * GROUP_SIZE)

static inline ulong statistic_of(const struct call *call, const struct row *row) {
    return row->group * call->rows + row->index;
}

static inline uint lead_of_row(const struct call *call, const ulong index, const ulong group) {
    return lead_of(ROW_OFFSET(x, index) + group * GROUP_SIZE);
}

static inline struct row row_at(const struct call *call, const ulong index, const bool active, const ulong group) {
    struct row row = {index, group ROW_STARTS(index), 0, 0, lead_of_row(call, index, group), SEGMENTS == 1 || active};
    if (READS_MEAN && row.active)
        row.mean = call->mean[statistic_of(call, &row)];
    if (row.active)
        row.rstd = rstd_of_saved(call->rstd[statistic_of(call, &row)]);
    return row;
}

/* ------------------------------------------------------------------------------------------------ at one vector */

#if ROPE

/* dy before the forward's rotation. */
#define DY_AT realv
#define WIDE_DY(dy) (dy)

/* A lane also reads the other vector of a pair, which may be another lane's. Therefore dx may not overlap dy. */
static inline realv dy_before_rotation(const struct call *call, const struct row *row, const index_t v,
                                       const enum load_hint hint) {
    const global STORAGE(DY_DTYPE) *const dy = SEGMENT_OF(dy, row);
    const realv own = WIDEN(DY_DTYPE)(LOAD_VECTOR(DY_DTYPE)(dy, v, row->lead, call->aligned, hint));
    if (v >= ROTATED)
        return own;
    struct angles angles;
    find_angles(call, row->index, &angles);
#if PAIRS_OF_VECTORS
    const index_t pair = ROPE == ROPE_NEOX ? v % PAIRS : v / 2;
    const bool first = v == first_of_pair(pair);
    const index_t beside = first ? second_of_pair(pair) : first_of_pair(pair);
    const realv other = WIDEN(DY_DTYPE)(LOAD_VECTOR(DY_DTYPE)(dy, beside, row->lead, call->aligned, hint));
    return rotated(call, &angles, pair, own, other, first, TURN_BACK);
#else
    return rotated(call, &angles, v, own, TURN_BACK);
#endif
}

#else

#define DY_AT PACKED(DY_DTYPE)
#define WIDE_DY(dy) WIDEN(DY_DTYPE)(dy)

#endif

/* Whether dresidual_out, which is read for the outputs alone, is loaded with the other inputs and held. */
#define HOLDS_DRESIDUAL_OUT (PRESENT(DRESIDUAL_OUT_DTYPE) && KEEP == KEEP_REGISTERS)

/* The inputs of a vector, as loaded. The widest come first: rusticl 22.3 miscopies structs with padding between members. */
struct inputs {
#if HOLDS_DRESIDUAL_OUT && IS_REAL(DRESIDUAL_OUT_DTYPE)
    PACKED(DRESIDUAL_OUT_DTYPE) dresidual_out;
#endif
#if GATE && IS_REAL(Z_DTYPE)
    PACKED(Z_DTYPE) z;
#endif
#if ADDS_RESIDUAL && IS_REAL(RESIDUAL_DTYPE)
    PACKED(RESIDUAL_DTYPE) residual;
#endif
#if IS_REAL(X_DTYPE)
    struct x_vector x;
    DY_AT dy;
#else
    DY_AT dy;
    struct x_vector x;
#endif
#if GATE && !IS_REAL(Z_DTYPE)
    PACKED(Z_DTYPE) z;
#endif
#if ADDS_RESIDUAL && !IS_REAL(RESIDUAL_DTYPE)
    PACKED(RESIDUAL_DTYPE) residual;
#endif
#if HOLDS_DRESIDUAL_OUT && !IS_REAL(DRESIDUAL_OUT_DTYPE)
    PACKED(DRESIDUAL_OUT_DTYPE) dresidual_out;
#endif
#if DROPOUT
    uint kept; /* a bit for each element */
#endif
};

static inline struct inputs load_inputs(const struct call *call, const struct row *row, const index_t v,
                                        const enum load_hint hint) {
    struct inputs in;
    load_x(SEGMENT_OF(x, row), call->x_scale, row->index, row->group * GROUP_SIZE, v, row->lead, call->aligned, hint,
           &in.x);
#if ROPE
    in.dy = dy_before_rotation(call, row, v, hint);
#else
    in.dy = LOAD_VECTOR(DY_DTYPE)(SEGMENT_OF(dy, row), v, row->lead, call->aligned, hint);
#endif
#if GATE
    in.z = LOAD_VECTOR(Z_DTYPE)(SEGMENT_OF(z, row), v, row->lead, call->aligned, hint);
#endif
#if ADDS_RESIDUAL
    in.residual = LOAD_VECTOR(RESIDUAL_DTYPE)(SEGMENT_OF(residual, row), v, row->lead, call->aligned, hint);
#endif
#if DROPOUT
    const struct dice dice = dice_of(call);
    in.kept = kept_at(&dice, row->index, row->group * GROUP_SIZE + (ulong)place_of_vector(v, row->lead));
#endif
    return in;
}

static inline struct inputs no_inputs(void) {
    struct inputs in;
    no_x(&in.x);
    in.dy = (DY_AT)0;
#if GATE
    in.z = (PACKED(Z_DTYPE))0;
#endif
#if ADDS_RESIDUAL
    in.residual = (PACKED(RESIDUAL_DTYPE))0;
#endif
#if HOLDS_DRESIDUAL_OUT
    in.dresidual_out = (PACKED(DRESIDUAL_OUT_DTYPE))0;
#endif
#if DROPOUT
    in.kept = 0;
#endif
    return in;
}

/* Whether struct scale has the bias: with an activation, whose slope depends on it, and with Y_GIVEN, as y includes it. */
#define HOLDS_BIAS (PRESENT(BIAS_DTYPE) && (ACTIVATION || Y_GIVEN))

/* Whether an output depends on the norm's result, and whether the bias is read for these outputs alone. */
#define NEEDS_N (PRESENT(DZ_DTYPE) && !GATE_FIRST || PRESENT(Y_DTYPE))
#define NEEDS_BIAS (NEEDS_N && PRESENT(BIAS_DTYPE) && !HOLDS_BIAS)

/* The weights of one vector, as loaded. */
struct scale {
#if PRESENT(WEIGHT_DTYPE)
    PACKED(WEIGHT_DTYPE) weight;
#endif
#if HOLDS_BIAS
    PACKED(BIAS_DTYPE) bias;
#endif
    char unused; /* a struct has a member */
};

/* weight, bias: of the segment's first element. */
static inline struct scale load_scale(const global STORAGE(WEIGHT_DTYPE) * weight, const global STORAGE(BIAS_DTYPE) * bias,
                                      const index_t v, const uint lead, const bool aligned, const enum load_hint hint) {
    struct scale scale;
    scale.unused = 0;
#if PRESENT(WEIGHT_DTYPE)
    scale.weight = LOAD_COLUMNS(WEIGHT_DTYPE)(weight, v, lead, aligned, hint);
#endif
#if HOLDS_BIAS
    scale.bias = LOAD_COLUMNS(BIAS_DTYPE)(bias, v, lead, aligned, hint);
#endif
    (void)weight, (void)bias, (void)v, (void)lead, (void)aligned, (void)hint;
    return scale;
}

static inline struct scale no_scale(void) {
    struct scale scale;
    scale.unused = 0;
#if PRESENT(WEIGHT_DTYPE)
    scale.weight = (PACKED(WEIGHT_DTYPE))0;
#endif
#if HOLDS_BIAS
    scale.bias = (PACKED(BIAS_DTYPE))0;
#endif
    return scale;
}

/* What a vector is multiplied by. */
static inline realv factor_of(const struct scale scale, const real offset) {
    (void)scale, (void)offset;
#if PRESENT(WEIGHT_DTYPE) && WEIGHT_OFFSET
    return offset + WIDEN(WEIGHT_DTYPE)(scale.weight);
#elif PRESENT(WEIGHT_DTYPE)
    return WIDEN(WEIGHT_DTYPE)(scale.weight);
#else
    return 1;
#endif
}

/* Functions without contraction make products that are added to other numbers in several places. A compiler would fuse a
 * product with the sum in some places. These would be others in the kernel for unaligned tensors, so that results would
 * depend on where tensors lie. */
static inline realv scaled(const realv v, const struct scale scale, const real offset) {
#pragma OPENCL FP_CONTRACT OFF
    return v * factor_of(scale, offset);
}

/* scaled(v, scale, offset) + more. */
static inline realv scaled_plus(const realv v, const struct scale scale, const real offset, const realv more) {
#if ISA == ISA_PTX && PRESENT(WEIGHT_DTYPE)
    return fma(v, factor_of(scale, offset), more);
#else
    return scaled(v, scale, offset) + more;
#endif
}

/* x̂, and the gradient of n = x̂ · weight + bias. */
struct point {
    realv x_hat;
    realv dn;
};

/* Dropout and row_scale, which apply to x on the way to s, and to its gradient on the way back. */
static inline realv branch(const struct call *call, const struct row *row, const struct inputs *in, realv v) {
#if DROPOUT
    v = only_kept(v * call->kept_scale, in->kept);
#endif
#if ROW_SCALE
    v *= row->active ? call->row_scale[row->index] : (real)0;
#endif
    (void)call, (void)row, (void)in;
    return v;
}

static inline realv s_of(const struct call *call, const struct row *row, const struct inputs *in) {
    realv s = widen_x(&in->x);
#if SCALES_X
    s = branch(call, row, in, s);
#endif
#if ADDS_RESIDUAL
    s += WIDEN(RESIDUAL_DTYPE)(in->residual);
#endif
#if GATE && GATE_FIRST
    s *= gate_factor(WIDEN(Z_DTYPE)(in->z));
#endif
    (void)call, (void)row;
    return s;
}

#if Y_GIVEN
/* A weight of 0 occurs only past the last column: norm_backward_check has counted the others, and poison makes dy NaN. */
static inline realv x_hat_of(const realv y, const struct scale scale, const real offset) {
    const realv w = scaled((realv)1, scale, offset);
#if HOLDS_BIAS
    const realv product = y - WIDEN(BIAS_DTYPE)(scale.bias);
#else
    const realv product = y;
#endif
#if VEC == 1
    return product / (w == 0 ? 1 : w);
#else
    return product / select(w, (realv)1, w == (realv)0);
#endif
}
#endif

static inline struct point point_at(const struct call *call, const struct row *row, const struct inputs *in,
                                    const struct scale scale) {
#pragma OPENCL FP_CONTRACT OFF
    const realv s = s_of(call, row, in);
#if Y_GIVEN
    struct point point = {x_hat_of(s, scale, call->weight_offset), WIDE_DY(in->dy) + call->poison};
#else
    struct point point = {(NORM == LAYER_NORM ? s - row->mean : s) * row->rstd, WIDE_DY(in->dy)};
#endif
#if GATE && !GATE_FIRST
    point.dn *= gate_factor(WIDEN(Z_DTYPE)(in->z));
#endif
#if ACTIVATION
    realv n = scaled(point.x_hat, scale, call->weight_offset);
#if HOLDS_BIAS
    n += WIDEN(BIAS_DTYPE)(scale.bias);
#endif
    point.dn *= activation_slope(n);
#else
    (void)scale;
#endif
    return point;
}

#endif
