/* Allocations that a test can make fail. */
#ifndef TEST_FAULT_ALLOCATIONS_H
#define TEST_FAULT_ALLOCATIONS_H

#include <stdbool.h>

extern struct fault_allocations {
    long to_failure; /* allocations up to the one that fails; 0: none does */
    bool failed;     /* one has */
} fault_allocations;

#endif
