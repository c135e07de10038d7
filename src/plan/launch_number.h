/* The numbers by which work-groups tell the messages of their launch from what the workspace held before: see
 * cl/common/message.h. */
#ifndef CLN_LAUNCH_NUMBER_H
#define CLN_LAUNCH_NUMBER_H

#include <stdint.h>

/* The number of an enqueue's launches. Among 2^32 enqueues of a process, neither half of it is the same twice. */
uint64_t cln_next_launch_number(void);

/* For tests: the next number is that after `first` others. Returns how many there were. */
uint64_t cln_launch_numbers_from(uint64_t first);

#endif
