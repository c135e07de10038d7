/* Messages, by which the work-groups of a launch exchange numbers. A message is two words, mostly numbers, each with one
 * half of the launch's number. The host draws that number anew for each enqueue: 64 bits, so that whatever the memory held
 * before is no message, and nothing clears it. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "common/waiting.h"

/* Two words, each with a seal behind it: the word XOR one half of the launch's number. Each pair is checked by itself, as
 * the pairs may arrive one after the other. */
typedef uint4 message_t;

static inline message_t message_of(const uint2 words, const ulong launch) {
    const uint2 seal = words ^ as_uint2(launch);
    return (message_t)(words.x, seal.x, words.y, seal.y);
}

static inline bool has_arrived(const message_t message, const ulong launch) {
    return as_ulong(message.even ^ message.odd) == launch;
}

static inline uint2 words_of(const message_t message) {
    return message.even;
}

static inline float2 numbers_of(const message_t message) {
    return as_float2(words_of(message));
}

/* What a work-group has before it looks. */
static inline message_t no_message(const ulong launch) {
    return (message_t)(0, ~(uint)launch, 0, 0);
}

/* A message as it is in memory, not in a cache. */
static inline message_t message_in_memory(volatile global message_t *at) {
    volatile global uint *const words = (volatile global uint *)at;
    return (message_t)(atomic_or(words, 0u), atomic_or(words + 1, 0u), atomic_or(words + 2, 0u), atomic_or(words + 3, 0u));
}

/* Where a work-group posts messages. */
struct outbox {
    volatile global message_t *messages;
    ulong launch; /* its number */
    bool late;    /* the numbers are computed again: see waiting.h */
};

#define MESSAGES_OF_PAIR 1

/* Posts the i-th pair of numbers. Late ones are not posted if they have arrived meanwhile. */
static inline void post_pair(const struct outbox *outbox, const uint i, const float first, const float second) {
    volatile global message_t *const message = outbox->messages + i;
    if (outbox->late)
        device_fence();
    if (!outbox->late || !has_arrived(message_in_memory(message), outbox->launch))
        *message = message_of((uint2)(as_uint(first), as_uint(second)), outbox->launch);
}

/* Writes the numbers of the i-th message. */
static inline void put_numbers(local float *numbers, const uint i, const message_t message) {
    ((local float2 *)numbers)[i] = numbers_of(message);
}

#endif
