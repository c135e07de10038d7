/* Sizes of an exchange: see exchange.h and tickets.h. The host's code includes this file too. */
#ifndef EXCHANGE_SIZES_H
#define EXCHANGE_SIZES_H

/* The messages before the others, where tickets are drawn: where their counter begins, and the counter. */
#define HEADER_MESSAGES 2

/* Words of local memory: the ticket, whether a message is missing, and the desk's two. */
#define EXCHANGE_BOARD 4

#endif
