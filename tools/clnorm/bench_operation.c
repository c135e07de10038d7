#include "bench_operation.h"

#include <stdio.h>
#include <string.h>

#include "closest.h"

/* The operations that are not row-wise. */
static const struct bench_operation own[] = {
    {.name = "layer_norm", .operation = "layer_norm", .inputs = {"x", "weight", "bias"}, .outputs = "y", .moved = 2},
    {.name = "rms_norm", .operation = "rms_norm", .inputs = {"x", "weight"}, .outputs = "y", .moved = 2},
    {.name = "rms_norm_gated",
     .operation = "rms_norm",
     .inputs = {"x", "weight", "z"},
     .outputs = "y",
     .gate = "silu",
     .moved = 3,
     .unfused = {"rms_norm", "gate"}},
    {.name = "layer_norm_backward",
     .operation = "layer_norm_backward",
     .inputs = {"x", "dy", "weight", "bias", "mean", "rstd"},
     .moved = 3},
    {.name = "rms_norm_backward", .operation = "rms_norm_backward", .inputs = {"x", "dy", "weight", "rstd"}, .moved = 3},
    {.name = "rms_norm_gated_backward",
     .operation = "rms_norm_backward",
     .inputs = {"x", "dy", "weight", "z", "rstd"},
     .gate = "silu",
     .moved = 5},
    {.name = "add_rms_norm",
     .operation = "rms_norm",
     .inputs = {"x", "weight", "residual"},
     .outputs = "y,residual_out",
     .moved = 4,
     .unfused = {"add", "rms_norm"}},
    {.name = "add_rms_norm_backward",
     .operation = "rms_norm_backward",
     .inputs = {"x", "dy", "weight", "rstd", "dresidual_out"},
     .outputs = "dresidual,dweight",
     .s_given = 1,
     .moved = 4,
     .unfused = {"rms_norm_backward", "add"}},
    {.name = "dropout_rms_norm",
     .operation = "rms_norm",
     .inputs = {"x", "weight"},
     .outputs = "y",
     .dropout = 0.1,
     .moved = 2,
     .unfused = {"dropout", "rms_norm"}},
    {.name = "norm_chain", /* residual + dropout(x), norm, gelu */
     .operation = "rms_norm",
     .inputs = {"x", "weight", "residual"},
     .outputs = "y,residual_out",
     .dropout = 0.1,
     .activation = "gelu",
     .moved = 4,
     .unfused = {"dropout", "add", "rms_norm", "gelu"}},
    {.name = "rms_norm_quantized", /* a scale a row */
     .operation = "rms_norm",
     .inputs = {"x", "weight"},
     .outputs = "y",
     .quantize = "row"},
    {.name = "rms_norm_rope", /* QK-norm */
     .operation = "rms_norm",
     .inputs = {"x", "weight", "rope_cos", "rope_sin", "position"},
     .outputs = "y",
     .rope = "neox",
     .moved = 2},
    {.name = "rms_norm_rope_backward",
     .operation = "rms_norm_backward",
     .inputs = {"x", "dy", "weight", "rstd", "rope_cos", "rope_sin", "position"},
     .rope = "neox",
     .moved = 3},
    {.name = "quantize", .operation = "quantize", .inputs = {"x"}},
    {.name = "quantize_rows", .operation = "quantize", .inputs = {"x"}, .mode = "row"},
    {.name = "quantize_groups_16", .operation = "quantize", .inputs = {"x"}, .mode = "group", .group_size = 16},
    {.name = "quantize_groups_128", .operation = "quantize", .inputs = {"x"}, .mode = "group", .group_size = 128},
    {.name = "fp8_rms_norm", .operation = "fp8_rms_norm", .inputs = {"x", "x_scale", "weight"}, .outputs = "y,y_t"},
    {.name = "fp8_rms_norm_backward",
     .operation = "fp8_rms_norm_backward",
     .inputs = {"x", "x_scale", "weight", "rstd", "dy"}},
    {.name = "group_norm",
     .operation = "group_norm",
     .inputs = {"x", "weight", "bias"},
     .outputs = "y",
     .activation = "silu",
     .moved = 2},
    {.name = "group_norm_last",
     .operation = "group_norm",
     .inputs = {"x", "weight", "bias"},
     .outputs = "y",
     .activation = "silu",
     .layout = "last",
     .moved = 2},
    {.name = "group_norm_quantized", /* a scale for the tensor */
     .operation = "group_norm",
     .inputs = {"x", "weight", "bias"},
     .outputs = "y",
     .activation = "silu",
     .quantize = "tensor"},
    {.name = "group_norm_backward",
     .operation = "group_norm_backward",
     .inputs = {"x", "dy", "weight", "bias", "mean", "rstd"},
     .activation = "silu",
     .moved = 3},
    {.name = "group_norm_last_backward",
     .operation = "group_norm_backward",
     .inputs = {"x", "dy", "weight", "bias", "mean", "rstd"},
     .activation = "silu",
     .layout = "last",
     .moved = 3},
};
enum { OWN = sizeof own / sizeof *own };

/* "gelu_backward" and "tanh": "gelu_tanh_backward". */
static const char *name_with(const char *name, const char *word) {
    static const char backward[] = "_backward";
    const size_t length = strlen(name), end = sizeof backward - 1;
    const bool is_backward = length > end && !strcmp(name + length - end, backward);
    const int stem = (int)(length - (is_backward ? end : 0));
    static char names[BENCH_MOST][48];
    static int count;
    char *const text = names[count++];
    (void)snprintf(text, sizeof names[0], "%.*s_%s%s", stem, name, word, is_backward ? backward : "");
    return text;
}

/* It has every input. Its least traffic is the tensors of x's shape. */
static struct bench_operation row_of(const struct operation *operation) {
    struct bench_operation made = {.name = operation->name, .operation = operation->name};
    int inputs = 0;
    for (int i = 0; operation->roles[i].name; i++) {
        made.moved += operation->roles[i].shape == SHAPE_X;
        if (!operation->roles[i].output)
            made.inputs[inputs++] = operation->roles[i].name;
    }
    return made;
}

/* Adds the operation, and a row for each word of its options that is not the default. */
static int add_rows(struct bench_operation *rows, const struct operation *operation) {
    int count = 0;
    rows[count++] = row_of(operation);
    for (int i = 0; i < CLN_CHOICES && operation->record->choices[i]; i++) {
        const struct cln_enum_option *const choice = operation->record->choices[i];
        for (int k = 0; k < CLN_WORDS && choice->words[k].word; k++) {
            if (choice->words[k].value == choice_initial(operation->record, choice))
                continue;
            rows[count] = row_of(operation);
            rows[count].name = name_with(operation->name, choice->words[k].word);
            rows[count].choice = choice->option;
            rows[count++].word = choice->words[k].word;
        }
    }
    return count;
}

const struct bench_operation *bench_operations(void) {
    static struct bench_operation all[BENCH_MOST + 1];
    if (all[0].name)
        return all;
    int count = OWN;
    memcpy(all, own, sizeof own);
    for (const struct operation *operation = operation_list(); operation->name; operation++)
        if (operation->kind == OPERATION_ROWS)
            count += add_rows(&all[count], operation);
    return all;
}

bool bench_find_operation(const char *word, const struct bench_operation **operation, struct fault *fault) {
    struct closest closest = closest_to(word);
    for (const struct bench_operation *row = bench_operations(); row->name; row++) {
        if (closest_is(word, strlen(word), row->name)) {
            *operation = row;
            return true;
        }
        closest_offer(&closest, row->name);
    }
    char text[CLOSEST_TEXT];
    return fault_set(fault, EXIT_REQUEST, "'%s' is not an operation; %s", word, closest_text(&closest, text));
}
