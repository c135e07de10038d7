/* Numbers in words that hold 0, for none, before they are written. */
#ifndef CLEARED_WORD_H
#define CLEARED_WORD_H

/* A number is written with some of its bits inverted, so that 0 stands for a NaN that arithmetic does not yield. If an
 * input has that NaN, the number counts as missing, and is computed again. */
#define MESSAGE_BITS 0x7fb5a5a5u
#define AS_MESSAGE(sum) (as_uint(sum) ^ MESSAGE_BITS)
#define AS_SUM(message) as_float((message) ^ MESSAGE_BITS)

/* Posts a number where none is yet. The number depends on its inputs, which have been loaded when the atomic operation
 * runs. If one of them had been overwritten, the word is no longer 0, and stays (waiting.h). */
static inline void post_word(volatile global uint *at, const uint message) {
    (void)atomic_cmpxchg(at, 0u, message);
}

#endif
