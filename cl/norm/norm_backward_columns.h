/* dweight and dbias without slots, for few rows: separate work-groups each sum some columns over every row, while the
 * others go through rows for the other outputs. No work-group waits for another one; x, dy and z are read twice. */
#ifndef NORM_BACKWARD_COLUMNS_H
#define NORM_BACKWARD_COLUMNS_H

#include "norm/norm_backward_outputs.h"

#if ACCUMULATOR == ACCUMULATOR_COLUMNS && (DWEIGHT || DBIAS)

/* Such a work-group has COLUMN_LINES lines of COLUMN_LANES neighbouring lanes with a vector each. The lines take different
 * rows. */
#define ROW_VECTORS (GROUPS * (ulong)VECTORS)
#define COLUMN_LINES (GROUP_ITEMS / COLUMN_LANES)
#define COLUMN_GROUPS ((ROW_VECTORS + COLUMN_LANES - 1) / COLUMN_LANES)

/* Where an output overlaps an input, the work-groups that go through rows are launched after the others, at an offset. */
#define WORK_GROUP (get_group_id(0) + get_global_offset(0) / GROUP_ITEMS)

struct column_sums {
    realv dweight, dbias;
};

/* The row of a line. From end on it is not active. */
static inline struct row row_of_line(const struct call *call, const ulong index, const ulong end, const ulong group) {
    const struct row none = {index, group ROW_STARTS(0), 0, 0, 0, false};
    return index < end ? row_at(call, index, true, group) : none;
}

/* Maximum rows of a line that are added up in one chain. */
#define MOST_ADDED 4096

/* The sums of vector v of a group over this line's rows from begin to before end, UNROLL rows at once. Every line makes the
 * same number of iterations. */
static inline struct column_sums sum_column(const struct call *call, const ulong group, const index_t v, const uint line,
                                            const ulong begin, const ulong end) {
    struct column_sums sums = {0, 0};
    const struct scale scale =
        load_scale(call->weight + group * GROUP_SIZE, call->bias + group * GROUP_SIZE, v, 0, call->aligned, LOAD_PLAIN);
    for (ulong first = begin; first < end; first += UNROLL * COLUMN_LINES) {
        struct row row[UNROLL];
        struct inputs in[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            row[j] = row_of_line(call, first + j * COLUMN_LINES + line, end, group);
            in[j] = row[j].active ? load_inputs(call, &row[j], v, LOAD_IN_TURN) : no_inputs();
        }
        begin_loads();
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            if (!row[j].active)
                continue;
            const struct point point = point_at(call, &row[j], &in[j], scale);
            sums.dweight += point.dn * point.x_hat;
            sums.dbias += point.dn;
        }
    }
    return sums;
}

#define COLUMNS (COLUMN_LANES * VEC) /* of a work-group that sums columns */

/* Every work-item of every work-group calls it, as PoCL 3.1 hangs at barriers that some work-groups do not reach; a
 * work-group that sums columns later gets a share of no rows. tile: from COLUMN_GROUPS on there is nothing to do. space:
 * 2 · GROUP_ITEMS vectors. */
INLINED void take_columns(const struct call *call, const ulong tile, local realv *space) {
    const ulong first = tile * COLUMN_LANES;
    const ulong own = first + get_local_id(0) % COLUMN_LANES;
    const uint item = (uint)get_local_id(0);
    space[item] = space[GROUP_ITEMS + item] = 0;
    for (ulong begin = 0; own < ROW_VECTORS && begin < call->rows; begin += MOST_ADDED * COLUMN_LINES) {
        const ulong end = min(begin + MOST_ADDED * COLUMN_LINES, call->rows);
        const struct column_sums sums =
            sum_column(call, own / VECTORS, (index_t)(own % VECTORS), item / COLUMN_LANES, begin, end);
        space[item] += sums.dweight;
        space[GROUP_ITEMS + item] += sums.dbias;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const local real *lines = (const local real *)space; /* [2, COLUMN_LINES, COLUMNS]: dweight's, then dbias's */
    const uint own_sums = tile < COLUMN_GROUPS ? 2 * COLUMNS : 0;
    for (uint i = (uint)get_local_id(0); i < own_sums; i += GROUP_ITEMS) {
        real sum = 0;
        for (uint line = 0; line < COLUMN_LINES; line++) /* in a fixed order */
            sum += lines[(i / COLUMNS * COLUMN_LINES + line) * COLUMNS + i % COLUMNS];
        const ulong vector = first + i % COLUMNS / VEC;
        const ulong in_group = vector % VECTORS * VEC + i % VEC;
        const ulong column = vector / VECTORS * GROUP_SIZE + in_group;
        const bool there = vector < ROW_VECTORS && in_group < GROUP_SIZE;
#if DWEIGHT
        if (there && i < COLUMNS)
            PUT1(DWEIGHT_DTYPE)(call->dweight + column, sum, ACCUMULATE);
#endif
#if DBIAS
        if (there && i >= COLUMNS)
            PUT1(DBIAS_DTYPE)(call->dbias + column, sum, ACCUMULATE);
#endif
    }
}

#else

#define COLUMN_GROUPS 0
#define WORK_GROUP get_group_id(0)

INLINED void take_columns(const struct call *call, const ulong tile, local realv *space) {
    (void)call, (void)tile, (void)space;
}

#endif

#endif
