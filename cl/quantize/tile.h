/* A tile of TILE_ROWS × TILE_COLS codes, written as it is, and transposed by way of local memory. The including file has a
 * struct call with work, rows, cols, q_t, q_t_stride and aligned, and
 *
 *     struct columns columns_at(const struct call *call, ulong column)
 *     struct taken take(const struct call *call, ulong row, ulong column, bool whole)
 *     BYTES codes_of(const struct call *call, const struct columns *columns, const struct taken *taken, ulong row,
 *                    ulong column)
 *     void put(const struct call *call, ulong row, ulong column, BYTES codes, bool whole)
 *
 * columns_at loads the values that all rows of VEC columns share, take loads those of one row, codes_of makes the VEC
 * codes, and put writes them to q, which there is with WRITE_Q. ROW_VEC divides rows. VEC divides cols, except with TAILS
 * (leads.h): then take and put leave out what is outside of a row, unless they are told that the vector is whole. */
#ifndef TILE_H
#define TILE_H

#include "quantize/leads.h"

#define TILE_VECTORS (TILE_COLS / VEC)
#define QUAD 4 /* rows that a work-item takes at once: their codes in a column make a word */
#define QUADS (TILE_ROWS / QUAD)

/* QUAD rows of a vector of columns. All of them are loaded before one is stored, since compilers cannot exclude that they
 * overlap. Beyond the last row, that row is loaded again instead, which costs less than a branch, and is not stored. */
INLINED void put_quad(const struct call *call, const struct columns *columns, const ulong row, const uint last,
                      const ulong column, const bool whole, BYTES *codes) {
    struct taken taken[QUAD];
#pragma unroll
    for (uint k = 0; k < QUAD; k++)
        taken[k] = take(call, row + min(k, last), column, whole);
    if (QUADS * TILE_VECTORS <= LANES) /* else it would wait for the stores of the quad before */
        begin_loads();
#pragma unroll
    for (uint k = 0; k < QUAD; k++)
        codes[k] = codes_of(call, columns, &taken[k], row + k, column);
#if WRITE_Q
#pragma unroll
    for (uint k = 0; k < QUAD; k++)
        if (k <= last)
            put(call, row + k, column, codes[k], whole);
#endif
}

/* From the start of a row's first vector to the end of its last one, at most. */
static inline ulong reach_of(const struct call *call) {
    return call->cols + MOST_LEAD;
}

#if LANES > 1
#include "quantize/tile_cooperative.h"
#else
#include "quantize/tile_serial.h"
#endif

/* The rows of cols elements: the last row of a contiguous tensor may be shorter. */
static inline ulong even_rows(const struct call *call) {
#if TAILS
    return call->elements / call->cols;
#else
    return call->rows;
#endif
}

/* Tiles are taken from last to first, as caches still hold what the kernel before read last. */
INLINED void put_tile(const struct call *call, local uchar *tile) {
    const ulong index = call->work - 1 - get_group_id(0);
    const ulong across = (reach_of(call) + TILE_COLS - 1) / TILE_COLS;
    const ulong first_row = index / across * TILE_ROWS;
    const ulong first_column = index % across * TILE_COLS;
    const bool inner = (!LEADS || first_column > 0) && first_row + TILE_ROWS <= even_rows(call);
    const bool whole = LANES > 1 && inner && first_column + TILE_COLS <= call->cols;
    if (whole)
        put_rows(call, first_row, first_column, true, tile);
    else
        put_rows(call, first_row, first_column, false, tile);
#if TRANSPOSED
    barrier(CLK_LOCAL_MEM_FENCE);
    if (whole)
        put_columns(call, first_row, first_column, true, tile);
    else
        put_columns(call, first_row, first_column, false, tile);
#endif
    last_barrier();
}

#endif
