/* Messages in words that hold 0 before the launch, as clear_words.h has cleared them: a number each. They take fewer
 * registers than those of message.h, and a launch more. Group norm has them where registers are short. */
#ifndef CLEARED_MESSAGE_H
#define CLEARED_MESSAGE_H

#include "common/cache_line.h"
#include "common/clear_words.h"
#include "common/cleared_word.h"
#include "common/waiting.h"

typedef uint message_t;

static inline bool has_arrived(const message_t message, const ulong launch) {
    (void)launch;
    return message != 0;
}

static inline message_t no_message(const ulong launch) {
    (void)launch;
    return 0;
}

/* Where a work-group posts messages. */
struct outbox {
    volatile global message_t *messages;
    ulong launch; /* no use is made of it */
    bool late;    /* the numbers are computed again: see waiting.h */
};

#define MESSAGES_OF_PAIR 2

/* Posts the i-th pair of numbers. Late ones are not posted if they have arrived meanwhile. */
static inline void post_pair(const struct outbox *outbox, const uint i, const float first, const float second) {
    volatile global message_t *const messages = outbox->messages + 2 * i;
    if (outbox->late) {
        post_word(messages, AS_MESSAGE(first));
        post_word(messages + 1, AS_MESSAGE(second));
    } else {
        messages[0] = AS_MESSAGE(first);
        messages[1] = AS_MESSAGE(second);
    }
}

/* Writes the number of the i-th message. */
static inline void put_numbers(local float *numbers, const uint i, const message_t message) {
    numbers[i] = AS_SUM(message);
}

#define FIRST_MESSAGE CACHE_LINE_WORDS /* behind the number of drawn tickets */

/* Where tickets are drawn. */
struct desk {
    volatile global uint *drawn;
};

INLINED struct desk open_desk(volatile global message_t *words, const ulong launch, local uint *begin) {
    const struct desk desk = {words};
    (void)launch, (void)begin;
    return desk;
}

/* Draws a ticket, in the first work-item. */
static inline uint draw_ticket(const struct desk *desk, const uint most_looks) {
    (void)most_looks;
    return atomic_inc(desk->drawn);
}

static inline uint draw_first(const struct desk *desk) {
    return draw_ticket(desk, 0);
}

#endif
