/* Arithmetic on 64-bit sizes. */
#ifndef CLN_ARITHMETIC_H
#define CLN_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t cln_larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline uint64_t cln_smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* b of 0 counts as 1. */
static inline uint64_t cln_divide_up(uint64_t a, uint64_t b) {
    const uint64_t divisor = cln_larger(b, 1);
    return a / divisor + (a % divisor != 0);
}

/* UINT64_MAX for a product past that. */
static inline uint64_t cln_product(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Likewise of a sum. */
static inline uint64_t cln_sum(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline bool cln_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

static inline uint64_t cln_power_of_two_at_most(uint64_t n) {
    uint64_t p = 1;
    while (p <= n / 2)
        p *= 2;
    return p;
}

/* 2^63 for more than that. */
static inline uint64_t cln_power_of_two_at_least(uint64_t n) {
    const uint64_t p = cln_power_of_two_at_most(n);
    return p < n && p <= UINT64_MAX / 2 ? p * 2 : p;
}

/* The largest power of two that divides n; 0 for 0. */
static inline uint64_t cln_lowest_bit(uint64_t n) {
    return n & (~n + 1);
}

static inline uint64_t cln_or_else(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

#endif
