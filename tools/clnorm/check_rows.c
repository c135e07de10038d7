/* Cases of the row-wise operations. Each meets every shape. */
#include "check_case.h"

static const struct row_shape {
    uint64_t rows, cols;
    enum pattern pattern;
    clnorm_dtype input, output;
    int word; /* which word of each option of the record is given, from 1 on; 0: none */
    char *config;
    long long group_size; /* of operations that have it */
} shapes[] = {
    {5, 64, PATTERN_CENTRED, CLNORM_F32, CLNORM_F32, 0, NULL, 0},
    {0, 64, PATTERN_CENTRED, CLNORM_F32, CLNORM_F32, 2, NULL, 0},
    {3, 1, PATTERN_CENTRED, CLNORM_F16, CLNORM_F32, 2, NULL, 0},
    {9, 1000, PATTERN_SPECIAL, CLNORM_BF16, CLNORM_BF16, 1, NULL, 8},
    {7, 4099, PATTERN_SPECIAL, CLNORM_F32, CLNORM_F16, 2, NULL, 0},
    {2, 65537, PATTERN_FAR, CLNORM_F32, CLNORM_BF16, 0, NULL, 0},
    {3, 129, PATTERN_CENTRED, CLNORM_F64, CLNORM_F64, 1, NULL, 0},
    {5, 512, PATTERN_CENTRED, CLNORM_BF16, CLNORM_F32, 2, "lanes=64,vec=4", 0},
    {3, 1000, PATTERN_CENTRED, CLNORM_F32, CLNORM_BF16, 2, "chunks=24", 0},
    {5, 64, PATTERN_CENTRED, CLNORM_F32, CLNORM_F32, 0, "isa=portable", 0}, /* the first one where that is the default */
    {5, 512, PATTERN_CENTRED, CLNORM_BF16, CLNORM_BF16, 2, "isa=ptx", 128},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The row-wise operation of an index. */
static const struct operation *operation_at(int i) {
    const struct operation *operation = operation_list();
    for (; operation->name; operation++)
        if (operation->kind == OPERATION_ROWS && i-- == 0)
            break;
    return operation;
}

int check_rows_count(void) {
    return ROW_OPERATIONS * SHAPES;
}

/* Gives an option its word number `word`, counted from 1 and modulo the number of its words. */
static void choose(struct check_case *made, const struct cln_enum_option *choice, int word) {
    int count = 0;
    while (count < CLN_WORDS && choice->words[count].word)
        count++;
    if (word && count)
        made->options.choices.word[choice_index(choice->option)] = (char *)choice->words[(word - 1) % count].word;
}

/* Every other shape has the optional inputs. */
struct check_case check_rows_case(int i) {
    const int index = i / ROW_OPERATIONS;
    const struct row_shape *const shape = &shapes[index];
    const struct operation *const operation = operation_at(i % ROW_OPERATIONS);
    struct check_case made = {.operation = operation->name,
                              .rows = shape->rows,
                              .cols = shape->cols,
                              .pattern = shape->pattern,
                              .options = OPERATION_OPTIONS_INIT};
    for (const struct role *role = operation->roles; !role->output; role++)
        if (!role->optional || index % 2)
            check_case_add_input(&made, role->name,
                                 role_is_statistics(role->shape) ? statistics_dtype(shape->input) : shape->input);
    for (int k = 0; k < CLN_CHOICES && operation->record->choices[k]; k++)
        choose(&made, operation->record->choices[k], shape->word);
    made.options.dtype = (char *)clnorm_dtype_name(shape->output);
    made.options.config = shape->config;
    made.options.group_size = operation->record->group_size ? shape->group_size : 0;
    return made;
}
