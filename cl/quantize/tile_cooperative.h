/* A tile that LANES work-items write together. Each takes QUAD rows of a vector at a time. */
#ifndef TILE_COOPERATIVE_H
#define TILE_COOPERATIVE_H

/* In local memory a column's codes are contiguous. Units of UNIT rows are permuted from one vector of columns to the next,
 * so that lanes find them in different banks, both when they write the words of their columns and when they read units of
 * neighbouring columns. */
#define UNIT 16
#define UNITS (TILE_ROWS > UNIT ? TILE_ROWS / UNIT : 1)
#define TILE_UNITS (TRANSPOSED ? TILE_COLS * TILE_ROWS / UNIT : 1)
typedef uint4 tile_unit;

#define ROW_BYTES VECTOR_OF(ROW_VEC)
#define VECTOR_OF(n) JOIN(VECTOR_OF_, n)
#define VECTOR_OF_1 uchar
#define VECTOR_OF_2 uchar2 /* no ushort: by strict aliasing it cannot be a part of the words that put_words() writes */
#define VECTOR_OF_4 uint
#define VECTOR_OF_8 uint2
#define VECTOR_OF_16 uint4

struct __attribute__((packed)) rows_anywhere {
    ROW_BYTES vector;
};

static inline uint place_of(const uint column, const uint row) {
    const uint turned = column / VEC % UNITS;
    return column * TILE_ROWS + (row / UNIT ^ turned) * UNIT + row % UNIT;
}

#if ISA == ISA_PTX
/* Four bytes of a and b. Each hexadecimal digit of the selector names one: 0 to 3 are a's, 4 to 7 are b's. */
static inline uint bytes_of(const uint a, const uint b, const uint selector) {
    uint bytes;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
    return bytes;
}
#endif

/* The codes of QUAD rows as words of columns: word i has those of column i, with the first row's in its lowest byte. */
INLINED void words_of(const BYTES *codes, uint *words) {
#if VEC >= QUAD && ISA == ISA_PTX
#pragma unroll
    for (uint i = 0; i < VEC; i += QUAD) {
        uint row[QUAD];
#pragma unroll
        for (uint k = 0; k < QUAD; k++)
            row[k] = ((const uint *)&codes[k])[i / QUAD];
        const uint columns01_of01 = bytes_of(row[0], row[1], 0x5140), columns23_of01 = bytes_of(row[0], row[1], 0x7362);
        const uint columns01_of23 = bytes_of(row[2], row[3], 0x5140), columns23_of23 = bytes_of(row[2], row[3], 0x7362);
        words[i] = bytes_of(columns01_of01, columns01_of23, 0x5410);
        words[i + 1] = bytes_of(columns01_of01, columns01_of23, 0x7632);
        words[i + 2] = bytes_of(columns23_of01, columns23_of23, 0x5410);
        words[i + 3] = bytes_of(columns23_of01, columns23_of23, 0x7632);
    }
#elif VEC >= QUAD /* four columns at a time: pairs of rows exchange bytes, then pairs of pairs exchange halves of words */
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

/* Writes the codes of QUAD rows to the tile, in the columns from column on. */
INLINED void put_words(local uchar *tile, const uint column, const uint row, const BYTES *codes) {
    uint words[VEC];
    words_of(codes, words);
    local uchar *to = tile + place_of(column, row);
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        *(local uint *)(to + i * TILE_ROWS) = words[i];
}

/* Writes one vector of q_t. */
INLINED void put_column(const struct call *call, const ROW_BYTES codes, const ulong column, const ulong row) {
    global uchar *to = call->q_t + column * call->q_t_stride + row;
    if (call->aligned)
        *(global ROW_BYTES *)to = codes;
    else if (ON_CPU)
        ((global struct rows_anywhere *)to)->vector = codes;
    else
        for (uint i = 0; i < ROW_VEC; i++)
            to[i] = ((const uchar *)&codes)[i];
}

/* Writes the tile as it is, and into local memory. whole: it has TILE_ROWS rows and TILE_COLS columns. */
INLINED void put_rows(const struct call *call, const ulong first_row, const ulong first_column, const bool whole,
                      local uchar *tile) {
    const uint item = (uint)get_local_id(0);
    const uint quads_at_once = LANES > TILE_VECTORS ? LANES / TILE_VECTORS : 1;
    for (uint vector = item % TILE_VECTORS; vector < TILE_VECTORS; vector += LANES) {
        const ulong column = first_column + vector * VEC;
        if (!whole && column >= reach_of(call))
            break;
        const struct columns columns = columns_at(call, column);
#pragma unroll 1
        for (uint quad = item / TILE_VECTORS; quad < QUADS; quad += quads_at_once) {
            const ulong row = first_row + quad * QUAD;
            if (!whole && row >= call->rows)
                break;
            const uint last = whole || call->rows - row >= QUAD ? QUAD - 1 : (uint)(call->rows - row) - 1;
            BYTES codes[QUAD];
            put_quad(call, &columns, row, last, column, whole, codes);
            if (TRANSPOSED)
                put_words(tile, vector * VEC, quad * QUAD, codes);
        }
    }
}

/* Writes the transposed tile from local memory. */
INLINED void put_columns(const struct call *call, const ulong first_row, const ulong first_column, const bool whole,
                         const local uchar *tile) {
    const uint vectors = TILE_ROWS / ROW_VEC;
#pragma unroll 4
    for (uint i = (uint)get_local_id(0); i < TILE_COLS * vectors; i += LANES) {
        const uint column = i / vectors, row = i % vectors * ROW_VEC;
        if (whole || (first_column + column < call->cols && first_row + row < call->rows))
            put_column(call, *(const local ROW_BYTES *)(tile + place_of(column, row)), first_column + column,
                       first_row + row);
    }
}

#endif
