/* Makes a row-wise operation of the tool from the record of the library: its rules of tensors and statistics, and its
 * options. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "operation.h"
#include "options.h"
#include "reference/reference.h"

/* ------------------------------------------------------------------------------------------------------------- roles */

static size_t argument_of(enum cln_role role) {
    static const clnorm_args args;
    return (size_t)((const char *)cln_args_buffer(&args, role) - (const char *)&args);
}

static bool reads(const struct cln_operation *record, const char *name) {
    for (unsigned i = 0; i < record->tensor_count; i++)
        if (!record->tensors[i].output && !strcmp(record->tensors[i].name, name))
            return true;
    return false;
}

/* The input with which an output is written by default: weight for the gradient "dweight", the first input for others.
 * NULL: the output is written on request only. */
static const char *input_of(const struct cln_operation *record, const struct cln_tensor_rule *rule) {
    const char *const name = rule->name;
    if (*name == 'd' && reads(record, name + 1))
        return name + 1;
    return rule->none == CLN_ABSENT ? NULL : record->tensors[0].name;
}

static struct role role_of(const struct cln_operation *record, const struct cln_tensor_rule *rule) {
    return (struct role){
        .name = rule->name,
        .output = rule->output,
        .optional = rule->none == CLN_ABSENT,
        .shape = rule->extent == CLN_COLUMNS ? SHAPE_COLS : SHAPE_X,
        .argument = argument_of(rule->role),
        .with = rule->output ? input_of(record, rule) : NULL,
    };
}

static enum role_shape shape_of_statistic(const struct cln_statistic_rule *rule) {
    return rule->numbers == 3 ? SHAPE_MOMENTS : rule->numbers == 2 ? SHAPE_SUMS : SHAPE_STATISTICS;
}

static struct role role_of_statistic(const struct cln_operation *record, const struct cln_statistic_rule *rule) {
    return (struct role){
        .name = rule->name,
        .output = rule->output,
        .optional = rule->given != 0,
        .shape = shape_of_statistic(rule),
        .argument = argument_of(rule->role),
        .with = rule->output ? record->tensors[0].name : NULL,
    };
}

/* Writes the roles of the outputs, or of the inputs, and returns their number. */
static int add_roles(const struct cln_operation *record, bool output, struct role *roles) {
    int count = 0;
    for (unsigned i = 0; i < record->tensor_count; i++)
        if (record->tensors[i].output == output)
            roles[count++] = role_of(record, &record->tensors[i]);
    for (unsigned i = 0; i < record->statistic_count; i++)
        if (record->statistics[i].output == output)
            roles[count++] = role_of_statistic(record, &record->statistics[i]);
    return count;
}

/* -------------------------------------------------------------------------------------------------------- descriptor */

static void put(struct job *job, size_t offset, const void *value, size_t size) {
    memcpy(job->desc.of_record + offset, value, size);
}

/* The dtype of an output: of x's shape the main one; of a gradient of [cols] its input's; else that of statistics. */
static clnorm_dtype output_dtype(const struct job *job, const struct role *role, clnorm_dtype main_dtype) {
    const clnorm_dtype real = statistics_dtype(job->tensor[0].element->dtype);
    if (role->shape == SHAPE_X)
        return main_dtype;
    const clnorm_dtype input = role->shape == SHAPE_COLS ? job_dtype(job, role->name + 1) : CLNORM_DTYPE_NONE;
    return input ? input : real;
}

static void put_numbers(struct job *job, const struct operation_options *options) {
    const struct cln_operation *const record = job->operation->record;
    const uint64_t group_size = job->cols / job->groups;
    if (record->group_size)
        put(job, record->group_size, &group_size, sizeof group_size);
    if (record->weight_map) {
        const uint64_t map[] = {job->weight_rows, job->weight_repeat}; /* weight_repeat follows weight_rows */
        put(job, record->weight_map, map, sizeof map);
    }
    if (record->eps && options->eps_given)
        put(job, record->eps, &options->eps, sizeof options->eps);
    const uint32_t batch_invariant = options->batch_invariant != 0;
    if (record->batch_invariant)
        put(job, record->batch_invariant, &batch_invariant, sizeof batch_invariant);
}

/* Puts rows, columns, the tensors' dtypes, and the presence of statistics into the descriptor. */
static void put_tensors(struct job *job) {
    const struct cln_operation *const record = job->operation->record;
    put(job, offsetof(struct cln_desc_head, rows), &job->rows, sizeof job->rows);
    put(job, offsetof(struct cln_desc_head, cols), &job->cols, sizeof job->cols);
    for (unsigned i = 0; i < record->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &record->tensors[i];
        const clnorm_dtype dtype = job_dtype(job, rule->name);
        put(job, rule->offset + offsetof(clnorm_tensor, dtype), &dtype, sizeof dtype);
    }
    for (unsigned i = 0; i < record->statistic_count; i++) {
        if (!record->statistics[i].given)
            continue;
        const uint32_t given = job_tensor(job, record->statistics[i].name) != NULL;
        put(job, record->statistics[i].given, &given, sizeof given);
    }
}

static bool describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct cln_operation *const record = job->operation->record;
    clnorm_dtype output = job->tensor[0].element->dtype;
    clnorm_config config = CLNORM_CONFIG_AUTOMATIC;
    cln_operation_init(record, job->desc.of_record);
    if (!choices_read(record, &options->choices, job->desc.of_record, fault) ||
        (options->dtype && !parse_dtype("--dtype", options->dtype, &output, fault)) ||
        !job_check_doubles(job, output, false, fault) ||
        (options->config && !config_parse(options->config, &config, fault)))
        return false;
    put(job, record->config, &config, sizeof config);
    const struct role *const roles = job->operation->roles;
    for (int i = 0; roles[i].name; i++)
        if (job->wanted[i])
            job->tensor[i].element = element_by_dtype(output_dtype(job, &roles[i], output));
    put_numbers(job, options);
    put_tensors(job);
    return true;
}

static clnorm_status plan_of(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return cln_operation_plan_create(job->operation->record, context, job->desc.of_record, plan);
}

/* ------------------------------------------------------------------------------------------------------ verification */

/* Numbers per segment of a tensor of statistics; 0: the tensor is another one. */
static uint64_t numbers_of(enum role_shape shape) {
    return shape == SHAPE_MOMENTS ? 3 : shape == SHAPE_SUMS ? 2 : shape == SHAPE_STATISTICS;
}

/* The number of weight rows, and the weight row that a row takes. */
static uint64_t weight_rows_of(const struct job *job) {
    return job->weight_rows ? job->weight_rows : 1;
}

static uint64_t weight_row_of(const struct job *job, uint64_t row) {
    return job->weight_rows ? row / job->weight_repeat % job->weight_rows : 0;
}

/* The index in its tensor of element i of a row. Statistics are of [groups, rows, numbers]. */
static uint64_t index_of(const struct job *job, enum role_shape shape, uint64_t row, uint64_t i) {
    const uint64_t numbers = numbers_of(shape);
    if (numbers)
        return (i / numbers * job->rows + row) * numbers + i % numbers;
    return (shape == SHAPE_COLS ? weight_row_of(job, row) : row) * job->cols + i;
}

/* Elements of a row. */
static uint64_t width_of(const struct job *job, enum role_shape shape) {
    const uint64_t numbers = numbers_of(shape);
    return numbers ? job->groups * numbers : job->cols;
}

/* The most elements that a row of any tensor has. */
static uint64_t room_of(const struct job *job) {
    return 3 * job->cols;
}

/* A row of each tensor, for the reference. */
struct rows {
    struct ref_row row;
    double *inputs; /* of room_of() numbers each */
    struct ref_value *outputs;
    struct ref_row_sum *sums; /* of outputs of shape [cols]: [REF_ROW_TENSORS, weight rows, cols] */
    unsigned input_count, output_count;
};

static void free_rows(struct rows *rows) {
    free(rows->inputs);
    free(rows->outputs);
    free(rows->sums);
}

static bool fail_memory(const struct job *job, struct fault *fault) {
    return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " columns", job->cols);
}

static bool make_rows(struct rows *rows, const struct job *job, struct fault *fault) {
    const uint64_t cols = job->cols, room = room_of(job);
    *rows = (struct rows){.row = {.desc = job->desc.of_record, .cols = cols, .group_size = cols / job->groups}};
    rows->row.arithmetic = estimate_arithmetic(job->tensor[0].element->dtype, rows->row.group_size);
    rows->row.arithmetic.function = FUNCTION_UNITS;
    rows->inputs = ref_arrays(room, REF_ROW_TENSORS);
    rows->outputs = calloc((size_t)room, REF_ROW_TENSORS * sizeof *rows->outputs);
    rows->sums = calloc((size_t)(weight_rows_of(job) * cols), REF_ROW_TENSORS * sizeof *rows->sums);
    if (!rows->inputs || !rows->outputs || !rows->sums) {
        free_rows(rows);
        fail_memory(job, fault);
        return false;
    }
    for (int i = 0; job->operation->roles[i].name; i++) {
        const bool there = job->tensor[i].element;
        const unsigned k = job->operation->roles[i].output ? rows->output_count++ : rows->input_count++;
        if (job->operation->roles[i].output)
            rows->row.output[k] = there ? rows->outputs + k * room : NULL;
        else
            rows->row.input[k] = there ? rows->inputs + k * room : NULL;
    }
    return true;
}

static void load_row(const struct rows *rows, const struct job *job, uint64_t row) {
    for (unsigned k = 0; k < rows->input_count; k++) {
        const struct tensor *const tensor = &job->tensor[k];
        const enum role_shape shape = job->operation->roles[k].shape;
        for (uint64_t i = 0; tensor->element && i < width_of(job, shape); i++)
            rows->inputs[k * room_of(job) + i] = element_load(tensor->element, tensor->data, index_of(job, shape, row, i));
    }
}

static void judge_row(const struct rows *rows, const struct job *job, uint64_t row, struct verdict *verdicts) {
    const uint64_t sums = weight_rows_of(job) * job->cols;
    for (unsigned k = 0; k < rows->output_count; k++) {
        const struct role *const role = &job->operation->roles[rows->input_count + k];
        const struct judged judged = judged_of(job, role->name, verdicts);
        const struct ref_value *const values = rows->outputs + k * room_of(job);
        for (uint64_t i = 0; judged.tensor && i < width_of(job, role->shape); i++)
            if (role->shape == SHAPE_COLS)
                ref_row_sum_add(&rows->sums[k * sums + index_of(job, role->shape, row, i)], values[i].value,
                                values[i].error);
            else
                judged_add(&judged, index_of(job, role->shape, row, i), values[i]);
    }
}

/* An output of [cols] is the sum over all rows that take that weight row. */
static void judge_sums(const struct rows *rows, const struct job *job, struct verdict *verdicts) {
    const uint64_t sums = weight_rows_of(job) * job->cols;
    for (unsigned k = 0; k < rows->output_count; k++) {
        const struct role *const role = &job->operation->roles[rows->input_count + k];
        const struct judged judged = judged_of(job, role->name, verdicts);
        if (role->shape == SHAPE_COLS)
            judged_add_sums(&judged, rows->sums + k * sums, sums,
                            error_over_rows(&rows->row.arithmetic, job->rows / weight_rows_of(job)));
    }
}

static bool verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    struct rows rows;
    if (!make_rows(&rows, job, fault))
        return false;
    bool done = true;
    for (uint64_t row = 0; done && row < job->rows; row++) {
        load_row(&rows, job, row);
        done = job->operation->reference(&rows.row);
        if (done)
            judge_row(&rows, job, row, verdicts);
    }
    judge_sums(&rows, job, verdicts);
    free_rows(&rows);
    return done || fail_memory(job, fault);
}

struct operation row_operation_of(const struct cln_operation *record, ref_row_fn reference, struct role roles[ROLES + 1]) {
    const int inputs = add_roles(record, false, roles);
    const int outputs = add_roles(record, true, roles + inputs);
    roles[inputs + outputs] = (struct role){.name = NULL};
    return (struct operation){
        .name = record->name,
        .summary = record->summary,
        .kind = OPERATION_ROWS,
        .roles = roles,
        .describe = describe,
        .plan = plan_of,
        .verify = verify,
        .record = record,
        .reference = reference,
    };
}
