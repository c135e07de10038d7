/* Numbers that one work-group posts to others of its launch, and the wait for them. The words hold 0 before the launch. */
#ifndef MESSAGE_H
#define MESSAGE_H

/* A message is a number with some of its bits inverted, so that 0, for no message, stands for a NaN that arithmetic does
 * not yield. If an input has that NaN, the number counts as missing, and is computed again. */
#define MESSAGE_BITS 0x7fb5a5a5u
#define AS_MESSAGE(sum) (as_uint(sum) ^ MESSAGE_BITS)
#define AS_SUM(message) as_float((message) ^ MESSAGE_BITS)

/* Looks for a message before a work-group computes the number itself: no wait is without bound. */
#define MOST_LOOKS 4096

#endif
