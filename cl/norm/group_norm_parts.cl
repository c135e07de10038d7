/* Group norm by chunks, with either layout: their moments, and, once group_norm_merge has made statistics of these, y. */

#include "norm/group_moments.h"
#include "norm/group_norm.h"

/* The arguments of the launches. work: units. */
struct moments_call {
    MEMBERS(GROUP_NORM_MOMENTS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

struct apply_call {
    MEMBERS(GROUP_NORM_APPLY_ARGS)
    bool aligned;
};

/* --------------------------------------------------------------------------------------------------------- moments */

#if IS_FIRST

/* Of a channel's whole vectors in the chunk; this lane's i-th is lane + i · LANES after the first. */
static inline void take_vectors(const struct moments_call *call, const struct unit *unit, struct moments *moments) {
    const ulong begin = chunk_begin(unit->chunk), whole = min((ulong)SPATIAL / VEC, chunk_begin(unit->chunk + 1));
    const ulong vectors = whole > begin ? whole - begin : 0;
    const ulong first = unit->channel * SPATIAL + (begin + unit->lane) * VEC;
    const index_t count = (index_t)(vectors / LANES + (unit->lane < vectors % LANES));
#define VECTOR_AT(i) LOAD_S(call, unit->sample, first + (ulong)(i)*LANES * VEC, VEC)
    if (count > 0)
        moments_start(moments, VECTOR_AT(0));
    for (index_t i = 0; i < count;) {
        const index_t length = run_length(moments, count - i), blocks = length / CHAINS * CHAINS;
        struct run run;
        run_start(&run, moments);
        for (index_t j = 0; j < blocks; j += CHAINS)
#pragma unroll
            for (uint k = 0; k < CHAINS; k++)
                run_take(&run, k, VECTOR_AT(i + j + k));
        for (index_t j = blocks; j < length; j++)
            run_take(&run, 0, VECTOR_AT(i + j));
        run_end(&run, moments, length);
        i += length;
    }
#undef VECTOR_AT
}

/* The elements of the row's partly filled vector, where the chunk ends with it. One lane takes them. */
static inline void take_tail(const struct moments_call *call, const struct unit *unit, const real origin,
                             struct spread *own) {
    const ulong whole = SPATIAL / VEC;
    if (SPATIAL % VEC == 0 || unit->lane != 0 || chunk_begin(unit->chunk) > whole || chunk_begin(unit->chunk + 1) <= whole)
        return;
    for (ulong i = whole * VEC; i < SPATIAL; i++) {
        const ulong at = unit->channel * SPATIAL + i;
        const struct spread one = {first_element(LOAD_S(call, unit->sample, at, 1)) - origin, 0, 1};
        spread_merge(own, one);
    }
}

INLINED void take_moments(const struct moments_call *call, const struct unit *unit, struct lanes *lanes) {
    const ulong count = unit->active ? chunk_count(unit->chunk) : 0;
    struct spread own = {0, 0, 0};
    real origin = 0;
    if (count > 0) {
        const ulong first = unit->channel * SPATIAL + chunk_begin(unit->chunk) * VEC;
        struct moments moments = {0, 0, 0, 0};
        origin = first_element(LOAD_S(call, unit->sample, first, 1));
        take_vectors(call, unit, &moments);
        own = spread_of(&moments, origin);
        take_tail(call, unit, origin, &own);
    }
    const struct spread all = spread_over_lanes(own, (real)max(count, (ulong)1), lanes);
    if (count > 0 && unit->lane == 0) {
        global real *part = call->parts + part_of(unit->sample, unit->channel, unit->chunk);
        part[0] = origin + all.mean;
        part[PART_STEP] = all.squares;
    }
}

#else

#define IS_THERE(j) (unit->vector + (j)*LANES < ROW_VECTORS)
#define CHANNEL(j) ((unit->vector + (ulong)(j)*LANES) * VEC)
#define COUNT(j) elements_of(unit->vector + (j)*LANES)

/* Vectors whose sums a lane has registers for. */
#define SUMMED_VECTORS (HELD_VECTORS < 4 ? HELD_VECTORS : 4)

/* Of some of the vectors of channels that this lane holds, over the chunk's positions. */
static inline void take_vectors(const struct moments_call *call, const struct unit *unit, const uint first) {
    const ulong begin = chunk_begin(unit->chunk), end = chunk_begin(unit->chunk + 1);
#define VECTOR_AT(position, j) LOAD_S(call, unit->sample, (position)*CHANNELS + CHANNEL(first + (j)), COUNT(first + (j)))
    struct moments moments[SUMMED_VECTORS];
#pragma unroll
    for (uint j = 0; j < SUMMED_VECTORS; j++)
        if (IS_THERE(first + j))
            moments_start(&moments[j], VECTOR_AT(begin, j));
    for (ulong position = begin; position < end;) {
        const index_t length = run_length(&moments[0], (index_t)(end - position));
        struct run run[SUMMED_VECTORS];
#pragma unroll
        for (uint j = 0; j < SUMMED_VECTORS; j++)
            if (IS_THERE(first + j))
                run_start(&run[j], &moments[j]);
        for (index_t i = 0; i < length; i++)
#pragma unroll
            for (uint j = 0; j < SUMMED_VECTORS; j++)
                if (IS_THERE(first + j))
                    run_take(&run[j], 0, VECTOR_AT(position + i, j));
#pragma unroll
        for (uint j = 0; j < SUMMED_VECTORS; j++)
            if (IS_THERE(first + j))
                run_end(&run[j], &moments[j], length);
        position += length;
    }
#pragma unroll
    for (uint j = 0; j < SUMMED_VECTORS; j++)
        if (IS_THERE(first + j)) {
            global real *part = call->parts + part_of(unit->sample, CHANNEL(first + j), unit->chunk);
            STORE_PART(REAL_DTYPE)(part, moments[j].origin + moments[j].mean, COUNT(first + j), false);
            STORE_PART(REAL_DTYPE)(part + PART_STEP, moments[j].squares, COUNT(first + j), false);
        }
#undef VECTOR_AT
}

INLINED void take_moments(const struct moments_call *call, const struct unit *unit, struct lanes *lanes) {
    (void)lanes;
    if (!unit->active || chunk_count(unit->chunk) == 0)
        return;
    for (uint first = 0; first < HELD_VECTORS && IS_THERE(first); first += SUMMED_VECTORS)
        take_vectors(call, unit, first);
}

#endif

INLINED void take_moments_share(const struct moments_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = first + i * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const ulong own = index + get_local_id(0) / LANES;
        const struct unit unit = unit_of(own, SEGMENTS == 1 || own < call->work);
        take_moments(call, &unit, &lanes);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct moments_call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_moments_share(&call, scratch);
}

/* ----------------------------------------------------------------------------------------------------------- apply */

static inline void write_vector(const struct apply_call *call, const ulong sample, const ulong at, const ulong count,
                                const realv mean, const realv scale, const realv bias) {
    const realv s = LOAD_S(call, sample, at, count);
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_PART(RESIDUAL_OUT_DTYPE)(call->residual_out + sample * call->residual_out_stride + at, s, count, call->aligned);
#endif
    STORE_PART(Y_DTYPE)
    (call->y + sample * call->y_stride + at, activated((s - mean) * scale + bias), count, call->aligned);
}

#if IS_FIRST

static inline void write_unit(const struct apply_call *call, const struct unit *unit) {
    const ulong end = chunk_begin(unit->chunk + 1);
    const ulong group = unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP;
    const realv mean = call->mean[group], scale = call->rstd[group] * WEIGHT_OF(call, unit->channel);
    const realv bias = BIAS_OF(call, unit->channel);
    for (ulong vector = chunk_begin(unit->chunk) + unit->lane; vector < end; vector += LANES)
        write_vector(call, unit->sample, unit->channel * SPATIAL + vector * VEC, elements_of(vector), mean, scale, bias);
}

#else

static inline void write_unit(const struct apply_call *call, const struct unit *unit) {
    const ulong end = chunk_begin(unit->chunk + 1);
    realv mean[HELD_VECTORS], scale[HELD_VECTORS], bias[HELD_VECTORS];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        mean[j] = of_groups(call->mean + unit->sample * GROUPS, CHANNEL(j), COUNT(j), 1);
        scale[j] =
            of_groups(call->rstd + unit->sample * GROUPS, CHANNEL(j), COUNT(j), 1) * WEIGHTS_OF(call, CHANNEL(j), COUNT(j));
        bias[j] = BIASES_OF(call, CHANNEL(j), COUNT(j));
    }
    for (ulong tile = chunk_begin(unit->chunk); tile < end; tile += TILE_POSITIONS)
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++)
            for (ulong position = tile; position < min(end, tile + TILE_POSITIONS); position++)
                write_vector(call, unit->sample, position * CHANNELS + CHANNEL(j), COUNT(j), mean[j], scale[j], bias[j]);
}

#endif

/* From the last unit to the first: what was read last may still be in a cache. */
static inline void write_share(const struct apply_call *call) {
    const ulong first = (get_group_id(0) * call->iterations) * SEGMENTS + get_local_id(0) / LANES;
    for (ulong i = 0; i < call->iterations && first + i * SEGMENTS < call->work; i++) {
        const struct unit unit = unit_of(call->work - 1 - first - i * SEGMENTS, true);
        write_unit(call, &unit);
    }
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply(PARAMETERS(GROUP_NORM_APPLY_ARGS)) {
    const struct apply_call call = {ARGUMENTS(GROUP_NORM_APPLY_ARGS), .aligned = !ELEMENT_ALIGNED};
    write_share(&call);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments_unaligned(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct moments_call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = false};
    take_moments_share(&call, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_apply_unaligned(PARAMETERS(GROUP_NORM_APPLY_ARGS)) {
    const struct apply_call call = {ARGUMENTS(GROUP_NORM_APPLY_ARGS), .aligned = false};
    write_share(&call);
}
#endif
