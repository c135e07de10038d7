#include "bench_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "job_describe.h"
#include "outer.h"
#include "rope.h"

/* The dtype of an input where x and most other inputs have `dtype`: codes, their scales and the tables of RoPE differ. */
static clnorm_dtype input_dtype(const struct operation *operation, const char *role, clnorm_dtype dtype) {
    const enum role_shape shape = operation->roles[operation_role(operation, role)].shape;
    if (shape == SHAPE_TABLE && dtype != CLNORM_F64)
        return CLNORM_F32;
    return shape == SHAPE_CODES ? CLNORM_F8_E4M3 : !strcmp(role, "x_scale") ? CLNORM_BF16 : dtype;
}

struct operation_options bench_options(const struct bench_operation *operation, const char *config) {
    struct operation_options options = OPERATION_OPTIONS_INIT;
    options.outputs = operation->outputs;
    options.gate = operation->gate;
    options.config = (char *)config;
    options.dropout = operation->dropout;
    options.seed = operation->dropout > 0 ? "1" : NULL;
    options.activation = operation->activation;
    options.s_given = operation->s_given;
    if (operation->choice)
        options.choices.word[choice_index(operation->choice)] = (char *)operation->word;
    options.quantize = operation->quantize;
    options.mode = operation->mode;
    options.group_size = operation->group_size;
    options.layout = operation->layout;
    options.rope = operation->rope;
    return options;
}

const char *bench_shape_text(const struct bench_shape *shape, char *text) {
    const uint64_t samples = shape->positions ? shape->rows / shape->positions : shape->rows;
    const int length = snprintf(text, BENCH_SHAPE_TEXT, "%" PRIu64 "x%" PRIu64, samples, shape->cols);
    char *const end = text + length;
    if (shape->groups)
        (void)snprintf(end, BENCH_SHAPE_TEXT - (size_t)length, "x%" PRIu64 "/%" PRIu64, shape->positions, shape->groups);
    else if (shape->positions)
        (void)snprintf(end, BENCH_SHAPE_TEXT - (size_t)length, "x%" PRIu64, shape->positions);
    return text;
}

void bench_shape_json(const struct bench_shape *shape, json_t *object) {
    if (!shape->positions)
        return;
    json_object_set_new(object, "positions", json_integer((json_int_t)shape->positions));
    json_object_set_new(object, "groups", json_integer((json_int_t)bench_groups(shape)));
}

enum { POSITIONS = 1024 }; /* of a sample of images, where there are so many */

struct bench_shape bench_shape_of_bytes(const struct bench_operation *operation, uint64_t bytes, uint64_t cols,
                                        clnorm_dtype dtype) {
    const struct operation *of;
    struct fault fault = {0};
    struct bench_shape shape = {.rows = cln_larger(bytes / clnorm_dtype_size(dtype) / cols, 1), .cols = cols};
    if (operation_find(operation->operation, &of, &fault) && operation_has_channels(of)) {
        shape.positions = cln_smaller(shape.rows, POSITIONS);
        shape.rows -= shape.rows % shape.positions;
    }
    return shape;
}

uint64_t bench_positions(const struct bench_shape *shape) {
    return shape->positions ? shape->positions : cln_smaller(cln_lowest_bit(shape->rows), POSITIONS);
}

uint64_t bench_groups(const struct bench_shape *shape) {
    enum { GROUPS = 32 };
    return shape->groups ? shape->groups : cln_smaller(cln_lowest_bit(shape->cols), GROUPS);
}

enum { PAIR = 2, SCALED = 16 }; /* columns: that RoPE rotates together, that have one scale */

/* Whether x has scales, each for SCALED columns. */
static bool is_scaled(const struct operation *operation) {
    const int role = operation_role(operation, "x_scale");
    return role >= 0 && operation->roles[role].shape == SHAPE_X_GROUPS;
}

const char *bench_columns_needed(const struct bench_operation *operation, uint64_t cols) {
    const struct operation *of;
    struct fault fault = {0};
    if (operation->rope && cols % PAIR)
        return "an even number of columns";
    const bool whole = cols % SCALED == 0 || !operation_find(operation->operation, &of, &fault) || !is_scaled(of);
    return whole ? NULL : "a multiple of 16 columns";
}

bool bench_job(struct job *job, const struct bench_operation *operation, struct bench_shape shape, clnorm_dtype dtype,
               const char *config, struct fault *fault) {
    const struct operation *of;
    if (!operation_find(operation->operation, &of, fault))
        return false;
    uint64_t groups = is_scaled(of) ? shape.cols / SCALED : 1;
    struct operation_options options = bench_options(operation, config);
    job_init(job, of);
    const char *const needed = bench_columns_needed(operation, shape.cols);
    if (needed)
        return fault_set(fault, EXIT_REQUEST, "%s needs %s, not %" PRIu64, operation->name, needed, shape.cols);
    options.weight_rows = shape.weight_rows;
    options.weight_repeat = shape.weight_repeat;
    job->weight_rows = (uint64_t)shape.weight_rows;
    if (operation_has_channels(of)) {
        job->spatial = bench_positions(&shape);
        job->channels_last = operation->layout && !strcmp(operation->layout, "last");
        shape.rows /= job->spatial;
        groups = bench_groups(&shape);
        options.groups = (long long)groups;
    } else if (shape.positions) {
        char text[BENCH_SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST, "--shapes: %s takes ROWSxCOLS, not %s", operation->name,
                         bench_shape_text(&shape, text));
    }
    if (operation->rope) {
        enum { HEAD = 128 };
        options.group_size = (long long)cln_smaller(cln_lowest_bit(shape.cols), HEAD);
        groups = shape.cols / (uint64_t)options.group_size;
        rope_make(job, &options, shape.rows, shape.cols, groups);
    }
    for (int i = 0; operation->inputs[i]; i++)
        if (!job_add_input(job, operation->inputs[i], input_dtype(of, operation->inputs[i], dtype), shape.rows, shape.cols,
                           groups, fault))
            return false;
    return job_describe(job, &options, fault) && outer_pack(job, shape.packed, fault);
}

uint64_t bench_bytes(const struct bench_operation *operation, const struct job *job) {
    return operation->moved ? operation->moved * job->tensor[0].size : job_bytes(job);
}

clnorm_status bench_plan(const struct session *session, const struct bench_operation *operation, struct bench_shape shape,
                         clnorm_dtype dtype, const char *config, clnorm_plan **plan, struct fault *fault) {
    struct job job = {0};
    clnorm_status status = CLNORM_UNSUPPORTED;
    *plan = NULL;
    if (bench_job(&job, operation, shape, dtype, config, fault)) {
        status = job.operation->plan(session->context, &job, plan);
        if (status)
            fault_library(fault, status, job.operation->name);
    }
    job_free(&job);
    return status;
}
