/* Group norm with channels last, where a work-group reads its slices once and holds them in registers. See
 * clnorm_group_norm_desc for the formulas, and cl/norm/group_norm.h. */

#include "norm/group_norm_slice.h"
#include "norm/group_norm_y.h"

/* The arguments of a launch. work: slices. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

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

/* Adds up numbers of [STEP, SLICE_CHANNELS]: their sums are those of the first PARTS steps. Every work-item calls it,
 * with equally many rounds: PoCL 3.1 computes wrong sums where the lengths of loops differ. */
#define PARTS (LANES > SLICE_CHANNELS ? LANES / SLICE_CHANNELS : 1)

INLINED void sum_steps(local real *numbers, const struct place *place) {
    for (uint first = 0; first < PARTS * SLICE_CHANNELS; first += LANES) {
        const uint i = first + place->lane;
        if (i >= PARTS * SLICE_CHANNELS)
            continue;
        real sum = numbers[i];
        for (uint k = i + PARTS * SLICE_CHANNELS; k < STEP * SLICE_CHANNELS; k += PARTS * SLICE_CHANNELS)
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
        VSTORE(sum, (board->space + place->lane * VEC));
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_steps(board->space, place);
    real part = 0;
    for (uint first = 0; first < PARTS * CHANNELS_OF_GROUP; first += SHARES) {
        const uint i = first + share;
        if (share < SHARES && i < PARTS * CHANNELS_OF_GROUP)
            part +=
                board->space[i / CHANNELS_OF_GROUP * SLICE_CHANNELS + group * CHANNELS_OF_GROUP + i % CHANNELS_OF_GROUP];
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

/* means: the first element of each group. Deviations from it have a finite sum where large numbers have none. */
INLINED void start_means(const struct call *call, const struct place *place, const struct board *board) {
    if (place->lane < SPAN) {
        const ulong first = place->channel + (ulong)place->lane * CHANNELS_OF_GROUP;
        board->means[place->lane] = first_element(LOAD_S(call, place->sample, first, 1));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* means: of the groups; totals: their sums of squared deviations. */
INLINED void take_statistics(const struct call *call, const struct place *place, const struct packed_s *held,
                             const struct board *board) {
    start_means(call, place, board);
    const realv origin = of_lane(board->means, place);
    realv sum = 0;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            sum += S_OF(call, place->sample, &held[k]) - origin;
    sum_groups(place, sum, board);
    if (place->lane < SPAN)
        board->means[place->lane] += board->totals[place->lane] / (real)GROUP_SIZE;
    barrier(CLK_LOCAL_MEM_FENCE);
    const realv mean = of_lane(board->means, place);
    realv squares = 0;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k)) {
            const realv deviation = S_OF(call, place->sample, &held[k]) - mean;
            squares += deviation * deviation;
        }
    sum_groups(place, squares, board);
}

/* Turns totals into rstd, and writes the requested statistics. */
INLINED void put_statistics(const struct call *call, const struct place *place, const struct board *board) {
    if (place->lane < SPAN) {
        const real rstd = rstd_of(board->totals[place->lane], call->eps);
        board->totals[place->lane] = rstd;
    }
#if SAVE_MEAN || SAVE_RSTD
    if (place->writes && place->lane < SPAN) {
        const ulong at = place->sample * GROUPS + place->channel / CHANNELS_OF_GROUP + place->lane;
#if SAVE_MEAN
        call->mean[at] = board->means[place->lane];
#endif
#if SAVE_RSTD
        call->rstd[at] = board->totals[place->lane];
#endif
    }
#endif
    read_barrier();
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

/* The slices of a work-group begin at an index. Past the last one a segment has that one, and writes nothing. */
INLINED void take_slice(const struct call *call, const ulong index, const struct board *board, struct lanes *lanes) {
    const ulong own = index + own_segment(), slice = SEGMENTS == 1 ? own : min(own, call->work - 1);
    const struct place own_place = place_of(slice / SLICES, slice % SLICES, own < call->work), *const place = &own_place;
    struct packed_s held[HELD_OF_LANE] = {0};
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            LOAD_PACKED_S(&held[k], call, place->sample, element_of(place, k), VEC);
    begin_loads();
    take_statistics(call, place, held, board);
    put_statistics(call, place, board);
    struct output output = OUTPUT_OF(call, place->sample);
    write_slice(call, place, held, board, &output);
#if MEASURES
    put_magnitude(call->magnitudes + slice, &output, place->writes && place->lane == 0, lanes);
#else
    (void)lanes;
#endif
}

/* This work-group's slices. */
INLINED void take_share(const struct call *call, const struct board *board, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations && first + i * SEGMENTS < call->work; i++) {
        take_slice(call, first + i * SEGMENTS, board, &lanes);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#define LOCAL_MEMORY                          \
    local real scratch[2 * SCRATCH];          \
    local real space[SEGMENTS * LANES * VEC]; \
    local real shares[SEGMENTS * LANES];      \
    local real totals[SEGMENTS * SPAN];       \
    local real means[SEGMENTS * SPAN];        \
    const struct board board = board_of(space, shares, totals, means);

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_last(PARAMETERS(GROUP_NORM_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, &board, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_unaligned(PARAMETERS(GROUP_NORM_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_share(&call, &board, scratch);
}
#endif
