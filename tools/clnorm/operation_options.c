#include <string.h>

#include "operation.h"
#include "outer.h"

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

bool operation_has_weight_map(const struct operation *operation) {
    return NORMS & 1 << operation->kind || (operation->record && operation->record->weight_map);
}

bool operation_check_options(const struct operation *operation, const struct operation_options *options,
                             struct fault *fault) {
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
        {"--weight-offset", options->weight_offset_given, NORMS | NORM_BACKWARD_FROM_Y},
        {"--weight-rows", options->weight_rows != 0, NORMS | (record && record->weight_map ? ROWS : 0)},
        {"--weight-repeat", options->weight_repeat != 0, NORMS | (record && record->weight_map ? ROWS : 0)},
        {"--rope", options->rope, NORMS},
        {"--rope-dims", options->rope_dims != 0, NORMS},
        {"--rope-heads", options->rope_heads != 0, NORMS},
        {"--activation", options->activation, NORMS | CHANNELS},
        {"--groups", options->groups != 0, GROUP_NORM},
        {"--layout", options->layout, CHANNELS},
        {"--outer", options->outer, NORMS | NORM_BACKWARD_FROM_Y | (record && record->outer ? ROWS : 0)},
        {"--dropout", options->dropout_given, NORMS},
        {"--quantize", options->quantize, NORM | channels_forward},
        {"--quantize-group", options->quantize_group != 0, NORM},
        {"--quantize-scale", options->quantize_scale_given, NORM | channels_forward},
        {"--seed", options->seed, NORMS},
        {"--s-given", options->s_given, NORM_BACKWARD},
        {"--recompute-output", options->recompute_output, NORM_BACKWARD},
        {"--reduction", options->reduction, NORM_BACKWARD | NORM_BACKWARD_FROM_Y | FP8_NORM_BACKWARD},
        {"--slots", options->slots_given, NORM_BACKWARD | NORM_BACKWARD_FROM_Y | FP8_NORM_BACKWARD},
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

void operation_options_note(struct operation_options *options, const struct command_line *line) {
    options->eps_given = command_line_has(line, "eps");
    options->weight_offset_given = command_line_has(line, "weight-offset");
    options->slots_given = command_line_has(line, "slots");
    options->dropout_given = command_line_has(line, "dropout");
    options->quantize_scale_given = command_line_has(line, "quantize-scale");
}

void operation_options_rows(struct operation_options *options, struct poptOption rows[OPERATION_OPTIONS]) {
    const struct poptOption table[] = {
        {"groups", '\0', POPT_ARG_LONGLONG, &options->groups, 1, "group_norm: number of groups of channels", "G"},
        {"layout", '\0', POPT_ARG_STRING, &options->layout, 0,
         "group_norm: channels are x's second dimension, or its last (first)", "first|last"},
        {"outer", '\0', POPT_ARG_STRING, &options->outer, 0, OUTER_HELP, OUTER_WORD},
        {"group-size", '\0', POPT_ARG_LONGLONG, &options->group_size, 1,
         "Groups of G columns: normalised apart, or in quantize with a scale each (all)", "G"},
        {"gate", '\0', POPT_ARG_STRING, &options->gate, 0, "Multiply by silu(z) or sigmoid(z)", "silu|sigmoid"},
        {"batch-invariant", '\0', POPT_ARG_NONE, &options->batch_invariant, 0,
         "A row's bits do not depend on the number of rows", NULL},
        {"gate-first", '\0', POPT_ARG_NONE, &options->gate_first, 0, "--gate: multiply x before the norm", NULL},
        {"activation", '\0', POPT_ARG_STRING, &options->activation, 0, "Apply it to the norm's result (none)",
         "none|gelu|gelu_tanh|silu"},
        {"dropout", '\0', POPT_ARG_DOUBLE, &options->dropout, 0, "Set elements of x to 0 with this probability (0)", "P"},
        {"seed", '\0', POPT_ARG_STRING, &options->seed, 0, "--dropout: seed of the random numbers", "S"},
        {"s-given", '\0', POPT_ARG_NONE, &options->s_given, 0, "Backward: x is the forward's residual_out", NULL},
        {"weight-offset", '\0', POPT_ARG_DOUBLE, &options->weight_offset, 0, "Add F to every weight (0)", "F"},
        {"weight-repeat", '\0', POPT_ARG_LONGLONG, &options->weight_repeat, 1,
         "Norms: consecutive rows that share a row of a weight or bias of [R, columns] (1)", "N"},
        {"rope", '\0', POPT_ARG_STRING, &options->rope, 0, "Norms: rotate pairs of columns by rope_cos and rope_sin",
         "neox|interleaved"},
        {"rope-dims", '\0', POPT_ARG_LONGLONG, &options->rope_dims, 1,
         "--rope: rotate the first N columns of each group (twice rope_cos's columns)", "N"},
        {"rope-heads", '\0', POPT_ARG_LONGLONG, &options->rope_heads, 1,
         "--rope: consecutive rows that share a position (1)", "H"},
        {"outputs", '\0', POPT_ARG_STRING, &options->outputs, 0, "Write these optional outputs, instead of the usual ones",
         "ROLE,..."},
        {"recompute-output", '\0', POPT_ARG_NONE, &options->recompute_output, 0, "Backward: write y too", NULL},
        {"reduction", '\0', POPT_ARG_STRING, &options->reduction, 0, "Backward: how rows are summed (partial)",
         "partial|locked"},
        {"slots", '\0', POPT_ARG_LONGLONG, &options->slots, 1, "--reduction locked: sums that work-groups share (128)",
         "N"},
        {"quantize", '\0', POPT_ARG_STRING, &options->quantize, 0, "Norms: write y in 8 bits, with a scale for this part",
         "tensor|row|group"},
        {"quantize-group", '\0', POPT_ARG_LONGLONG, &options->quantize_group, 1, "--quantize group: columns of a group",
         "QB"},
        {"quantize-scale", '\0', POPT_ARG_DOUBLE, &options->quantize_scale, 0, "--quantize tensor: the scale (measured)",
         "F"},
        {"mode", '\0', POPT_ARG_STRING, &options->mode, 0, "Quantisation: the part that has a scale (tensor)",
         "tensor|row|group"},
        {"scale-dtype", '\0', POPT_ARG_STRING, &options->scale_dtype, 0, "Quantisation: dtype of the scales (f32)",
         "f32|bf16"},
        {"stochastic", '\0', POPT_ARG_STRING, &options->stochastic, 0, "Quantisation: round stochastically", "SEED"},
        {"transpose", '\0', POPT_ARG_NONE, &options->transpose, 0, "Quantisation: write q_t too", NULL},
        {"accuracy", '\0', POPT_ARG_STRING, &options->accuracy, 0, "fp8_rms_norm: compatible rounds as COAT does (fused)",
         "fused|compatible"},
        {"dtype", '\0', POPT_ARG_STRING, &options->dtype, 0,
         "Of the main output: f32, f16, bf16, f64 (x's); of an 8-bit one f8e4m3 or f8e5m2", "DTYPE"},
        {"config", '\0', POPT_ARG_STRING, &options->config, 0, "Force knobs: vec=8,lanes=128,...", "KNOB=N,..."},
    };
    _Static_assert(sizeof table / sizeof *table == OPERATION_OPTIONS, "every option has a row");
    memcpy(rows, table, sizeof table);
}
