#include "bench_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t gpu_shapes[][2] = {{32768, 256},  {32768, 1024}, {16384, 4096}, {16384, 8192}, {8192, 16384},
                                         {4096, 65536}, {2048, 4096},  {64, 4096},    {1, 4096}};
static const uint64_t cpu_shapes[][2] = {{16384, 256}, {8192, 768}, {4096, 1024}, {4096, 4096}, {1024, 8192}};
static const clnorm_dtype gpu_dtypes[] = {CLNORM_BF16, CLNORM_F32};
static const clnorm_dtype cpu_dtypes[] = {CLNORM_F32};

static bool take_operation(struct bench_request *request, const char *word, struct fault *fault) {
    const struct bench_operation *operation = NULL;
    if (!bench_find_operation(word, &operation, fault))
        return false;
    for (size_t i = 0; i < request->operation_count; i++)
        if (request->operations[i] == operation)
            return fault_set(fault, EXIT_REQUEST, "'%s': the operation %s is given twice", word, operation->name);
    request->operations[request->operation_count++] = operation;
    return true;
}

/* A number of 1 or more, and 'x' or the end of the list after it. */
static bool take_number(const char **word, uint64_t *number) {
    char *end;
    errno = 0;
    *number = **word >= '0' && **word <= '9' ? strtoull(*word, &end, 10) : 0;
    if (!*number || errno)
        return false;
    *word = *end == 'x' ? end + 1 : end;
    return *end == 'x' || *end == '/' || !*end;
}

static bool read_shape(const char *word, struct bench_shape *shape) {
    uint64_t extent;
    if (!take_number(&word, &shape->rows) || word[-1] != 'x' || !take_number(&word, &shape->cols))
        return false;
    for (shape->positions = word[-1] == 'x'; word[-1] == 'x'; shape->positions *= extent)
        if (!take_number(&word, &extent) || shape->positions > UINT64_MAX / extent)
            return false;
    if (shape->positions > UINT64_MAX / shape->rows)
        return false;
    if (shape->positions)
        shape->rows *= shape->positions;
    if (shape->positions && *word == '/')
        return word++, take_number(&word, &shape->groups) && !*word && word[-1] != 'x';
    return !*word;
}

bool bench_parse_shape(const char *word, const char *option, struct bench_shape *shape, struct fault *fault) {
    *shape = (struct bench_shape){0};
    return read_shape(word, shape) ||
           fault_set(fault, EXIT_REQUEST, "%s '%s': expected ROWSxCOLS or NxCxHxW[/GROUPS], each 1 or more", option, word);
}

static bool take_shape(const char *word, void *user, struct fault *fault) {
    struct bench_request *const request = user;
    if (request->shape_count == BENCH_MOST)
        return fault_set(fault, EXIT_REQUEST, "--shapes: expected at most %d", BENCH_MOST);
    return bench_parse_shape(word, "--shapes", &request->shapes[request->shape_count++], fault);
}

static bool take_dtype(const char *word, void *user, struct fault *fault) {
    struct bench_request *const request = user;
    return parse_dtype("--dtypes", word, &request->dtypes[request->dtype_count++], fault);
}

/* Operations that are named with shapes must take all of them; in a list of all operations or widths, some are skipped. */
static bool check_columns(const struct bench_request *request, struct fault *fault) {
    for (size_t o = 0; o < request->operation_count; o++)
        for (size_t i = 0; i < request->shape_count; i++) {
            char text[BENCH_SHAPE_TEXT];
            const char *const needed = bench_columns_needed(request->operations[o], request->shapes[i].cols);
            if (needed)
                return fault_set(fault, EXIT_REQUEST, "--shapes %s: %s needs %s",
                                 bench_shape_text(&request->shapes[i], text), request->operations[o]->name, needed);
        }
    return true;
}

bool bench_read(struct bench_request *request, struct command_line *line, const char *shapes, const char *dtypes,
                struct fault *fault) {
    for (const char *word = command_line_next(line); word; word = command_line_next(line))
        if (!take_operation(request, word, fault))
            return false;
    return (!shapes || each_word(shapes, "--shapes", take_shape, request, fault)) &&
           (!dtypes || each_word(dtypes, "--dtypes", take_dtype, request, fault)) && check_columns(request, fault);
}

void bench_complete(struct bench_request *request, bool cpu) {
    for (size_t i = 0, given = request->operation_count; !given && bench_operations()[i].name; i++)
        request->operations[request->operation_count++] = &bench_operations()[i];
    const uint64_t(*const shapes)[2] = cpu ? cpu_shapes : gpu_shapes;
    const size_t usual = cpu ? sizeof cpu_shapes / sizeof *cpu_shapes : sizeof gpu_shapes / sizeof *gpu_shapes;
    for (size_t given = request->shape_count; !given && request->shape_count < usual; request->shape_count++) {
        const uint64_t *const shape = shapes[request->shape_count];
        request->shapes[request->shape_count] = (struct bench_shape){.rows = shape[0], .cols = shape[1]};
    }
    for (size_t i = 0; i < request->shape_count; i++) {
        request->shapes[i].packed = request->packed;
        request->shapes[i].weight_rows = request->weight_rows;
        request->shapes[i].weight_repeat = request->weight_repeat;
    }
    if (!request->dtype_count) {
        request->dtype_count = cpu ? sizeof cpu_dtypes / sizeof *cpu_dtypes : sizeof gpu_dtypes / sizeof *gpu_dtypes;
        memcpy(request->dtypes, cpu ? cpu_dtypes : gpu_dtypes, request->dtype_count * sizeof *request->dtypes);
    }
}

/* The widths that are measured: of the sweep, or of the shapes. */
static size_t count_widths(const struct bench_request *request) {
    return request->sweep.count ? request->sweep.count : request->shape_count;
}

static uint64_t width_of(const struct bench_request *request, size_t i) {
    return request->sweep.count ? request->sweep.width[i] : request->shapes[i].cols;
}

/* Whether the operation takes the dtype, with a shape that every operation takes. */
static bool takes_dtype(struct bench_left_out point) {
    const struct bench_shape shape = {.rows = 16, .cols = 256};
    struct job job = {0};
    struct fault fault = {0};
    const bool takes = bench_job(&job, point.operation, shape, point.dtype, NULL, &fault);
    job_free(&job);
    return takes;
}

bool bench_leave_out(const struct bench_request *request, struct bench_left_out point, struct bench_left_out *noted,
                     struct fault *fault) {
    const bool alone = request->operation_count * request->dtype_count < 2;
    if (alone || request->config || fault->code != EXIT_REQUEST || takes_dtype(point))
        return false;
    if (point.operation != noted->operation || point.dtype != noted->dtype)
        fprintf(stderr, "clnorm: %s %s is left out: %s\n", point.operation->name, clnorm_dtype_name(point.dtype),
                fault->text);
    *noted = point;
    *fault = (struct fault){0};
    return true;
}

void bench_note_skipped(const struct bench_request *request) {
    for (size_t o = 0; o < request->operation_count; o++) {
        bool noted = false;
        for (size_t i = 0; i < count_widths(request); i++) {
            const char *const needed = bench_columns_needed(request->operations[o], width_of(request, i));
            if (!needed)
                continue;
            if (!noted)
                fprintf(stderr, "clnorm: %s needs %s; skipped at", request->operations[o]->name, needed);
            fprintf(stderr, "%s %" PRIu64, noted ? "," : "", width_of(request, i));
            noted = true;
        }
        if (noted)
            fputc('\n', stderr);
    }
}

size_t bench_count(const struct bench_request *request) {
    size_t count = 0;
    for (size_t o = 0; o < request->operation_count; o++)
        for (size_t i = 0; i < count_widths(request); i++)
            count += !bench_columns_needed(request->operations[o], width_of(request, i));
    return count * request->dtype_count;
}
