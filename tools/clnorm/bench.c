#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closest.h"
#include "commands.h"

/* Operations with hooks of their own in the tool. */
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
    {.name = "quantize", .operation = "quantize", .inputs = {"x"}},
    {.name = "fp8_rms_norm", .operation = "fp8_rms_norm", .inputs = {"x", "x_scale", "weight"}, .outputs = "y,y_t"},
    {.name = "fp8_rms_norm_backward",
     .operation = "fp8_rms_norm_backward",
     .inputs = {"x", "x_scale", "weight", "rstd", "dy"}},
};
enum { OWN = sizeof own / sizeof *own };

/* ---------------------------------------------------------------------------------------------- rows of records */

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

/* With every input; what is moved at the least is its matrices. */
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

/* The operation, and again with each word that its descriptor does not start from. */
static int add_rows(struct bench_operation *rows, const struct operation *operation) {
    int count = 0;
    rows[count++] = row_of(operation);
    for (int i = 0; i < CLN_CHOICES && operation->record->choices[i]; i++) {
        const struct cln_choice *const choice = operation->record->choices[i];
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

/* --------------------------------------------------------------------------------------------- what is measured */

static const struct bench_shape gpu_shapes[] = {{32768, 256},  {32768, 1024}, {16384, 4096}, {16384, 8192}, {8192, 16384},
                                                {4096, 65536}, {2048, 4096},  {64, 4096},    {1, 4096}};
static const struct bench_shape cpu_shapes[] = {{16384, 256}, {8192, 768}, {4096, 1024}, {4096, 4096}, {1024, 8192}};
static const clnorm_dtype gpu_dtypes[] = {CLNORM_BF16, CLNORM_F32};
static const clnorm_dtype cpu_dtypes[] = {CLNORM_F32};

static const char moved_and_timed[] =
    "What is moved is the least: forward x in and y out, with a gate z in; backward x (of softmax y) and dy in and dx out, "
    "with a gate z in and dz out; with a residual, that in and the sum out, backward likewise; of 8-bit operations every "
    "tensor once.\n"
    "Each time is that of the kernels: on GPUs the median of many runs, the caches flushed before each; on CPUs the least "
    "time of an enqueue and its finish. limit_us is the time of a copy of the same bytes in the same process: the faster of "
    "clEnqueueCopyBuffer and a copy kernel; on CPUs memcpy on one thread.\n";

/* Of an input of role, where other inputs have this one: x of the operations on 8 bits, and its scales. */
static clnorm_dtype input_dtype(const struct operation *operation, const char *role, clnorm_dtype dtype) {
    const bool codes = operation->roles[operation_role(operation, role)].shape == SHAPE_CODES;
    return codes ? CLNORM_F8_E4M3 : !strcmp(role, "x_scale") ? CLNORM_BF16 : dtype;
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
    return options;
}

bool bench_job(struct job *job, const struct bench_operation *operation, struct bench_shape shape, clnorm_dtype dtype,
               const char *config, struct fault *fault) {
    const struct operation *of;
    if (!operation_find(operation->operation, &of, fault))
        return false;
    enum { SCALED = 16 }; /* columns */
    const int x_scale = operation_role(of, "x_scale");
    const bool scaled = x_scale >= 0 && of->roles[x_scale].shape == SHAPE_X_GROUPS;
    const uint64_t groups = scaled ? (shape.cols + SCALED - 1) / SCALED : 1;
    job_init(job, of);
    for (int i = 0; operation->inputs[i]; i++)
        if (!job_add_input(job, operation->inputs[i], input_dtype(of, operation->inputs[i], dtype), shape.rows, shape.cols,
                           groups, fault))
            return false;
    const struct operation_options options = bench_options(operation, config);
    return job_describe(job, &options, fault);
}

uint64_t bench_bytes(const struct bench_operation *operation, const struct job *job) {
    return operation->moved ? operation->moved * job->tensor[0].size : job_bytes(job);
}

bool bench_open_output(const char *path, FILE **stream, struct fault *fault) {
    *stream = NULL;
    if (!path)
        return true;
    *stream = strcmp(path, "-") != 0 ? fopen(path, "w") : stdout;
    return *stream || fault_set(fault, EXIT_REQUEST, "%s: cannot be written: %s", path, strerror(errno));
}

bool bench_close_output(const char *path, FILE *stream, struct fault *fault) {
    if (!stream || stream == stdout)
        return true;
    const bool good = !ferror(stream);
    return (!fclose(stream) && good) || fault_set(fault, EXIT_FAILED, "%s: cannot be written", path);
}

bool bench_find_operation(const char *word, const struct bench_operation **operation, struct fault *fault) {
    char known[512] = "";
    struct closest closest = closest_to(word);
    for (const struct bench_operation *row = bench_operations(); row->name; row++) {
        if (closest_is(word, strlen(word), row->name)) {
            *operation = row;
            return true;
        }
        closest_offer(&closest, row->name);
        strncat(known, *known ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, row->name, sizeof known - strlen(known) - 1);
    }
    char text[CLOSEST_TEXT];
    return closest.name ? fault_set(fault, EXIT_REQUEST, "'%s' is no operation; %s", word, closest_text(&closest, text))
                        : fault_set(fault, EXIT_REQUEST, "'%s' is no operation; they are %s", word, known);
}

static bool take_operation(struct bench_request *request, const char *word, struct fault *fault) {
    const struct bench_operation *operation = NULL;
    if (!bench_find_operation(word, &operation, fault))
        return false;
    if (request->operation_count == BENCH_MOST)
        return fault_set(fault, EXIT_REQUEST, "'%s': expected at most %d operations", word, BENCH_MOST);
    request->operations[request->operation_count++] = operation;
    return true;
}

bool bench_parse_shape(const char *word, const char *option, struct bench_shape *shape, struct fault *fault) {
    int length = 0;
    const bool read = word[0] != '-' && sscanf(word, "%" SCNu64 "x%" SCNu64 "%n", &shape->rows, &shape->cols, &length) == 2;
    return (read && !word[length] && !strchr(word, '-') && shape->rows && shape->cols) ||
           fault_set(fault, EXIT_REQUEST, "%s '%s': expected ROWSxCOLS, both 1 or more", option, word);
}

static bool take_shape(const char *word, void *user, struct fault *fault) {
    struct bench_request *const request = user;
    if (request->shape_count == BENCH_MOST)
        return fault_set(fault, EXIT_REQUEST, "--shapes: expected at most %d", BENCH_MOST);
    return bench_parse_shape(word, "--shapes", &request->shapes[request->shape_count++], fault);
}

static bool take_dtype(const char *word, void *user, struct fault *fault) {
    struct bench_request *const request = user;
    if (request->dtype_count == BENCH_MOST)
        return fault_set(fault, EXIT_REQUEST, "--dtypes: expected at most %d", BENCH_MOST);
    return parse_dtype(word, &request->dtypes[request->dtype_count++], fault);
}

bool bench_read(struct bench_request *request, struct command_line *line, const char *shapes, const char *dtypes,
                struct fault *fault) {
    for (const char *word = command_line_next(line); word; word = command_line_next(line))
        if (!take_operation(request, word, fault))
            return false;
    return (!shapes || each_word(shapes, "--shapes", take_shape, request, fault)) &&
           (!dtypes || each_word(dtypes, "--dtypes", take_dtype, request, fault));
}

void bench_complete(struct bench_request *request, bool cpu) {
    for (size_t i = 0, given = request->operation_count; !given && bench_operations()[i].name; i++)
        request->operations[request->operation_count++] = &bench_operations()[i];
    if (!request->shape_count) {
        request->shape_count = cpu ? sizeof cpu_shapes / sizeof *cpu_shapes : sizeof gpu_shapes / sizeof *gpu_shapes;
        memcpy(request->shapes, cpu ? cpu_shapes : gpu_shapes, request->shape_count * sizeof *request->shapes);
    }
    if (!request->dtype_count) {
        request->dtype_count = cpu ? sizeof cpu_dtypes / sizeof *cpu_dtypes : sizeof gpu_dtypes / sizeof *gpu_dtypes;
        memcpy(request->dtypes, cpu ? cpu_dtypes : gpu_dtypes, request->dtype_count * sizeof *request->dtypes);
    }
}

static bool run_bench(struct command_line *line, struct bench_request *request, const char *shapes, const char *dtypes,
                      bool host, struct fault *fault) {
    if (!bench_read(request, line, shapes, dtypes, fault))
        return false;
    if (request->runs < 1)
        return fault_set(fault, EXIT_REQUEST, "--runs %d: expected 1 or more", request->runs);
    if (request->warm_up < 0)
        return fault_set(fault, EXIT_REQUEST, "--warm-up %d: expected 0 or more", request->warm_up);
    if (request->enqueues < 0 || (request->enqueues && !host))
        return fault_set(fault, EXIT_REQUEST, "--enqueues %d: expected 0 or more, with --host", request->enqueues);
    if (host && request->svg)
        return fault_set(fault, EXIT_REQUEST, "--svg: expected no --host");
    if (request->svg && !strcmp(request->svg, "-"))
        return fault_set(fault, EXIT_REQUEST, "--svg -: expected a file, standard output has the table or the JSON lines");
    return host ? bench_host(request, fault) : bench_device(request, fault);
}

/* What --help says below the options. */
static void describe(char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "Operations: ");
    for (const struct bench_operation *row = bench_operations(); row->name; row++)
        length +=
            (size_t)snprintf(text + length, capacity - length, "%s%s", row == bench_operations() ? "" : ", ", row->name);
    (void)snprintf(text + length, capacity - length, "; all of them without a word.\n%s", moved_and_timed);
}

int bench_command(int argc, const char **argv, struct fault *fault) {
    struct bench_request request = {.runs = 30, .warm_up = 3};
    char *shapes = NULL;
    char *dtypes = NULL;
    int host = 0;
    const struct poptOption table[] = {
        {"shapes", '\0', POPT_ARG_STRING, &shapes, 0, "Rows and columns (usual ones for the device)", "MxN,..."},
        {"dtypes", '\0', POPT_ARG_STRING, &dtypes, 0, "Element types (bf16,f32; on CPUs f32)", "DT,..."},
        {"json", '\0', POPT_ARG_STRING, &request.json, 0, "Write a JSON line each; - for just these", "FILE"},
        {"svg", '\0', POPT_ARG_STRING, &request.svg, 0, "Draw GB/s over shapes, against the copy", "FILE"},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Run on this device; see clnorm select --help", "SELECTOR"},
        {"config", '\0', POPT_ARG_STRING, &request.config, 0, "Force knobs: vec=8,lanes=128,...", "KNOB=N,..."},
        {"runs", '\0', POPT_ARG_INT, &request.runs, 0, "Take so many runs of each, or more; for 20 s at most (30)", "N"},
        {"warm-up", '\0', POPT_ARG_INT, &request.warm_up, 0, "Take so many before those that count (3)", "N"},
        {"median", '\0', POPT_ARG_NONE, &request.median, 0, "The median counts on CPUs too, not the least", NULL},
        {"unfused", '\0', POPT_ARG_NONE, &request.unfused, 0, "What is fused beside the same in separate calls", NULL},
        {"host", '\0', POPT_ARG_NONE, &host, 0, "Measure the host: enqueue, and plan creation", NULL},
        {"enqueues", '\0', POPT_ARG_INT, &request.enqueues, 0, "--host: watch the memory over N more enqueues", "N"},
        POPT_TABLEEND,
    };
    char epilogue[4096];
    describe(epilogue, sizeof epilogue);
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OP...] [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || run_bench(&line, &request, shapes, dtypes, host, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
