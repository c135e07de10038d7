#include "plan/launch_number.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the numbers below */
static uint64_t count;
static uint64_t start; /* of this process, so that other contents of memory hardly look like its numbers; 0: none yet */

/* The finaliser of splitmix64: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators". */
static uint64_t mixed(uint64_t n) {
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

static uint64_t draw_start(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return mixed((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) ^ mixed((uintptr_t)&now) ^ 1;
}

/* An odd factor and an addend permute the 2^32 values of each half. */
static uint64_t number_of(uint64_t n) {
    const uint32_t low = (uint32_t)n * 0x9e3779b1U + (uint32_t)start;
    const uint32_t high = ((uint32_t)n ^ (uint32_t)(n >> 32)) * 0x85ebca6bU + (uint32_t)(start >> 32);
    return (uint64_t)high << 32 | low;
}

uint64_t cln_next_launch_number(void) {
    pthread_mutex_lock(&lock);
    if (!start)
        start = draw_start();
    const uint64_t number = number_of(count++);
    pthread_mutex_unlock(&lock);
    return number;
}

uint64_t cln_launch_numbers_from(uint64_t first) {
    pthread_mutex_lock(&lock);
    const uint64_t before = count;
    count = first;
    pthread_mutex_unlock(&lock);
    return before;
}
