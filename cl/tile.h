/* A tile of TILE_ROWS × TILE_COLS codes, written as it is and transposed, by way of local memory. Whoever includes this has
 * a struct call with rows, cols, q, q_stride, q_t, q_t_stride and aligned, and a function
 *
 *     BYTES codes_at(const struct call *call, ulong row, ulong column)
 *
 * for the VEC codes from a column on. VEC divides cols, and ROW_VEC rows: vectors are whole. */
#ifndef TILE_H
#define TILE_H

#include "fp8.h"

#define TILE_VECTORS (TILE_COLS / VEC)
#define QUAD 4 /* rows that a work-item takes at once: their codes of a column make a word */
#define PITCH (TILE_ROWS + (ROW_VEC > 4 ? ROW_VEC : 4)) /* bytes from column to column in local memory */
#define TILE_BYTES (TRANSPOSED ? TILE_COLS * PITCH : 16)

#define ROW_BYTES VECTOR_OF(ROW_VEC)
#define VECTOR_OF(n) JOIN(VECTOR_OF_, n)
#define VECTOR_OF_1 uchar
#define VECTOR_OF_2 ushort
#define VECTOR_OF_4 uint
#define VECTOR_OF_8 uint2
#define VECTOR_OF_16 uint4

struct __attribute__((packed)) rows_anywhere {
    ROW_BYTES vector;
};

/* Codes of QUAD rows, into the tile's columns from column on. */
INLINED void put_words(local uchar *tile, const uint row, const uint column, const uintv words) {
    uint word[VEC];
    VSTORE(words, word);
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        *(local uint *)(tile + (column + i) * PITCH + row) = word[i];
}

/* One vector of q_t: codes of ROW_VEC rows, from the tile. */
INLINED void put_column(const struct call *call, const local uchar *from, const ulong column, const ulong row) {
    global uchar *to = call->q_t + column * call->q_t_stride + row;
    const ROW_BYTES codes = *(const local ROW_BYTES *)from;
    if (call->aligned)
        *(global ROW_BYTES *)to = codes;
    else if (ELEMENT_ALIGNED)
        ((global struct rows_anywhere *)to)->vector = codes;
    else
        for (uint i = 0; i < ROW_VEC; i++)
            to[i] = from[i];
}

/* work: tiles, 0 for none. */
INLINED void put_tile(const struct call *call, const ulong work, local uchar *tile) {
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const ulong across = (call->cols + TILE_COLS - 1) / TILE_COLS;
    const ulong first_row = get_group_id(0) / across * TILE_ROWS;
    const ulong first_column = get_group_id(0) % across * TILE_COLS;
    for (uint i = (uint)get_local_id(0); i < TILE_ROWS / QUAD * TILE_VECTORS; i += LANES) {
        const uint row = i / TILE_VECTORS * QUAD, column = i % TILE_VECTORS * VEC;
        uintv words = 0;
#pragma unroll
        for (uint k = 0; k < QUAD; k++) {
            const ulong at = first_row + row + k;
            if (at >= call->rows || first_column + column >= call->cols)
                continue;
            const BYTES codes = codes_at(call, at, first_column + column);
            if (WRITE_Q)
                store_bytes(call->q + at * call->q_stride + first_column + column, codes, call->aligned);
            if (TRANSPOSED)
                words |= TO_UINTV(AS_UCHARV(codes)) << 8 * k;
        }
        if (TRANSPOSED)
            put_words(tile, row, column, words);
    }
#if TRANSPOSED
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = (uint)get_local_id(0); i < TILE_COLS * (TILE_ROWS / ROW_VEC); i += LANES) {
        const uint column = i / (TILE_ROWS / ROW_VEC), row = i % (TILE_ROWS / ROW_VEC) * ROW_VEC;
        if (first_column + column < call->cols && first_row + row < call->rows)
            put_column(call, tile + column * PITCH + row, first_column + column, first_row + row);
    }
#endif
}

#endif
