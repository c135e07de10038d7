/* Numbers from codes and their scales: LANES work-items a row, SEGMENTS rows in a work-group at a time.
 *
 * Macros (src/spec.h): X_DTYPE, Q_DTYPE, SCALE_DTYPE, SCALING, GROUP_SIZE, GROUPS, VEC, LANES, SEGMENTS, STORES, ISA,
 * FP8_ISA, ELEMENT_ALIGNED. */

#include "quantize_call.h"

struct tensors {
    const global uchar *q;
    const global STORAGE(SCALE_DTYPE) * scale;
    global STORAGE(X_DTYPE) * x;
    ulong cols, q_stride, x_stride; /* elements */
    bool aligned;
};

static inline void dequantize_row(const struct tensors *t, const ulong row) {
    for (ulong column = get_local_id(0) % LANES * VEC; column < t->cols; column += LANES * VEC) {
        const ulong index = SCALING == SCALING_TENSOR ? 0
                            : SCALING == SCALING_ROW  ? row
                                                      : row * GROUPS + column / GROUP_SIZE;
        const floatv codes = WIDEN(Q_DTYPE)(load_bytes(t->q + row * t->q_stride + column, t->aligned, LOAD_LAST));
        STORE(X_DTYPE)(t->x + row * t->x_stride + column, codes * LOAD_SCALE(SCALE_DTYPE)(t->scale + index), t->aligned);
    }
}

#define PARAMETERS                                                                                             \
    const global uchar *q, const ulong q_at, const global STORAGE(SCALE_DTYPE) * scale, const ulong scale_at,  \
        global STORAGE(X_DTYPE) * x, const ulong x_at, const ulong work, const ulong rounds, const ulong cols, \
        const ulong q_stride, const ulong x_stride

#define TENSORS(aligned) \
    { q + q_at, scale + scale_at, x + x_at, cols, q_stride, x_stride, aligned }

/* This work-group's rows. */
static inline void dequantize_share(const struct tensors *t, const ulong work, const ulong rounds) {
    for (ulong turn = 0; turn < rounds; turn++) {
        const ulong row = (get_group_id(0) * rounds + turn) * SEGMENTS + get_local_id(0) / LANES;
        if (row < work)
            dequantize_row(t, row);
    }
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void dequantize(PARAMETERS) {
    const struct tensors tensors = TENSORS(!ELEMENT_ALIGNED);
    dequantize_share(&tensors, work, rounds);
}

#if !ELEMENT_ALIGNED
/* For any offsets. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void dequantize_any(PARAMETERS) {
    const struct tensors tensors = TENSORS(false);
    dequantize_share(&tensors, work, rounds);
}
#endif
