/* Weights that COLUMNS_OF_WEIGHT neighbouring columns share. They are f64 only with an x of f64. */
#ifndef SHARED_COLUMNS_H
#define SHARED_COLUMNS_H

#if VEC == 1

#define DEFINE_LOAD_SHARED(dtype, vector, places, packs)                                                \
    static inline PACKED(dtype)                                                                         \
        JOIN(load_shared_, dtype)(const global STORAGE(dtype) * base, const index_t v, const uint lead, \
                                  const bool aligned, const enum load_hint hint) {                      \
        (void)lead, (void)aligned, (void)hint;                                                          \
        return base[v / COLUMNS_OF_WEIGHT];                                                             \
    }

#else

#define LAST_WEIGHT ((index_t)(GROUP_SIZE - 1) / COLUMNS_OF_WEIGHT)

/* Weights of a vector, at most. */
#define WEIGHTS_OF_VECTOR (COLUMNS_OF_WEIGHT % VEC == 0 ? 1 : (VEC + COLUMNS_OF_WEIGHT - 2) / COLUMNS_OF_WEIGHT + 1)

/* Loads the weights of vector v's columns, each weight once. Elements past the segment's end are zeros. places: a vector of
 * integers of the elements' size. */
#define DEFINE_LOAD_SHARED(dtype, vector, places, packs)                                                                \
    static inline PACKED(dtype)                                                                                         \
        JOIN(load_shared_, dtype)(const global STORAGE(dtype) * base, const index_t v, const uint lead,                 \
                                  const bool aligned, const enum load_hint hint) {                                      \
        const places place = PLACES_OF_VECTOR;                                                                          \
        const index_t first = v * VEC / COLUMNS_OF_WEIGHT;                                                              \
        index_t end = (first + 1) * COLUMNS_OF_WEIGHT - v * VEC; /* of the columns that use a weight, counted from v */ \
        vector columns = base[first];                                                                                   \
        _Pragma("unroll") for (uint i = 1; i < WEIGHTS_OF_VECTOR; i++, end += COLUMNS_OF_WEIGHT) columns =              \
            select((vector)base[min(first + i, LAST_WEIGHT)], columns, place < (places)min(end, (index_t)VEC));         \
        if (TAIL != 0)                                                                                                  \
            columns = select((vector)0, columns, place < (places)min(GROUP_SIZE - v * VEC, (index_t)VEC));              \
        (void)lead, (void)aligned, (void)hint;                                                                          \
        return packs(columns);                                                                                          \
    }

#endif

#if IS_DOUBLE(X_DTYPE)
DEFINE_LOAD_SHARED(f64, realv, VECTOR(long), AS_IT_IS)
#else
DEFINE_LOAD_SHARED(f32, floatv, intv, AS_IT_IS)
DEFINE_LOAD_SHARED(f16, ushortv, VECTOR(short), AS_WORDS)
DEFINE_LOAD_SHARED(bf16, ushortv, VECTOR(short), AS_WORDS)
#endif

#endif
