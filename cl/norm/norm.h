/* Shared by all kernels that normalise a segment: the tensors of a call, the input s, statistics, the output. */
#ifndef NORM_H
#define NORM_H

#include "common/arguments.h"
#include "common/dtype.h"
#include "common/lanes.h"
#include "common/segment.h"
#include "norm/activated.h"
#include "norm/dropout.h"
#include "norm/gate.h"
#include "norm/norm_forward_args.h"
#include "norm/norm_x.h"
#include "norm/scale_of_segment.h"
#include "norm/weight_map.h"

#if IS_FP8(Y_DTYPE)
#include "quantize/quantize.h"
#endif

/* Whether y's scales are measured for rows or groups, in one pass. A measured scale for all of y takes two passes: the one
 * with MEASURES writes the largest |y| of each work-group instead of y, and the other reads the scale made from them. */
#define MEASURED (IS_FP8(Y_DTYPE) && SCALING != SCALING_TENSOR)

/* Whether a gate's z is read where y is made. */
#define GATES_Y (GATE && !GATE_FIRST)

/* Whether the loads beside x take long: weights that are not aligned with x (LEADS) take several loads each, and no cache
 * has z. */
#define WAITS_FOR_AFFINES (!ON_CPU && (LEADS || (GATES_Y && WEIGHTS_AT_ONCE < 4)))

/* The number of vectors whose weights, and z, are loaded before any of their outputs is stored. With a bias, four vectors
 * would take so many registers that fewer work-groups run at once. */
#define AFFINES_AT_ONCE (WAITS_FOR_AFFINES ? (PRESENT(BIAS_DTYPE) ? 2 : 4) : WEIGHTS_AT_ONCE)

/* The arguments of a launch. */
struct call {
    MEMBERS(NORM_FORWARD_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#if ROPE
#include "norm/norm_rope.h"
#endif

/* One segment: addresses of its first element. */
struct segment {
    const global STORAGE(X_DTYPE) * x;
    const global STORAGE(X_SCALE_DTYPE) * x_scale; /* of all of x */
    const global STORAGE(WEIGHT_DTYPE) * weight;
    const global STORAGE(BIAS_DTYPE) * bias;
    const global STORAGE(Z_DTYPE) * z;
    global STORAGE(Y_DTYPE) * y;
    const global STORAGE(RESIDUAL_DTYPE) * residual;
    global STORAGE(RESIDUAL_OUT_DTYPE) * residual_out;
    ulong row, column; /* of its first element */
    uint lead;
    real factor;     /* of x, where dropout keeps it */
    ulong statistic; /* index of its statistics */
    index_t chunk;   /* of the segment's CHUNKS, that of this work-group */
    uint lane;       /* of this work-item */
    bool active;     /* false past the last segment: nothing is read or written, but barriers are kept */
};

struct statistics {
    real mean; /* 0 for RMS norm */
    real rstd;
};

static inline struct segment segment_at(const struct call *call, const ulong index, const index_t chunk) {
    const ulong row = index / GROUPS;
    const ulong group = index % GROUPS;
    const ulong first = group * GROUP_SIZE;
    const bool active = SEGMENTS == 1 || index < call->work;
    const struct segment segment = {call->x + ROW_OFFSET(x, row) + first,
                                    call->x_scale,
                                    WEIGHTS_OF(weight, row) + first,
                                    WEIGHTS_OF(bias, row) + first,
                                    call->z + ROW_OFFSET(z, row) + first,
                                    call->y + ROW_OFFSET(y, row) + first,
                                    call->residual + ROW_OFFSET(residual, row) + first,
                                    call->residual_out + ROW_OFFSET(residual_out, row) + first,
                                    row,
                                    first,
                                    lead_of(ROW_OFFSET(x, row) + first),
                                    (DROPOUT ? call->kept_scale : (real)1) *
                                        (ROW_SCALE && active ? call->row_scale[row] : (real)1),
                                    group * call->rows + row,
                                    chunk,
                                    (uint)get_local_id(0) % LANES,
                                    active};
    return segment;
}

/* Whether this lane has an i-th vector. */
static inline bool has_vector(const struct segment *segment, const index_t i) {
    return segment->active && (EVEN ? i < HELD : is_vector(segment->lane + i * LANES, segment->lead));
}

static inline struct dice dice_of(const struct call *call) {
    const struct dice dice = {call->seed, call->seed_offset, (uint)call->threshold};
    return dice;
}

/* Which elements of x in vector v dropout keeps, in the form of a comparison of vectors. */
static inline intv kept_in(const struct call *call, const struct segment *segment, const index_t v) {
#if DROPOUT
    const struct dice dice = dice_of(call);
    return kept_lanes(&dice, segment->row, segment->column + (ulong)place_of_vector(v, segment->lead));
#else
    (void)call, (void)segment, (void)v;
    return 0;
#endif
}

/* The same for a lane's vectors v, v + LANES, …, count of them. */
static inline void kept_in_block(const struct call *call, const struct segment *segment, const index_t v, const uint count,
                                 intv *kept) {
    uint i = 0;
#if DROPOUT && DRAWS_AT_ONCE && LANES == 1
    const struct dice dice = dice_of(call);
#pragma unroll
    for (; i + AT_ONCE <= count; i += AT_ONCE)
        kept_lanes_at_once(&dice, segment->row, segment->column + (v + i) * VEC, &kept[i]);
#endif
#pragma unroll
    for (; i < count; i++)
        kept[i] = kept_in(call, segment, v + i * LANES);
}

/* The inputs of one vector of s, as loaded. Like struct affine it is never copied. */
struct parts {
    struct x_vector x;
#if GATE && GATE_FIRST
    PACKED(Z_DTYPE) z;
#endif
#if PRESENT(RESIDUAL_DTYPE)
    PACKED(RESIDUAL_DTYPE) residual;
#endif
};

static inline void load_parts(const struct segment *segment, const index_t v, const bool aligned, const enum load_hint hint,
                              struct parts *parts) {
    load_x(segment->x, segment->x_scale, segment->row, segment->column, v, segment->lead, aligned, hint, &parts->x);
#if GATE && GATE_FIRST
    parts->z = LOAD_VECTOR(Z_DTYPE)(segment->z, v, segment->lead, aligned, hint);
#endif
#if PRESENT(RESIDUAL_DTYPE)
    parts->residual = LOAD_VECTOR(RESIDUAL_DTYPE)(segment->residual, v, segment->lead, aligned, hint);
#endif
}

/* The parts of a vector past the end. */
static inline void no_parts(struct parts *parts) {
    no_x(&parts->x);
#if GATE && GATE_FIRST
    parts->z = (PACKED(Z_DTYPE))0;
#endif
#if PRESENT(RESIDUAL_DTYPE)
    parts->residual = (PACKED(RESIDUAL_DTYPE))0;
#endif
}

/* s as a lane holds it: x as loaded, x with zeros where dropout drops it, or s itself, computed from its inputs. */
#if PRESENT(RESIDUAL_DTYPE) || ROW_SCALE || DROPOUT && !LOCAL_VECTORS || GATE && GATE_FIRST || IS_FP8(X_DTYPE)

typedef realv held_t;

static inline held_t s_of(const struct segment *segment, const struct parts *parts, const intv kept) {
    realv s = widen_x(&parts->x);
#if GATE && GATE_FIRST
    s *= gate_factor(WIDEN(Z_DTYPE)(parts->z));
#endif
#if DROPOUT || ROW_SCALE
    s *= segment->factor;
#endif
#if DROPOUT
    s = only_lanes(s, kept);
#endif
#if PRESENT(RESIDUAL_DTYPE)
    s += WIDEN(RESIDUAL_DTYPE)(parts->residual);
#endif
    (void)segment, (void)kept;
    return s;
}

static inline realv widen_s(const struct segment *segment, const held_t held) {
    (void)segment;
    return held;
}

#else

typedef PACKED(X_DTYPE) held_t;

static inline held_t s_of(const struct segment *segment, const struct parts *parts, const intv kept) {
    (void)segment, (void)kept;
#if DROPOUT
    return ONLY(X_DTYPE)(parts->x.packed, kept);
#else
    return parts->x.packed;
#endif
}

static inline realv widen_s(const struct segment *segment, const held_t held) {
    (void)segment;
#if DROPOUT
    return WIDEN(X_DTYPE)(held) * segment->factor;
#else
    return WIDEN(X_DTYPE)(held);
#endif
}

#endif

/* The inputs of one vector of y besides s, as loaded. It is never copied: rusticl 22.3 miscopies structs with padding. */
struct affine {
#if PRESENT(WEIGHT_DTYPE)
    PACKED(WEIGHT_DTYPE) weight;
#endif
#if PRESENT(BIAS_DTYPE)
    PACKED(BIAS_DTYPE) bias;
#endif
#if GATES_Y
    PACKED(Z_DTYPE) z;
#endif
    char unused; /* a struct has a member */
};

static inline void load_affine(const struct segment *segment, const index_t v, const bool aligned,
                               const enum load_hint hint, struct affine *affine) {
    (void)affine;
#if PRESENT(WEIGHT_DTYPE)
    affine->weight = LOAD_COLUMNS(WEIGHT_DTYPE)(segment->weight, v, segment->lead, aligned, hint);
#endif
#if PRESENT(BIAS_DTYPE)
    affine->bias = LOAD_COLUMNS(BIAS_DTYPE)(segment->bias, v, segment->lead, aligned, hint);
#endif
#if GATES_Y
    /* z belongs to one row, unlike weights: caches need not keep it */
    affine->z = LOAD_VECTOR(Z_DTYPE)(segment->z, v, segment->lead, aligned, hint == LOAD_IN_TURN ? hint : LOAD_PLAIN);
#endif
}

static inline void put_mask(const struct call *call, const struct segment *segment, const index_t v) {
    const uint kept = bits_of_lanes(kept_in(call, segment, v));
    global uchar *mask = call->dropout_mask + segment->row * (GROUPS * (ulong)GROUP_SIZE) + segment->column +
                         place_of_vector(v, segment->lead);
    const struct part part = own_part(v, segment->lead);
    for (uint i = part.from; i < part.to; i++)
        mask[i] = kept >> i & 1;
}

/* Writes the outputs of one vector besides y. */
static inline void put_beside(const struct call *call, const struct segment *segment, const index_t v, const realv s) {
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_VECTOR(RESIDUAL_OUT_DTYPE)(segment->residual_out, v, segment->lead, s, call->aligned);
#endif
    if (SAVE_MASK)
        put_mask(call, segment, v);
    (void)s;
}

static inline realv y_of(const struct call *call, const realv s, const struct affine *affine,
                         const struct statistics statistics) {
#if NORM == LAYER_NORM
    realv y = (s - statistics.mean) * statistics.rstd;
#else
    realv y = s * statistics.rstd;
#endif
#if PRESENT(WEIGHT_DTYPE) && WEIGHT_OFFSET
    y *= call->weight_offset + WIDEN(WEIGHT_DTYPE)(affine->weight);
#elif PRESENT(WEIGHT_DTYPE)
    y *= WIDEN(WEIGHT_DTYPE)(affine->weight);
#endif
#if PRESENT(BIAS_DTYPE)
    y += WIDEN(BIAS_DTYPE)(affine->bias);
#endif
    y = activated(y);
#if GATES_Y
    y *= gate_factor(WIDEN(Z_DTYPE)(affine->z));
#endif
    return y;
}

/* The scale of an 8-bit y that has one for the whole tensor. */
static inline float tensor_scale(const struct call *call) {
#if Y_SCALES && !MEASURED
    return LOAD1(SCALE_DTYPE)(call->y_scale);
#else
    return call->y_given;
#endif
}

#if IS_FP8(Y_DTYPE)
DEFINE_STORE_ELEMENTS(store_part_of_y, Y_DTYPE)

static inline void put_codes(const struct call *call, const struct segment *segment, const index_t v, const realv y,
                             const float scale) {
    const BYTES codes = DIVIDED(Y_DTYPE)(COMPATIBLE ? widen_bf16(narrow_bf16(y)) : y, scale);
    global uchar *const to = segment->y + place_of_vector(v, segment->lead);
    if (is_whole(v, segment->lead))
        store_bytes(to, codes, call->aligned);
    else
        store_part_of_y(to, codes, own_part(v, segment->lead));
}
#endif

/* Writes one vector of y. scale: of an 8-bit y. */
static inline void put_y(const struct call *call, const struct segment *segment, const index_t v, const realv y,
                         const float scale) {
#if IS_FP8(Y_DTYPE)
    put_codes(call, segment, v, y, scale);
#elif PRESENT(Y_DTYPE)
    STORE_VECTOR(Y_DTYPE)(segment->y, v, segment->lead, y, call->aligned);
#endif
    (void)scale;
}

#if ROPE && PAIRS_OF_VECTORS
/* Rotates the two vectors of a pair, and writes them. */
static inline void put_pair(const struct call *call, const struct segment *segment, const index_t pair, const realv first,
                            const realv second, const float scale) {
    struct angles angles;
    find_angles(call, segment->row, &angles);
    put_y(call, segment, first_of_pair(pair), rotated(call, &angles, pair, first, second, true, TURN_FORWARD), scale);
    put_y(call, segment, second_of_pair(pair), rotated(call, &angles, pair, second, first, false, TURN_FORWARD), scale);
}
#endif

/* Writes the vector of y that belongs to s. scale: of an 8-bit y. */
static inline void put_vector(const struct call *call, const struct segment *segment, const index_t v, const realv s,
                              const struct affine *affine, const struct statistics statistics, const float scale) {
    const realv y = y_of(call, s, affine, statistics);
#if ROPE && !PAIRS_OF_VECTORS
    struct angles angles;
    find_angles(call, segment->row, &angles);
    put_y(call, segment, v, v < ROTATED ? rotated(call, &angles, v, y, TURN_FORWARD) : y, scale);
#else
    put_y(call, segment, v, y, scale);
#endif
}

static inline void save_statistics(const struct call *call, const struct segment *segment,
                                   const struct statistics statistics) {
    if (segment->lane != 0 || !segment->active)
        return;
#if SAVE_MEAN
    call->mean[segment->statistic] = statistics.mean;
#endif
#if SAVE_RSTD
    call->rstd[segment->statistic] = saved_of(statistics.rstd, call->eps);
#endif
}

#endif
