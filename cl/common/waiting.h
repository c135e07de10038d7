/* How work-groups of a launch wait for each other's numbers, and what an output in the place of an input asks of them.
 *
 * No work-group waits without bound: where a number is still missing, it computes the number again, from inputs that
 * another work-group is to overwrite if an output is in their place. Therefore
 *
 *     who overwrites inputs has loaded all numbers that depend on them from memory before, its own ones too, or has a
 *     device_fence() behind the posting of its own;
 *     who computed a number again looks for it once more, by an atomic operation, which no cache answers. If it is there
 *     now, the inputs may have changed, and that number counts. If not, nobody had begun to overwrite them. */
#ifndef WAITING_H
#define WAITING_H

#include "common/device_fence.h"

/* Looks for a message before a work-group computes its numbers itself. */
#define MOST_LOOKS 4096

#endif
