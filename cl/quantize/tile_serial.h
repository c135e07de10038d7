/* A tile that a single work-item writes in the order of memory: QUAD rows at a time, and then its columns, each a line of a
 * cache. */
#ifndef TILE_SERIAL_H
#define TILE_SERIAL_H

#define LINE 64 /* bytes; TILE_ROWS of a transposed tile */
#define LINE_WORDS (LINE / QUAD)
typedef uint16 tile_unit; /* the words of a line */

/* Local memory holds, for each QUAD rows, a word of each column, and then LINE_WORDS columns as lines. */
#define TILE_UNITS (TRANSPOSED ? QUADS * TILE_COLS / LINE_WORDS + LINE_WORDS : 1)

struct __attribute__((packed)) line_anywhere {
    tile_unit line;
};

/* Words of a and b alternately: the first two of each quarter of a line, or the last two. */
static inline tile_unit first_words(const tile_unit a, const tile_unit b) {
    return (tile_unit)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5, a.s8, b.s8, a.s9, b.s9, a.sc, b.sc, a.sd, b.sd);
}

static inline tile_unit last_words(const tile_unit a, const tile_unit b) {
    return (tile_unit)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7, a.sa, b.sa, a.sb, b.sb, a.se, b.se, a.sf, b.sf);
}

/* Transposes the words of each quarter of four lines: word k of line i becomes word i of line k. */
INLINED void turn_words(tile_unit *line) {
    const tile_unit first_of02 = first_words(line[0], line[2]), last_of02 = last_words(line[0], line[2]);
    const tile_unit first_of13 = first_words(line[1], line[3]), last_of13 = last_words(line[1], line[3]);
    line[0] = first_words(first_of02, first_of13);
    line[1] = last_words(first_of02, first_of13);
    line[2] = first_words(last_of02, last_of13);
    line[3] = last_words(last_of02, last_of13);
}

/* Transposes the quarters of four lines that are QUAD apart. */
INLINED void turn_quarters(tile_unit *line) {
    const tile_unit a = line[0], b = line[QUAD], c = line[2 * QUAD], d = line[3 * QUAD];
    const tile_unit first_of01 = (tile_unit)(a.lo, b.lo), last_of01 = (tile_unit)(a.hi, b.hi);
    const tile_unit first_of23 = (tile_unit)(c.lo, d.lo), last_of23 = (tile_unit)(c.hi, d.hi);
    line[0] = (tile_unit)(first_of01.s0123, first_of01.s89ab, first_of23.s0123, first_of23.s89ab);
    line[QUAD] = (tile_unit)(first_of01.s4567, first_of01.scdef, first_of23.s4567, first_of23.scdef);
    line[2 * QUAD] = (tile_unit)(last_of01.s0123, last_of01.s89ab, last_of23.s0123, last_of23.s89ab);
    line[3 * QUAD] = (tile_unit)(last_of01.s4567, last_of01.scdef, last_of23.s4567, last_of23.scdef);
}

/* Makes lines of LINE_WORDS columns. words: of these columns, those of the next QUAD rows TILE_COLS further on. */
INLINED void turn(const local uint *words, local tile_unit *lines) {
    tile_unit line[LINE_WORDS];
#pragma unroll
    for (uint i = 0; i < LINE_WORDS; i++)
        line[i] = *(const local tile_unit *)(words + i * TILE_COLS);
#pragma unroll
    for (uint i = 0; i < QUAD; i++)
        turn_words(line + i * QUAD);
#pragma unroll
    for (uint i = 0; i < QUAD; i++)
        turn_quarters(line + i);
#pragma unroll
    for (uint i = 0; i < LINE_WORDS; i++)
        lines[i] = line[i];
}

/* Writes the codes of one column. Whole lines bypass the cache, which would otherwise read each line before the write. */
INLINED void put_column(const local tile_unit *line, const uint count, global uchar *to) {
    const bool whole = count == LINE;
    if (whole && (size_t)to % LINE == 0)
        STORE_STREAMING(*line, (global tile_unit *)to);
    else if (whole && ON_CPU)
        ((global struct line_anywhere *)to)->line = *line;
    else
        for (uint i = 0; i < count; i++)
            to[i] = ((const local uchar *)line)[i];
}

/* Writes the tile as it is, and into local memory. */
INLINED void put_rows(const struct call *call, const ulong first_row, const ulong first_column, const bool whole,
                      local uchar *tile) {
    (void)whole;
    local uint *words = (local uint *)tile;
    const uint rows = (uint)min((ulong)TILE_ROWS, call->rows - first_row);
    const uint cols = (uint)min((ulong)TILE_COLS, reach_of(call) - first_column);
    for (uint row = 0; row < rows; row += QUAD) {
        for (uint c = 0; c < cols; c += VEC) {
            const struct columns columns = columns_at(call, first_column + c);
            BYTES codes[QUAD];
            put_quad(call, &columns, first_row + row, min((uint)QUAD, rows - row) - 1, first_column + c, false, codes);
            if (TRANSPOSED) {
                uintv word = 0;
#pragma unroll
                for (uint k = 0; k < QUAD; k++)
                    word |= TO_UINTV(AS_UCHARV(codes[k])) << 8 * k;
                *(local uintv *)(words + row / QUAD * TILE_COLS + c) = word;
            }
        }
    }
}

/* Writes the transposed tile from local memory. */
INLINED void put_columns(const struct call *call, const ulong first_row, const ulong first_column, const bool whole,
                         local uchar *tile) {
    (void)whole;
    const local uint *words = (const local uint *)tile;
    local tile_unit *lines = (local tile_unit *)(tile + TILE_ROWS * TILE_COLS);
    const uint rows = (uint)min((ulong)TILE_ROWS, call->rows - first_row);
    const uint cols = (uint)min((ulong)TILE_COLS, call->cols - first_column);
    for (uint c = 0; c < cols; c++) {
        if (c % LINE_WORDS == 0)
            turn(words + c, lines);
        put_column(&lines[c % LINE_WORDS], rows, call->q_t + (first_column + c) * call->q_t_stride + first_row);
    }
}

#endif
