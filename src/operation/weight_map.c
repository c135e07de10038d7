#include "operation/weight_map.h"

struct cln_arguments cln_weight_map_arguments(uint64_t rows, uint64_t repeat, uint64_t weight_stride,
                                              uint64_t bias_stride) {
    return (struct cln_arguments){{
        cln_integer("weight_rows", rows),
        cln_integer("weight_repeat", repeat),
        cln_integer("weight_stride", weight_stride),
        cln_integer("bias_stride", bias_stride),
    }};
}
