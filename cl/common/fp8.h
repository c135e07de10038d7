/* The 8-bit element types of the OCP specification "OFP8" (2023), as dtype.h describes them: f8e4m3 has 1 sign, 4
 * exponent and 3 mantissa bits, no infinities, one NaN (s1111111) and ±448 at most; f8e5m2 is the upper half of a binary16
 * with ±57344 at most.
 *
 * Stores round to nearest even and saturate: what is too large, infinities too, becomes ± the largest number. Every NaN
 * becomes 0x7f, as NVIDIA's conversions make it. FP8_ISA (src/program/spec.h) says whether NVIDIA's conversions are used;
 * the bits are the same. */
#ifndef FP8_H
#define FP8_H

#include "common/dtype.h"
#include "common/philox.h"

#define storage_f8e4m3 uchar
#define storage_f8e5m2 uchar

/* Vectors of bytes as words, so that one access moves a vector. */
#if VEC == 1
#define BYTES uchar
#elif VEC == 2
#define BYTES ushort
#elif VEC == 4
#define BYTES uint
#elif VEC == 8
#define BYTES uint2
#else
#define BYTES uint4
#endif
#define AS_BYTES JOIN(as_, BYTES)
#define AS_UCHARV JOIN(as_, VECTOR(uchar))
#define TO_UCHARV JOIN(convert_, VECTOR(uchar))

typedef VECTOR(uchar) ucharv;
typedef BYTES packed_f8e4m3;
typedef BYTES packed_f8e5m2;

struct __attribute__((packed)) bytes_anywhere {
    ucharv vector;
};

static inline BYTES load_bytes(const global uchar *p, const bool aligned, const enum load_hint hint) {
#if ISA == ISA_PTX && VEC == 16
    if (aligned && hint == LOAD_FIRST)
        return load16_first(p);
    if (aligned && hint == LOAD_LAST)
        return load16_last(p);
#else
    (void)hint;
#endif
    if (ON_CPU)
        return AS_BYTES(((const global struct bytes_anywhere *)p)->vector);
    return aligned ? *(const global BYTES *)p : AS_BYTES(VLOAD(p));
}

static inline void store_bytes(global uchar *p, const BYTES v, const bool aligned) {
    if (aligned)
        STORE_ALIGNED(v, (global BYTES *)p);
    else if (ON_CPU)
        ((global struct bytes_anywhere *)p)->vector = AS_UCHARV(v);
    else
        VSTORE(AS_UCHARV(v), p);
}

/* ------------------------------------------------------------------------------------------------ by integers and floats
 */

/* The facts of a format, constant wherever it is used. */
struct fp8 {
    uint mantissa; /* bits */
    uint bias;     /* of the exponent */
    uint most;     /* the code of the largest number */
    uint infinity; /* its code, or 0xff where there is none */
    float largest;
};

constant const struct fp8 fp8_f8e4m3 = {3, 7, 0x7e, 0xff, 448.0f};
constant const struct fp8 fp8_f8e5m2 = {2, 15, 0x7b, 0x7c, 57344.0f};

#define FP8_LARGEST(dtype) JOIN(fp8_, dtype).largest

/* A denormal is decoded as if it were normal, doubled, and reduced by the smallest normal number. No intermediate result
 * is a denormal float, which a device may take for 0. */
static inline floatv decode(const uintv code, const struct fp8 format) {
    const uint shift = 23 - format.mantissa;
    const uint rebias = (127 - format.bias) << 23;
    const uint smallest = rebias + (1u << 23);
    const uintv magnitude = code & 0x7fu;
    const uintv fields = magnitude << shift;
    const floatv normal = AS_FLOATV(fields + rebias);
    const floatv below = normal * 2 - as_float(smallest);
    const uintv special = choose(magnitude == format.infinity, (uintv)0x7f800000u, (uintv)0x7fc00000u);
    const floatv number = select(normal, below, fields < (1u << 23));
    return AS_FLOATV(choose(magnitude > format.most, special, AS_UINTV(number)) | (code & 0x80u) << 24);
}

/* The bits of the magnitude, at most those of the largest number; for infinities and NaNs too. */
static inline uintv saturated(const floatv v, const struct fp8 format) {
    return min(AS_UINTV(v) & 0x7fffffffu, (uintv)as_uint(format.largest));
}

/* Adds the sign to a magnitude's code, or makes the code NaN. */
static inline uintv signed_code(const floatv v, const uintv code) {
    return choose(v != v, (uintv)0x7fu, code | (AS_UINTV(v) >> 24 & 0x80u));
}

/* Rounds by adding a float whose last bit has the value of the format's last bit at v: a float for the power of two at
 * or below v, or for the smallest normal number. The lowest byte of the sum is then the code without its exponent, which is
 * added. The conversion to bytes drops the other bits. */
static inline uintv encode(const floatv v, const struct fp8 format) {
    const uint shift = 23 - format.mantissa;
    const uint smallest = (128 - format.bias) << 23;
    const uint unit = (shift << 23) + (-(smallest >> shift) & 0xffu);
    const uintv magnitude = saturated(v, format);
    const uintv power = max(magnitude & 0x7f800000u, (uintv)smallest);
    const uintv sum = AS_UINTV(AS_FLOATV(magnitude) + AS_FLOATV(power + unit));
    return signed_code(v, sum + (power >> shift));
}

/* Rounds up with a probability of (v − code below) / step, for a uniform random. The probability is exact above the
 * smallest normal number, and exact to 2^-20 below it. */
static inline uintv encode_stochastic(const floatv v, const uintv random, const struct fp8 format) {
    const uint shift = 23 - format.mantissa;
    const uintv noise = random >> (32 - shift);
    const float steps = as_float((126 + format.bias + 23) << 23); /* 1 / step, in fixed point of shift bits */
    const uintv magnitude = saturated(v, format);
    const uintv normal = ((magnitude + noise) >> shift) - ((127 - format.bias) << format.mantissa);
    const uintv below = (TO_UINTV(AS_FLOATV(min(magnitude, (uintv)((128 - format.bias) << 23))) * steps) + noise) >> shift;
    return signed_code(v, choose(magnitude < (128 - format.bias) << 23, below, normal));
}

/* ------------------------------------------------------------------------------------------------------- by instructions
 */

#if FP8_ISA == ISA_PTX && VEC >= 2
/* Pairs of codes, as the instructions take them. */
union pairs {
    BYTES bytes;
    ushort pair[VEC / 2];
};

#define DEFINE_CONVERSIONS(dtype, instruction)                                                                            \
    static inline floatv JOIN(widen_, dtype)(const BYTES v) {                                                             \
        floatv wide;                                                                                                      \
        const union pairs pairs = {v};                                                                                    \
        float *to = (float *)&wide;                                                                                       \
        _Pragma("unroll") for (uint i = 0; i < VEC / 2; i++) __asm__(                                                     \
            "{ .reg .b32 pair; .reg .b16 low, high; cvt.rn.f16x2." instruction " pair, %2; "                              \
            "mov.b32 {low, high}, pair; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }" : "=f"(to[2 * i]),                  \
            "=f"(to[2 * i + 1]) : "h"(pairs.pair[i]));                                                                    \
        return wide;                                                                                                      \
    }                                                                                                                     \
    static inline BYTES JOIN(narrow_, dtype)(const floatv v) {                                                            \
        union pairs pairs;                                                                                                \
        const float *from = (const float *)&v;                                                                            \
        _Pragma("unroll") for (uint i = 0; i < VEC / 2; i++) __asm__("cvt.rn.satfinite." instruction ".f32 %0, %1, %2;" : \
                                                                     "=h"(pairs.pair[i]) : "f"(from[2 * i + 1]),          \
                                                                     "f"(from[2 * i]));                                   \
        return pairs.bytes;                                                                                               \
    }
DEFINE_CONVERSIONS(f8e4m3, "e4m3x2")
DEFINE_CONVERSIONS(f8e5m2, "e5m2x2")
#else
#define DEFINE_CONVERSIONS(dtype)                                 \
    static inline floatv JOIN(widen_, dtype)(const BYTES v) {     \
        return decode(TO_UINTV(AS_UCHARV(v)), JOIN(fp8_, dtype)); \
    }                                                             \
    static inline BYTES JOIN(narrow_, dtype)(const floatv v) {    \
        return AS_BYTES(TO_UCHARV(encode(v, JOIN(fp8_, dtype)))); \
    }
DEFINE_CONVERSIONS(f8e4m3)
DEFINE_CONVERSIONS(f8e5m2)
#endif

#define DEFINE_ACCESSES(dtype)                                                                                     \
    static inline BYTES JOIN(load_, dtype)(const global uchar *p, const bool aligned, const enum load_hint hint) { \
        return load_bytes(p, aligned, hint);                                                                       \
    }                                                                                                              \
    static inline void JOIN(store_, dtype)(global uchar * p, const floatv v, const bool aligned) {                 \
        store_bytes(p, NARROW(dtype)(v), aligned);                                                                 \
    }
DEFINE_ACCESSES(f8e4m3)
DEFINE_ACCESSES(f8e5m2)

#endif
