/* A tile of TILE_ROWS × TILE_COLS codes, written as it is and transposed, by way of local memory. Whoever includes this has
 * a struct call with rows, cols, q, q_stride, q_t, q_t_stride and aligned, and
 *
 *     struct columns columns_at(const struct call *call, ulong column)
 *     struct taken take(const struct call *call, ulong row, ulong column)
 *     BYTES codes_of(const struct call *call, const struct columns *columns, const struct taken *taken, ulong row, ulong
 * column)
 *
 * for what VEC columns from one on have in common, what is loaded of them for one row, and the VEC codes. VEC divides cols,
 * and ROW_VEC rows: vectors are whole. */
#ifndef TILE_H
#define TILE_H

#include "fp8.h"

#define TILE_VECTORS (TILE_COLS / VEC)
#define QUAD 4 /* rows that a work-item takes at once: their codes of a column make a word */
#define QUADS (TILE_ROWS / QUAD)

/* Words from column to column in local memory, and some more from one vector to the next. Lanes that write the words of
 * their columns, and then ones that read those of columns side by side, so find them in different banks. A lane alone needs
 * no banks, but whole vectors. */
#if LANES > 1
#define PITCH (QUADS + 1)
#define GAP (VEC / QUAD)
#else
#define PITCH (QUADS + (ROW_VEC > QUAD ? ROW_VEC / QUAD : 1))
#define GAP 0
#endif
#define TILE_WORDS (TRANSPOSED ? TILE_COLS * PITCH + TILE_VECTORS * GAP : 4)

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

static inline uint word_at(const uint column, const uint quad) {
    return column * PITCH + column / VEC * GAP + quad;
}

/* The codes of QUAD rows, as words for their columns: word i has column i's, the first row's in its lowest byte. */
INLINED void words_of(const BYTES *codes, uint *words) {
#if VEC >= QUAD /* columns in fours: pairs of rows exchange bytes, then pairs of pairs halves of words */
    const BYTES even = 0x00ff00ffu, low = 0x0000ffffu;
    const BYTES columns02_of01 = (codes[0] & even) | (codes[1] << 8 & ~even);
    const BYTES columns13_of01 = (codes[0] >> 8 & even) | (codes[1] & ~even);
    const BYTES columns02_of23 = (codes[2] & even) | (codes[3] << 8 & ~even);
    const BYTES columns13_of23 = (codes[2] >> 8 & even) | (codes[3] & ~even);
    const BYTES column[QUAD] = {
        (columns02_of01 & low) | columns02_of23 << 16, (columns13_of01 & low) | columns13_of23 << 16,
        columns02_of01 >> 16 | (columns02_of23 & ~low), columns13_of01 >> 16 | (columns13_of23 & ~low)};
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        words[i] = ((const uint *)&column[i % QUAD])[i / QUAD];
#else
    uintv all = 0;
    for (uint k = 0; k < QUAD; k++)
        all |= TO_UINTV(AS_UCHARV(codes[k])) << 8 * k;
    VSTORE(all, words);
#endif
}

/* Into the tile's columns from column on. */
INLINED void put_words(local uint *tile, const uint column, const uint quad, const BYTES *codes) {
    uint words[VEC];
    words_of(codes, words);
    local uint *to = tile + word_at(column, quad);
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        to[i * PITCH] = words[i];
}

/* Codes of ROW_VEC rows of a column, from a place in the tile. */
INLINED ROW_BYTES column_codes(const local uint *tile, const uint column, const uint row) {
    const local uint *from = tile + word_at(column, row / QUAD);
#if LANES > 1 && ROW_VEC == 16
    return (uint4)(from[0], from[1], from[2], from[3]);
#elif LANES > 1 && ROW_VEC == 8
    return (uint2)(from[0], from[1]);
#else
    return *(const local ROW_BYTES *)((const local uchar *)from + row % QUAD);
#endif
}

/* One vector of q_t. */
INLINED void put_column(const struct call *call, const ROW_BYTES codes, const ulong column, const ulong row) {
    global uchar *to = call->q_t + column * call->q_t_stride + row;
    if (call->aligned)
        *(global ROW_BYTES *)to = codes;
    else if (ELEMENT_ALIGNED)
        ((global struct rows_anywhere *)to)->vector = codes;
    else
        for (uint i = 0; i < ROW_VEC; i++)
            to[i] = ((const uchar *)&codes)[i];
}

/* QUAD rows of a vector of columns. All is loaded before anything is stored, which might be what is loaded for all that
 * compilers know. Beyond the last row it is that row again, which costs less than a branch, and is not stored. */
INLINED void put_quad(const struct call *call, const ulong row, const ulong column, BYTES *codes) {
    const uint last = call->rows - row < QUAD ? (uint)(call->rows - row) - 1 : QUAD - 1;
    const struct columns columns = columns_at(call, column);
    struct taken taken[QUAD];
#pragma unroll
    for (uint k = 0; k < QUAD; k++)
        taken[k] = take(call, row + min(k, last), column);
    begin_loads();
#pragma unroll
    for (uint k = 0; k < QUAD; k++)
        codes[k] = codes_of(call, &columns, &taken[k], row + k, column);
    if (WRITE_Q) {
#pragma unroll
        for (uint k = 0; k < QUAD; k++)
            if (k <= last)
                store_bytes(call->q + (row + k) * call->q_stride + column, codes[k], call->aligned);
    }
}

/* work: tiles, 0 for none. The last tile comes first: what was read last before this is what caches still have. */
INLINED void put_tile(const struct call *call, const ulong work, local uint *tile) {
    if (get_group_id(0) >= work)
        return; /* the whole work-group */
    const ulong index = work - 1 - get_group_id(0);
    const ulong across = (call->cols + TILE_COLS - 1) / TILE_COLS;
    const ulong first_row = index / across * TILE_ROWS;
    const ulong first_column = index % across * TILE_COLS;
    for (uint i = (uint)get_local_id(0); i < QUADS * TILE_VECTORS; i += LANES) {
        const uint quad = i / TILE_VECTORS, column = i % TILE_VECTORS * VEC;
        if (first_row + quad * QUAD >= call->rows || first_column + column >= call->cols)
            continue;
        BYTES codes[QUAD];
        put_quad(call, first_row + quad * QUAD, first_column + column, codes);
        if (TRANSPOSED)
            put_words(tile, column, quad, codes);
    }
#if TRANSPOSED
    barrier(CLK_LOCAL_MEM_FENCE);
#if LANES > 1
#pragma unroll 4
#endif
    for (uint i = (uint)get_local_id(0); i < TILE_COLS * (TILE_ROWS / ROW_VEC); i += LANES) {
        const uint column = i / (TILE_ROWS / ROW_VEC), row = i % (TILE_ROWS / ROW_VEC) * ROW_VEC;
        if (first_column + column < call->cols && first_row + row < call->rows)
            put_column(call, column_codes(tile, column, row), first_column + column, first_row + row);
    }
#endif
}

#endif
