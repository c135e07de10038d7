#include "operation.h"

enum {
    NORM = 1 << OPERATION_NORM,
    NORM_BACKWARD = 1 << OPERATION_NORM_BACKWARD,
    NORM_BACKWARD_FROM_Y = 1 << OPERATION_NORM_BACKWARD_FROM_Y,
    SOFTMAX = 1 << OPERATION_SOFTMAX,
    GELU = 1 << OPERATION_GELU,
    QUANTIZE = 1 << OPERATION_QUANTIZE,
    DEQUANTIZE = 1 << OPERATION_DEQUANTIZE,
    FP8_NORM = 1 << OPERATION_FP8_NORM,
    FP8_NORM_BACKWARD = 1 << OPERATION_FP8_NORM_BACKWARD,
    NORMS = NORM | NORM_BACKWARD
};

bool operation_check_options(const struct operation *operation, const struct operation_options *options,
                             struct fault *fault) {
    const struct operation_options usual = OPERATION_OPTIONS_INIT;
    const struct {
        const char *name;
        bool given;
        int kinds; /* of operations that have it */
    } table[] = {
        {"--eps", options->eps != usual.eps, NORMS | FP8_NORM},
        {"--group-size", options->group_size != 0,
         NORMS | NORM_BACKWARD_FROM_Y | QUANTIZE | DEQUANTIZE | FP8_NORM | FP8_NORM_BACKWARD},
        {"--gate", options->gate, NORMS},
        {"--gate-first", options->gate_first, NORMS},
        {"--weight-offset", options->weight_offset != 0, NORMS | NORM_BACKWARD_FROM_Y},
        {"--activation", options->activation, NORMS},
        {"--dropout", options->dropout != 0, NORMS},
        {"--quantize", options->quantize, NORM},
        {"--quantize-group", options->quantize_group != 0, NORM},
        {"--quantize-scale", options->quantize_scale != 0, NORM},
        {"--seed", options->seed >= 0, NORMS},
        {"--s-given", options->s_given, NORM_BACKWARD},
        {"--recompute-output", options->recompute_output, NORM_BACKWARD},
        {"--reduction", options->reduction, NORM_BACKWARD | NORM_BACKWARD_FROM_Y | FP8_NORM_BACKWARD},
        {"--slots", options->slots != usual.slots, NORM_BACKWARD | NORM_BACKWARD_FROM_Y | FP8_NORM_BACKWARD},
        {"--approximate", options->approximate, GELU},
        {"--mode", options->mode, QUANTIZE | DEQUANTIZE},
        {"--scale-dtype", options->scale_dtype, QUANTIZE | FP8_NORM},
        {"--stochastic", options->stochastic >= 0, QUANTIZE},
        {"--transpose", options->transpose, QUANTIZE},
        {"--accuracy", options->accuracy, FP8_NORM},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].given && !(table[i].kinds & 1 << operation->kind))
            return fault_set(fault, EXIT_REQUEST, "%s: %s has no such option", table[i].name, operation->name);
    return true;
}
