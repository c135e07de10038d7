/* Statistics and y of a slice, or of a chunk of it, that work-items hold in registers. The including file defines a struct
 * call with the members of GROUP_NORM_READ, GROUP_NORM_AFFINE and GROUP_NORM_WRITE, mean, rstd and eps. */
#ifndef GROUP_NORM_SLICE_Y_H
#define GROUP_NORM_SLICE_Y_H

#include "norm/group_norm_slice.h"
#include "norm/group_norm_y.h"

#define SHARES (LANES / SPAN < 32 ? LANES / SPAN : 32) /* shares of a group's sum */

/* The local memory of a segment. */
struct board {
    local real *space;  /* [LANES, VEC] */
    local real *shares; /* [LANES], the first ones as [SHARES, SPAN] */
    local real *totals; /* [SPAN] */
    local real *means;  /* [SPAN] */
};

/* This segment's part of the arrays of a work-group. */
static inline struct board board_of(local real *space, local real *shares, local real *totals, local real *means) {
    const uint segment = own_segment();
    const struct board board = {space + segment * LANES * VEC, shares + segment * LANES, totals + segment * SPAN,
                                means + segment * SPAN};
    return board;
}

/* ------------------------------------------------------------------------------------------------------ statistics */

/* A lane's sums for groups: one, where its vector is of one group, or one for each element. COLUMNS of a slice. Lanes that
 * hold a whole slice have the latter, as no registers are left. */
#if CHANNELS_OF_GROUP % VEC == 0 && CHUNKS > 1
#define OF_VECTOR 1
#else
#define OF_VECTOR VEC
#endif
#define COLUMNS_OF_GROUP (CHANNELS_OF_GROUP / (VEC / OF_VECTOR))
#define COLUMNS (SPAN * COLUMNS_OF_GROUP)

static inline void store_sums(local real *space, const realv sum) {
#if OF_VECTOR == 1
    *space = sum_elements(sum);
#else
    VSTORE(sum, space);
#endif
}

/* Adds up numbers of [STEP, COLUMNS]: their sums are those of the first PARTS steps. Every work-item calls it, with equally
 * many rounds: PoCL 3.1 computes wrong sums where the lengths of loops differ. */
#define PARTS (LANES > COLUMNS ? LANES / COLUMNS < STEP ? LANES / COLUMNS : STEP : 1)

INLINED void sum_steps(local real *numbers, const struct place *place) {
    for (uint first = 0; first < PARTS * COLUMNS; first += LANES) {
        const uint i = first + place->lane;
        if (i >= PARTS * COLUMNS)
            continue;
        real sum = numbers[i];
        for (uint k = i + PARTS * COLUMNS; k < STEP * COLUMNS; k += PARTS * COLUMNS)
            sum += numbers[k];
        numbers[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* totals: for each group, the sum over all lanes. Every work-item calls this function and the next ones, too. Lanes past
 * the last share store zeros, as PoCL 3.1 may let them take the branch of those before. */
INLINED void sum_groups(const struct place *place, const realv sum, const struct board *board) {
    const uint group = place->lane % SPAN, share = place->lane / SPAN;
    if (place->active)
        store_sums(board->space + place->lane * OF_VECTOR, sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (PARTS < STEP)
        sum_steps(board->space, place);
    real part = 0;
    for (uint first = 0; first < PARTS * COLUMNS_OF_GROUP; first += SHARES) {
        const uint i = first + share;
        if (share < SHARES && i < PARTS * COLUMNS_OF_GROUP)
            part += board->space[i / COLUMNS_OF_GROUP * COLUMNS + group * COLUMNS_OF_GROUP + i % COLUMNS_OF_GROUP];
    }
    board->shares[place->lane] = part;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place->lane < SPAN) {
        real total = 0;
        for (uint i = 0; i < SHARES; i++)
            total += board->shares[i * SPAN + place->lane];
        board->totals[place->lane] = total;
    }
}

/* The elements of a group in so many positions, 1 at least. */
static inline real elements_of_group(const ulong positions) {
    return (real)(max(positions, (ulong)1) * CHANNELS_OF_GROUP);
}

/* means: the first element of each group, or 0 without positions. Deviations from it have a finite sum where large numbers
 * have none. */
#if CHUNKS == 1

INLINED void start_means(const struct call *call, const struct place *place, const struct packed_s *held,
                         const struct board *board) {
    (void)held;
    if (place->lane < SPAN) {
        const ulong first = place->channel + (ulong)place->lane * CHANNELS_OF_GROUP;
        board->means[place->lane] = first_element(LOAD_S(call, place->sample, first, 1));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

#else

INLINED void start_means(const struct call *call, const struct place *place, const struct packed_s *held,
                         const struct board *board) {
    const realv s = HOLDS(0) ? S_OF(call, place->sample, &held[0]) : 0;
    real element[VEC];
    VSTORE(s, element);
    if (place->active && place->phase == 0 && place->positions > 0)
        for (uint i = 0; i < VEC; i++)
            if ((place->vector * VEC + i) % CHANNELS_OF_GROUP == 0)
                board->means[(place->vector * VEC + i) / CHANNELS_OF_GROUP] = element[i];
    if (place->positions == 0 && place->lane < SPAN)
        board->means[place->lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
}

#endif

/* A lane's sums of s − origin and of (s − mean)². */
INLINED realv sum_of_held(const struct call *call, const struct place *place, const struct packed_s *held,
                          const realv origin) {
    realv sum = 0;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            sum += S_OF(call, place->sample, &held[k]) - origin;
    return sum;
}

INLINED realv squares_of_held(const struct call *call, const struct place *place, const struct packed_s *held,
                              const realv mean) {
    realv squares = 0;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k)) {
            const realv deviation = S_OF(call, place->sample, &held[k]) - mean;
            squares += deviation * deviation;
        }
    return squares;
}

/* means: of the place's groups; totals: their sums of squared deviations. */
INLINED void take_statistics(const struct call *call, const struct place *place, const struct packed_s *held,
                             const struct board *board) {
    start_means(call, place, held, board);
    const realv origin = of_lane(board->means, place);
    sum_groups(place, sum_of_held(call, place, held, origin), board);
    if (place->lane < SPAN)
        board->means[place->lane] += board->totals[place->lane] / elements_of_group(place->positions);
    barrier(CLK_LOCAL_MEM_FENCE);
    const realv mean = of_lane(board->means, place);
    sum_groups(place, squares_of_held(call, place, held, mean), board);
}

/* Turns totals into rstd, and writes the requested statistics if this segment does. The caller has a barrier behind it. */
INLINED void put_statistics(const struct call *call, const struct place *place, const bool puts,
                            const struct board *board) {
    if (place->lane < SPAN) {
        const real rstd = rstd_of(board->totals[place->lane], call->eps);
        board->totals[place->lane] = rstd;
    }
#if SAVE_MEAN || SAVE_RSTD
    if (puts && place->lane < SPAN) {
        const ulong at = place->sample * GROUPS + place->channel / CHANNELS_OF_GROUP + place->lane;
#if SAVE_MEAN
        call->mean[at] = board->means[place->lane];
#endif
#if SAVE_RSTD
        call->rstd[at] = board->totals[place->lane];
#endif
    }
#endif
    (void)puts;
}

/* --------------------------------------------------------------------------------------------------------------- y */

/* The numbers that turn s of a lane's channels into n. */
struct affine {
    realv mean, scale, bias;
};

static inline struct affine affine_of(const struct call *call, const struct place *place, const struct board *board) {
    const ulong channel = place->channel + place->vector * VEC;
    const struct affine affine = {of_lane(board->means, place),
                                  of_lane(board->totals, place) * WEIGHTS_OF(call, channel, VEC),
                                  BIASES_OF(call, channel, VEC)};
    return affine;
}

static inline void write_vector(const struct call *call, const ulong sample, const ulong at, const struct affine *affine,
                                const realv s, struct output *output) {
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_PART(RESIDUAL_OUT_DTYPE)(call->residual_out + sample * call->residual_out_stride + at, s, VEC, call->aligned);
#endif
    PUT_Y(call, sample, at, activated((s - affine->mean) * affine->scale + affine->bias), VEC, output);
    (void)at;
}

INLINED void write_slice(const struct call *call, const struct place *place, const struct packed_s *held,
                         const struct board *board, struct output *output) {
    if (!place->active || !place->writes)
        return;
    const struct affine affine = affine_of(call, place, board);
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            write_vector(call, place->sample, element_of(place, k), &affine, S_OF(call, place->sample, &held[k]), output);
}

#define SLICE_MEMORY                          \
    local real space[SEGMENTS * LANES * VEC]; \
    local real shares[SEGMENTS * LANES];      \
    local real totals[SEGMENTS * SPAN];       \
    local real means[SEGMENTS * SPAN];        \
    const struct board board = board_of(space, shares, totals, means);

#endif
