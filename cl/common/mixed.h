/* Weights in f64 with an x in another dtype, and weights in f32 with an x in f64: dtype.h's functions for OTHER, the
 * precision that the arithmetic does not have. An f64 input is rounded to f32 as it is read. Every other conversion is
 * exact, but for the rounding of an output. */
#ifndef MIXED_H
#define MIXED_H

#include "common/words.h"

#if MIXED

#if IS_DOUBLE(X_DTYPE)
#define OTHER f32
#define other_real float
#else
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define OTHER f64
#define other_real double
typedef VECTOR(double) packed_f64;
#endif

#if VEC == 1
#define TO_REALV JOIN(convert_, real)
#define TO_OTHERV JOIN(convert_, other_real)
#else
#define TO_REALV JOIN(JOIN(convert_, real), VEC)
#define TO_OTHERV JOIN(JOIN(convert_, other_real), VEC)
#endif

static inline PACKED(OTHER) LOAD(OTHER)(const global other_real *p, const bool aligned, const enum load_hint hint) {
    (void)hint;
    return aligned ? *(const global PACKED(OTHER) *)p : VLOAD(p);
}

static inline realv WIDEN(OTHER)(const PACKED(OTHER) v) {
    return TO_REALV(v);
}

static inline PACKED(OTHER) NARROW(OTHER)(const realv v) {
    return TO_OTHERV(v);
}

static inline void STORE(OTHER)(global other_real *p, const realv v, const bool aligned) {
    if (aligned)
        *(global PACKED(OTHER) *)p = TO_OTHERV(v);
    else
        VSTORE(TO_OTHERV(v), p);
}

static inline void STORE1(OTHER)(global other_real *p, const real v) {
    *p = (other_real)v;
}

static inline void PUT1(OTHER)(global other_real *p, const real v, const bool add) {
    *p = (other_real)(add ? *p + v : v);
}

#endif

#endif
