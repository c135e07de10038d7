#include "operation.h"

enum {
    NORM = 1 << OPERATION_NORM,
    NORM_BACKWARD = 1 << OPERATION_NORM_BACKWARD,
    NORM_BACKWARD_FROM_Y = 1 << OPERATION_NORM_BACKWARD_FROM_Y,
    ROWS = 1 << OPERATION_ROWS,
    QUANTIZE = 1 << OPERATION_QUANTIZE,
    DEQUANTIZE = 1 << OPERATION_DEQUANTIZE,
    FP8_NORM = 1 << OPERATION_FP8_NORM,
    FP8_NORM_BACKWARD = 1 << OPERATION_FP8_NORM_BACKWARD,
    GROUP_NORM = 1 << OPERATION_GROUP_NORM,
    INSTANCE_NORM = 1 << OPERATION_INSTANCE_NORM,
    NORMS = NORM | NORM_BACKWARD,
    CHANNELS = GROUP_NORM | INSTANCE_NORM
};

bool operation_has_channels(const struct operation *operation) {
    return CHANNELS & 1 << operation->kind;
}

bool operation_check_options(const struct operation *operation, const struct operation_options *options,
                             struct fault *fault) {
    const struct operation_options usual = OPERATION_OPTIONS_INIT;
    const struct cln_operation *const record = operation->record;
    const int channels_forward = operation_role(operation, "y_scale") >= 0 ? CHANNELS : 0;
    const struct {
        const char *name;
        bool given;
        int kinds; /* of operations that have it */
    } table[] = {
        {"--eps", options->eps_given, NORMS | FP8_NORM | CHANNELS | (record && record->eps ? ROWS : 0)},
        {"--group-size", options->group_size != 0,
         NORMS | NORM_BACKWARD_FROM_Y | QUANTIZE | DEQUANTIZE | FP8_NORM | FP8_NORM_BACKWARD |
             (record && record->group_size ? ROWS : 0)},
        {"--gate", options->gate, NORMS},
        {"--gate-first", options->gate_first, NORMS},
        {"--batch-invariant", options->batch_invariant, NORMS | (record && record->batch_invariant ? ROWS : 0)},
        {"--weight-offset", options->weight_offset != 0, NORMS | NORM_BACKWARD_FROM_Y},
        {"--weight-rows", options->weight_rows != 0, NORMS},
        {"--weight-repeat", options->weight_repeat != 0, NORMS},
        {"--rope", options->rope, NORMS},
        {"--rope-dims", options->rope_dims != 0, NORMS},
        {"--rope-heads", options->rope_heads != 0, NORMS},
        {"--activation", options->activation, NORMS | CHANNELS},
        {"--groups", options->groups != 0, GROUP_NORM},
        {"--layout", options->layout, CHANNELS},
        {"--outer", options->outer, NORMS | NORM_BACKWARD_FROM_Y | (record && record->outer ? ROWS : 0)},
        {"--dropout", options->dropout != 0, NORMS},
        {"--quantize", options->quantize, NORM | channels_forward},
        {"--quantize-group", options->quantize_group != 0, NORM},
        {"--quantize-scale", options->quantize_scale != 0, NORM | channels_forward},
        {"--seed", options->seed, NORMS},
        {"--s-given", options->s_given, NORM_BACKWARD},
        {"--recompute-output", options->recompute_output, NORM_BACKWARD},
        {"--reduction", options->reduction, NORM_BACKWARD | NORM_BACKWARD_FROM_Y | FP8_NORM_BACKWARD},
        {"--slots", options->slots != usual.slots, NORM_BACKWARD | NORM_BACKWARD_FROM_Y | FP8_NORM_BACKWARD},
        {"--mode", options->mode, QUANTIZE | DEQUANTIZE},
        {"--scale-dtype", options->scale_dtype, QUANTIZE | FP8_NORM},
        {"--stochastic", options->stochastic, QUANTIZE},
        {"--transpose", options->transpose, QUANTIZE},
        {"--accuracy", options->accuracy, FP8_NORM},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].given && !(table[i].kinds & 1 << operation->kind))
            return fault_set(fault, EXIT_REQUEST, "%s: %s has no such option", table[i].name, operation->name);
    for (int i = 0; choice_at(i); i++)
        if (options->choices.word[i] && !choice_of(operation->record, choice_at(i)->option))
            return fault_set(fault, EXIT_REQUEST, "--%s: %s has no such option", choice_at(i)->option, operation->name);
    return true;
}
