/* The common part of group norm's kernels: the places of tensors, and loads and stores of elements.
 *
 * A sample has CHANNELS of SPATIAL positions each. With LAYOUT_FIRST a channel is contiguous, and so is a group of
 * channels, a segment of GROUP_SIZE elements. With LAYOUT_LAST the channels of a position are contiguous.
 *
 * Macros (src/program/spec.h): GROUP_SIZE, GROUPS, CHANNELS, SPATIAL, LAYOUT, X_DTYPE, RESIDUAL_DTYPE, WEIGHT_DTYPE,
 * BIAS_DTYPE, Y_DTYPE, RESIDUAL_OUT_DTYPE, DY_DTYPE, DX_DTYPE, DWEIGHT_DTYPE, DBIAS_DTYPE, ACTIVATION, SAVE_MEAN,
 * SAVE_RSTD, CHUNKS, VEC, LANES, SEGMENTS, REDUCE, STORES, ISA, ELEMENT_ALIGNED. With an 8-bit x: X_SCALING and
 * X_SCALE_DTYPE. With an 8-bit y: SCALING, SCALE_DTYPE where its scale is measured, and MEASURES in the pass that measures.
 * With either: FP8_ISA. Where requested: DRESIDUAL_OUT_DTYPE, DRESIDUAL_DTYPE, ACCUMULATE. With few channels in the last
 * layout: ROW_POSITIONS. Where the moments of phases are merged: BLOCK. Where y's kernel makes statistics of moments:
 * MERGES. Where the work-groups of one launch exchange sums: ROW_SPLIT, and MOST_REGISTERS where they hold pieces. Where
 * registers hold a slice or a segment: SPAN, CHANNEL_LANES, PIECE_CHANNELS. In the backward: HAS_SUMS. */
#ifndef GROUP_NORM_H
#define GROUP_NORM_H

#include "common/arguments.h"
#include "common/lanes.h"
#include "common/segment.h"
#include "norm/activated.h"
#include "norm/group_norm_args.h"
#include "norm/partial.h"

#define IS_FIRST (LAYOUT == LAYOUT_FIRST)
#define CHANNELS_OF_GROUP (CHANNELS / GROUPS)

/* The elements of a row: the positions of a channel, or the channels of a position. Few channels would fill no vector:
 * there a row of the last layout is ROW_POSITIONS positions, a divisor of SPATIAL. */
#if IS_FIRST
#define ROW SPATIAL
#else
#define ROW (CHANNELS * ROW_POSITIONS)
#endif
#define ROW_VECTORS (ROW / VEC + (ROW % VEC != 0))

/* The elements of a vector: fewer than VEC at the end of a row. */
static inline ulong elements_of(const ulong vector) {
    return ROW % VEC == 0 || vector < ROW / VEC ? VEC : ROW % VEC;
}

/* Where a single lane takes a whole row that no number of vectors fills, the last vector ends with the row, and has
 * elements of the one before it too. */
#define OVERLAPS (LANES == 1 && ROW % VEC != 0 && ROW > VEC && (IS_FIRST || ROW_VECTORS <= MOST_HELD_VECTORS))

/* The vectors of a row before such a last one. */
#define VECTORS_APART (OVERLAPS ? ROW / VEC : ROW_VECTORS)

/* The place of a vector in a row, and its elements there. */
static inline ulong place_in_row(const ulong vector) {
    return OVERLAPS && vector == VECTORS_APART ? ROW - VEC : vector * VEC;
}

static inline ulong elements_in_row(const ulong vector) {
    return OVERLAPS ? VEC : elements_of(vector);
}

/* A channel's positions are divided into CHUNKS: by vectors with the first layout, by rows with the last. A chunk has CHUNK
 * of them; the last chunks may have fewer, or none. */
#define CHUNKED (IS_FIRST ? ROW_VECTORS : SPATIAL / ROW_POSITIONS)
#define CHUNK (CHUNKED / CHUNKS + (CHUNKED % CHUNKS != 0))

/* Whether all chunks have CHUNK of them, and whether all lanes and phases then have equally many vectors: compilers then
 * know the lengths of loops. */
#define EVEN_CHUNKS (CHUNKED % CHUNKS == 0 && (!IS_FIRST || SPATIAL % VEC == 0))
#define EVEN_SHARES (EVEN_CHUNKS && CHUNK % LANES == 0)
#define EVEN_PHASES (EVEN_CHUNKS && CHUNK % PHASES == 0)

static inline ulong chunk_begin(const ulong chunk) {
    return EVEN_CHUNKS ? chunk * CHUNK : min((ulong)CHUNKED, chunk * CHUNK);
}

/* First layout: the number of positions of a chunk. Last layout: of its rows. */
static inline ulong chunk_count(const ulong chunk) {
    const ulong step = IS_FIRST ? VEC : 1, all = IS_FIRST ? SPATIAL : CHUNKED;
    if (EVEN_CHUNKS)
        return CHUNK * step;
    return min(all, chunk_begin(chunk + 1) * step) - min(all, chunk_begin(chunk) * step);
}

#include "norm/group_norm_part.h"

/* -------------------------------------------------------------------------------------------------------- elements */

#define LOAD_WIDE(dtype, pointer, count, aligned) WIDEN(dtype)(LOAD_PART(dtype)(pointer, count, aligned, LOAD_PLAIN))

/* Loads the vector of a tensor whose first element is at a place of the sample. */
#define LOAD_OF(call, dtype, tensor, sample, place, count) \
    LOAD_PART(dtype)((call)->tensor + (sample) * (call)->tensor##_stride + (place), count, (call)->aligned, (call)->hint)
#define LOAD_DY(call, sample, place, count) WIDEN(DY_DTYPE)(LOAD_OF(call, DY_DTYPE, dy, sample, place, count))

/* The scale of an 8-bit x. */
#if IS_FP8(X_DTYPE)
#define X_SCALE_OF(call, sample) LOAD1(X_SCALE_DTYPE)((call)->x_scale + (X_SCALING == SCALING_ROW ? (sample) : 0))
#endif

/* The inputs of s, as loaded. The struct is never copied: rusticl 22.3 miscopies structs with padding. */
struct packed_s {
    PACKED(X_DTYPE) x;
#if PRESENT(RESIDUAL_DTYPE)
    PACKED(RESIDUAL_DTYPE) residual;
#endif
};

#if IS_FP8(X_DTYPE)
#define WIDEN_X(call, sample, packed) WIDEN(X_DTYPE)(packed) * X_SCALE_OF(call, sample)
#else
#define WIDEN_X(call, sample, packed) WIDEN(X_DTYPE)(packed)
#endif
#if PRESENT(RESIDUAL_DTYPE)
#define LOAD_RESIDUAL(call, sample, place, count) LOAD_OF(call, RESIDUAL_DTYPE, residual, sample, place, count)
#define LOAD_PACKED_S(to, call, sample, place, count) \
    ((to)->x = LOAD_OF(call, X_DTYPE, x, sample, place, count), (to)->residual = LOAD_RESIDUAL(call, sample, place, count))
#define S_OF(call, sample, packed) (WIDEN_X(call, sample, (packed)->x) + WIDEN(RESIDUAL_DTYPE)((packed)->residual))
#define LOAD_S(call, sample, place, count)                                    \
    (WIDEN_X(call, sample, LOAD_OF(call, X_DTYPE, x, sample, place, count)) + \
     WIDEN(RESIDUAL_DTYPE)(LOAD_RESIDUAL(call, sample, place, count)))
#else
#define LOAD_PACKED_S(to, call, sample, place, count) ((to)->x = LOAD_OF(call, X_DTYPE, x, sample, place, count))
#define S_OF(call, sample, packed) (WIDEN_X(call, sample, (packed)->x))
#define LOAD_S(call, sample, place, count) (WIDEN_X(call, sample, LOAD_OF(call, X_DTYPE, x, sample, place, count)))
#endif

/* Vectors that a lane loads before it uses the first one, which hides a GPU's memory latency: in general, and where it then
 * writes as many. bytes: of a vector's inputs. */
#if LANES == 1
#define AT_ONCE 1
#define COPIED_AT_ONCE(bytes) 1
#else
#define AT_ONCE 8
#define COPIED_AT_ONCE(bytes) ((bytes) > 16 ? 4 : 8)
#endif

/* Defines a function for a tensor with a number for each channel: the numbers of count neighbouring elements of a row. */
#define DEFINE_OF_CHANNELS(name, dtype)                                                                       \
    static inline realv name(const global STORAGE(dtype) * numbers, const ulong element, const ulong count) { \
        real own[VEC];                                                                                        \
        if (ROW_POSITIONS == 1)                                                                               \
            return LOAD_WIDE(dtype, numbers + element, count, false);                                         \
        for (uint i = 0; i < VEC; i++)                                                                        \
            own[i] = LOAD1(dtype)(numbers + channel_of_element(element + min((ulong)i, count - 1)));          \
        return VLOAD(own);                                                                                    \
    }

#if PRESENT(WEIGHT_DTYPE)
DEFINE_OF_CHANNELS(weights_of, WEIGHT_DTYPE)
#define WEIGHT_OF(call, channel) LOAD1(WEIGHT_DTYPE)((call)->weight + (channel))
#define WEIGHTS_OF(call, element, count) weights_of((call)->weight, element, count)
#else
#define WEIGHT_OF(call, channel) ((real)1)
#define WEIGHTS_OF(call, element, count) ((realv)1)
#endif
#if PRESENT(BIAS_DTYPE)
DEFINE_OF_CHANNELS(biases_of, BIAS_DTYPE)
#define BIAS_OF(call, channel) LOAD1(BIAS_DTYPE)((call)->bias + (channel))
#define BIASES_OF(call, element, count) biases_of((call)->bias, element, count)
#else
#define BIAS_OF(call, channel) ((real)0)
#define BIASES_OF(call, element, count) ((realv)0)
#endif

/* Defines a function for numbers in an address space: for count neighbouring elements of a row, the number of the group of
 * each one's channel. numbers: of group 0; stride: from one group's number to the next. */
#define DEFINE_OF_GROUPS(name, space)                                                                                      \
    static inline realv name(const space real *numbers, const ulong first, const ulong count, const ulong stride) {        \
        const ulong channel = channel_of_element(first), own = channel / CHANNELS_OF_GROUP;                                \
        real element[VEC];                                                                                                 \
        if (CHANNELS_OF_GROUP % VEC == 0)                                                                                  \
            return (realv)numbers[own * stride];                                                                           \
        if (CHANNELS_OF_GROUP > VEC) { /* two groups at most */                                                            \
            const real number = numbers[own * stride];                                                                     \
            const real other = numbers[channel_of_element(channel + count - 1) / CHANNELS_OF_GROUP * stride];              \
            const uint own_channels = (uint)(min((own + 1) * CHANNELS_OF_GROUP, channel + VEC) - channel);                 \
            for (uint i = 0; i < VEC; i++)                                                                                 \
                element[i] = i < own_channels ? number : other;                                                            \
        } else                                                                                                             \
            for (uint i = 0; i < VEC; i++)                                                                                 \
                element[i] = numbers[channel_of_element(channel + min((ulong)i, count - 1)) / CHANNELS_OF_GROUP * stride]; \
        return VLOAD(element);                                                                                             \
    }

DEFINE_OF_GROUPS(of_groups, global)

/* Those of a group. */
struct statistics {
    real mean, rstd;
};

static inline real rstd_of(const real squares, const real eps) {
    return (real)1 / sqrt(squares / (real)GROUP_SIZE + eps);
}

/* ---------------------------------------------------------------------------------------------------------- units */

/* The vectors of a row that a lane has with the last layout. A single lane takes all of them before those of the next row,
 * so that it reads long runs of memory. */
#define HELD_VECTORS (LANES == 1 ? MOST_HELD_VECTORS : 1)
#define BLOCK_VECTORS (LANES * HELD_VECTORS)
#define BLOCKS (ROW_VECTORS / BLOCK_VECTORS + (ROW_VECTORS % BLOCK_VECTORS != 0))

/* With LAYOUT_LAST the SEGMENTS of a work-group share a unit: each has a phase, and takes every PHASES-th row. */
#if !IS_FIRST && LANES > 1
#define PHASES SEGMENTS
#else
#define PHASES 1
#endif
#define BLOCK_ELEMENTS (LANES * VEC) /* of a unit with phases */
#define UNITS (SEGMENTS / PHASES)    /* of a work-group at a time */

/* The index of this work-item's unit among them. */
static inline uint own_unit(void) {
    return UNITS > 1 ? (uint)get_local_id(0) / LANES : 0;
}

/* A unit is a chunk of a channel, or of a block of vectors. LANES work-items take one at a time. */
struct unit {
    ulong sample, chunk;
    ulong channel; /* LAYOUT_FIRST */
    ulong vector;  /* LAYOUT_LAST: this lane's first vector; its next ones are LANES apart */
    uint lane, phase;
    bool active; /* false past the last unit */
};

static inline struct unit unit_of(const ulong index, const bool active) {
    struct unit unit = {0, 0, 0, 0, (uint)get_local_id(0) % LANES, (uint)get_local_id(0) / LANES % PHASES, active};
    if (IS_FIRST) {
        const ulong row = index / CHUNKS;
        unit.chunk = index % CHUNKS;
        unit.sample = row / CHANNELS;
        unit.channel = row % CHANNELS;
    } else {
        const ulong slice = index / BLOCKS;
        unit.vector = index % BLOCKS * BLOCK_VECTORS + unit.lane;
        unit.chunk = slice % CHUNKS;
        unit.sample = slice / CHUNKS;
    }
    return unit;
}

/* LAYOUT_FIRST: the group of a unit, counted over all samples. */
static inline ulong group_of(const struct unit *unit) {
    return unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP;
}

/* A work-group's first unit. In each of its iterations it takes UNITS of them. */
static inline ulong first_unit(const ulong iterations) {
    return get_group_id(0) * iterations * UNITS;
}

/* The unit of this work-item, of the UNITS that begin at an index; past the last unit, that one, not active. */
static inline struct unit unit_from(const ulong index, const ulong work) {
    const ulong own = index + own_unit();
    return UNITS == 1 ? unit_of(own, true) : unit_of(min(own, work - 1), own < work);
}

/* Likewise, from the last unit to the first, as a cache may still have those that were read last. */
static inline struct unit unit_backwards(const ulong index, const ulong work) {
    const ulong own = index + own_unit();
    return UNITS == 1 ? unit_of(work - 1 - own, true) : unit_of(work - 1 - min(own, work - 1), own < work);
}

/* LAYOUT_LAST: the vectors of a unit that this lane holds. */
#if !IS_FIRST
#define IS_THERE(j) (unit->vector + (j)*LANES < ROW_VECTORS)
#define IS_APART(j) (unit->vector + (j)*LANES < VECTORS_APART)
#define ELEMENT(j) place_in_row(unit->vector + (ulong)(j)*LANES)
#define COUNT(j) elements_in_row(unit->vector + (j)*LANES)
#endif

/* Last layout: the number of a phase's rows in a chunk. */
static inline ulong rows_of_phase(const ulong chunk, const uint phase) {
    const ulong first = chunk_begin(chunk) + phase, end = chunk_begin(chunk + 1);
    if (EVEN_PHASES)
        return CHUNK / PHASES;
    return first < end ? (end - first + PHASES - 1) / PHASES : 0;
}

/* LAYOUT_FIRST: a lane's vectors of a unit, LANES apart, and the elements of the unit that fill no vector. Several lanes
 * take aligned vectors: where VEC does not divide SPATIAL, a chunk begins anywhere within one, and has such elements before
 * its first whole vector too. */
struct share {
    ulong first; /* element of the sample */
    ulong vectors;
    ulong head_first, tail_first; /* elements of the sample */
    uint head, tail;              /* numbers of elements, fewer than VEC */
};

static inline struct share share_of(const struct unit *unit) {
    const ulong begin = unit->channel * SPATIAL + chunk_begin(unit->chunk) * VEC, count = chunk_count(unit->chunk);
#if SPATIAL % VEC == 0 || LANES == 1
    const ulong head = 0;
#else
    const ulong head = min(count, (VEC - begin % VEC) % VEC);
#endif
    const ulong whole = (count - head) / VEC, tail = count - head - whole * VEC;
    const ulong vectors = unit->lane < whole ? (whole - unit->lane + LANES - 1) / LANES : 0;
    const struct share share = {begin + head + unit->lane * VEC,
                                EVEN_SHARES ? CHUNK / LANES : vectors,
                                begin,
                                begin + count - tail,
                                (uint)head,
                                (uint)tail};
    return share;
}

/* Neighbouring elements that fill no vector: a single lane takes all of a tail at once, several lanes one each at a time,
 * RESTS times. count: 0 if the lane has none. */
struct rest {
    ulong first; /* element of the sample */
    uint count;
};

#define RESTS (SPATIAL % VEC == 0 ? 0 : LANES == 1 ? 1 : (2 * VEC + LANES - 1) / LANES)

static inline struct rest rest_of_share(const struct share *share, const struct unit *unit, const uint i) {
#if LANES == 1
    const struct rest rest = {share->tail_first, share->tail};
    (void)unit, (void)i;
#else
    const uint own = unit->lane + i * LANES; /* VEC of the head, VEC of the tail */
    const bool of_head = own < share->head, of_tail = own >= VEC && own - VEC < share->tail;
    const struct rest rest = {of_head ? share->head_first + own : share->tail_first + own - VEC, of_head || of_tail};
#endif
    return rest;
}

/* The elements of a rest that is there. */
#define REST_COUNT(rest) (LANES > 1 ? 1 : (rest).count)

/* A lane's vectors, which are step elements apart, each with count elements. */
struct course {
    ulong sample, first, step, count;
    index_t vectors;
};

#if IS_FIRST

/* The whole vectors of a unit. */
static inline struct course course_of_share(const struct unit *unit, const struct share *share) {
    const struct course course = {unit->sample, share->first, LANES * VEC, VEC, (index_t)share->vectors};
    return course;
}

#else

/* A vector of each of the phase's rows; none, if the lane has no vector. */
static inline struct course course_of_phase(const struct unit *unit) {
    const ulong row = chunk_begin(unit->chunk) + unit->phase, rows = rows_of_phase(unit->chunk, unit->phase);
    const struct course course = {unit->sample, row * ROW + ELEMENT(0), PHASES * (ulong)ROW, COUNT(0),
                                  unit->active && IS_THERE(0) ? (index_t)rows : 0};
    return course;
}

#endif

#endif
