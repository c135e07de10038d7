/* The output of group norm's y: rounded, as 8-bit codes, or, in the pass that measures their scale, its largest
 * magnitude alone. */
#ifndef GROUP_NORM_Y_H
#define GROUP_NORM_Y_H

#include "norm/group_norm.h"

#if IS_FP8(Y_DTYPE)

#include "quantize/magnitude.h"
#include "quantize/quantize.h"

#if MEASURES

/* The largest |y| that a lane has seen in a piece of the work. */
struct output {
    largest magnitudes;
};

#define OUTPUT_OF(call, sample) \
    { 0 }

static inline void measure_part(struct output *output, const realv y, const ulong count) {
    output->magnitudes = larger_of(output->magnitudes, count == VEC ? y : keep_first(y, (uint)count));
}

#define PUT_Y(call, sample, place, value, count, output) measure_part(output, value, count)

/* Writes the largest |y| of a piece. Every work-item of the work-group calls it; puts: whether this work-item writes. */
INLINED void put_magnitude(global float *magnitude, const struct output *output, const bool puts, struct lanes *lanes) {
    const float amax = largest_over_lanes(lanes, largest_of(output->magnitudes));
    if (puts)
        *magnitude = amax;
}

#else

/* The scale of a sample's y. */
struct output {
    float scale;
};

#if PRESENT(SCALE_DTYPE)
#define OUTPUT_OF(call, sample) \
    { LOAD1(SCALE_DTYPE)((call)->y_scale + (SCALING == SCALING_ROW ? (sample) : 0)) }
#else
#define OUTPUT_OF(call, sample) \
    { (call)->y_given }
#endif

static inline void store_codes(global uchar *p, const realv y, const ulong count, const float scale, const bool aligned) {
    const BYTES codes = DIVIDED(Y_DTYPE)(y, scale);
    if (count == VEC) {
        store_bytes(p, codes, aligned);
        return;
    }
    uchar code[VEC];
    VSTORE(AS_UCHARV(codes), code);
    for (uint i = 0; i < count; i++)
        p[i] = code[i];
}

#define PUT_Y(call, sample, place, value, count, output) \
    store_codes((call)->y + (sample) * (call)->y_stride + (place), value, count, (output)->scale, (call)->aligned)

#endif

#else

struct output {
    char unused; /* OpenCL C has no empty struct */
};

#define OUTPUT_OF(call, sample) \
    { 0 }
#define PUT_Y(call, sample, place, value, count, output)                                                       \
    {                                                                                                          \
        STORE_PART(Y_DTYPE)((call)->y + (sample) * (call)->y_stride + (place), value, count, (call)->aligned); \
        (void)(output);                                                                                        \
    }

#endif

#endif
