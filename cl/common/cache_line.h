/* The 32-bit words of a cache line. In a workspace, cleared words by which work-groups draw their work fill a whole line,
 * so that they share none with the messages behind them. The host's code includes this file too. */
#ifndef CACHE_LINE_H
#define CACHE_LINE_H

#define CACHE_LINE_WORDS 16

#endif
