/* Groups of rows that begin anywhere within a vector (LEADS). Each lane takes a window, VEC columns of its group, which are
 * not aligned: a window consists of the end of one aligned vector of x and the start of the next. Its codes go by way of
 * local memory, from which a lane takes an aligned vector of q: the last codes of one window and the first of the next.
 *
 * A work-group's windows are consecutive: LANES * VEC is GROUP_SIZE. VEC is a multiple of WORD. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "quantize/quantize_call.h"

#define WORD 4 /* bytes */
#define X_WORDS (VEC * sizeof(STORAGE(X_DTYPE)) / WORD)
#define CODE_WORDS (VEC / WORD)
#define KEPT_WORDS(windows) (((windows) + 2) * CODE_WORDS + 1) /* of their codes, and of what is read beside these */

/* Four bytes, the first of which is the given one of low. */
static inline uint bytes_from(const uint low, const uint high, const uint byte) {
    return (uint)(((ulong)high << 32 | low) >> 8 * byte);
}

/* The elements of low from `lead` on, and then as many of high as are missing. */
static inline PACKED(X_DTYPE) join_vectors(const PACKED(X_DTYPE) low, const PACKED(X_DTYPE) high, const uint lead) {
    union {
        PACKED(X_DTYPE) vector[2];
        uint word[2 * X_WORDS];
    } both = {{low, high}};
    const uint byte = lead * sizeof(STORAGE(X_DTYPE));
#pragma unroll
    for (uint step = X_WORDS / 2; step > 0; step /= 2)
#pragma unroll
        for (uint i = 0; i < X_WORDS + step; i++)
            both.word[i] = byte / WORD & step ? both.word[i + step] : both.word[i];
#pragma unroll
    for (uint i = 0; i < X_WORDS; i++)
        both.word[i] = bytes_from(both.word[i], both.word[i + 1], byte % WORD);
    return both.vector[0];
}

/* Where a window that begins at `column` lies. */
struct extent {
    uint lead; /* elements from the start of the aligned vector in which it begins */
    uint left; /* columns up to the row's end, at most 2 VEC */
};

static inline struct extent extent_of(const struct call *call, const ulong row, const ulong column) {
    return (struct extent){lead_of(call, row), (uint)min(call->cols - column, (ulong)(2 * VEC))};
}

/* Loads an aligned vector of which the first `count` elements are before the row's end. */
static inline PACKED(X_DTYPE) load_count(const struct call *call, const global STORAGE(X_DTYPE) * x, const uint count) {
    const struct part part = {0, min(count, (uint)VEC)};
    return (LOADS_BEYOND && call->aligned) || count >= VEC ? LOAD(X_DTYPE)(x, call->aligned, LOAD_LAST)
                                                           : load_part_of_x(x, part);
}

/* The two vectors in which a window lies. */
struct window {
    PACKED(X_DTYPE) low, high;
};

/* Without a second vector the first one is loaded again, which costs less than a branch: then loads of several windows
 * overlap. */
static inline struct window load_window(const struct call *call, const ulong row, const ulong column) {
    const struct extent extent = extent_of(call, row, column);
    const uint count = extent.left + extent.lead, second = count > VEC ? VEC : 0;
    const global STORAGE(X_DTYPE) *const x = call->x + row * call->x_stride + column - extent.lead;
    return (struct window){load_count(call, x, count), load_count(call, x + second, count - second)};
}

/* Its elements, and zeros beyond the row. */
static inline PACKED(X_DTYPE)
    elements_of(const struct call *call, const ulong row, const ulong column, const struct window *window) {
    const struct extent extent = extent_of(call, row, column);
    ELEMENTS(X_DTYPE) joined = {join_vectors(window->low, window->high, extent.lead)};
    if (extent.left < VEC)
#pragma unroll
        for (uint i = 0; i < VEC; i++)
            joined.element[i] = i < extent.left ? joined.element[i] : (STORAGE(X_DTYPE))0;
    return joined.packed;
}

#if WRITE_Q

/* Window w of those that a work-group takes together. */
static inline void keep_codes(local uint *kept, const uint w, const BYTES codes) {
    *(local BYTES *)(kept + (w + 1) * CODE_WORDS) = codes;
}

/* VEC codes, of which the first one is `lead` codes before window w. */
static inline BYTES kept_codes(const local uint *kept, const uint w, const uint lead) {
    const uint first = (w + 1) * VEC - lead;
    union {
        BYTES codes;
        uint word[CODE_WORDS];
    } taken;
#pragma unroll
    for (uint i = 0; i < CODE_WORDS; i++)
        taken.word[i] = bytes_from(kept[first / WORD + i], kept[first / WORD + i + 1], first % WORD);
    return taken.codes;
}

/* Writes the vector of q in which window w begins. follows: the window before it is kept too, if it is of the same row.
 * Where no kept window of its row comes after it (last), it writes the next vector's first codes too. */
static inline void put_window(const struct call *call, const ulong row, const ulong column, const uint w,
                              const bool follows, const bool last, const local uint *kept) {
    const struct extent extent = extent_of(call, row, column);
    const uint lead = extent.lead, count = extent.left + lead;
    global uchar *const q = call->q + row * call->q_stride + column - lead;
    const struct part part = {follows && column > 0 ? 0 : lead, min(count, (uint)VEC)};
    const BYTES codes = kept_codes(kept, w, lead);
    if (is_whole(part))
        store_bytes(q, codes, call->aligned);
    else
        store_part_of_q(q, codes, part);
    if ((last || extent.left <= VEC) && count > VEC) {
        const struct part rest = {0, min(count - VEC, lead)};
        store_part_of_q(q + VEC, kept_codes(kept, w + 1, lead), rest);
    }
}

#endif

#endif
