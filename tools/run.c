#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "config_text.h"
#include "options.h"
#include "report.h"
#include "samples.h"
#include "session.h"
#include "tensor_write.h"

struct request {
    char **in; /* ended by NULL; NULL: none */
    char *out;
    char *device;
    int verify;
    int repeat;
    struct operation_options options;
};

/* Everything that a run holds. */
struct run {
    struct tensor_file *files;
    size_t count;
    struct job job;
    struct session session;
    struct launch launch;
    const char *names[ROLES]; /* tensors that ROLE=TENSOR names; "": left out; NULL: named as the role */
};

/* ------------------------------------------------------------------------------------------------------------- input */

static bool open_files(struct run *run, char *const *paths, struct fault *fault) {
    size_t count = 0;
    while (paths && paths[count])
        count++;
    if (count == 0)
        return fault_set(fault, EXIT_REQUEST, "--in FILE: expected at least one");
    run->files = calloc(count, sizeof *run->files);
    if (!run->files)
        return fault_set(fault, EXIT_FAILED, "out of memory for %zu files", count);
    for (; run->count < count; run->count++)
        if (!tensor_file_open(&run->files[run->count], paths[run->count], fault))
            return false;
    return true;
}

static bool read_mapping(struct run *run, const char *word, struct fault *fault) {
    const struct role *const roles = run->job.operation->roles;
    const char *const equals = strchr(word, '=');
    if (!equals)
        return fault_set(fault, EXIT_REQUEST, "'%s': expected ROLE=TENSOR", word);
    const size_t length = (size_t)(equals - word);
    for (int i = 0; roles[i].name; i++) {
        if (roles[i].output || strlen(roles[i].name) != length || strncmp(roles[i].name, word, length) != 0)
            continue;
        if (run->names[i])
            return fault_set(fault, EXIT_REQUEST, "'%s': %s is given twice", word, roles[i].name);
        run->names[i] = equals + 1;
        return true;
    }
    char known[128] = "";
    for (int i = 0; roles[i].name && !roles[i].output; i++) {
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, roles[i].name, sizeof known - strlen(known) - 1);
    }
    return fault_set(fault, EXIT_REQUEST, "'%s': %s has no input of that role; it reads %s", word, run->job.operation->name,
                     known);
}

/* Finds a tensor by name in all files; *found stays NULL where there is none. */
static bool find_tensor(const struct run *run, const char *name, const struct tensor **found, struct fault *fault) {
    const char *path = NULL;
    for (size_t i = 0; i < run->count; i++) {
        const struct tensor *const tensor = tensor_file_find(&run->files[i], name);
        if (tensor && *found)
            return fault_set(fault, EXIT_REQUEST, "tensor '%s' is in two files, %s and %s", name, path, run->files[i].path);
        if (!tensor)
            continue;
        *found = tensor;
        path = run->files[i].path;
    }
    return true;
}

/* Says what is not there, and a little of what is. */
static bool fail_missing(const struct run *run, const char *role, const char *name, struct fault *fault) {
    const struct tensor_file *const file = &run->files[0];
    char known[256] = "no tensors";
    for (size_t i = 0; i < file->count && i < 3; i++) {
        const size_t length = i ? strlen(known) : 0;
        (void)snprintf(known + length, sizeof known - length, "%s'%.60s'%s", i ? ", " : "", file->tensors[i].name,
                       i == 2 && file->count > 3 ? ", ..." : "");
    }
    return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s) is not in %s%s, which has %s; name one with %s=TENSOR", name,
                     role, file->path, run->count > 1 ? " nor in the other files" : "", known, role);
}

static bool bind_inputs(struct run *run, struct fault *fault) {
    const struct role *const roles = run->job.operation->roles;
    for (int i = 0; roles[i].name; i++) {
        if (roles[i].output)
            continue;
        const char *const name = run->names[i] ? run->names[i] : roles[i].name;
        const struct tensor *found = NULL;
        if (*name && !find_tensor(run, name, &found, fault))
            return false;
        if (found)
            run->job.tensor[i] = *found;
        else if (!roles[i].optional || (run->names[i] && *name))
            return fail_missing(run, roles[i].name, name, fault);
    }
    return true;
}

static bool read_request(struct run *run, struct command_line *line, const struct request *request, struct fault *fault) {
    const char *const name = command_line_next(line);
    if (!name)
        return fault_set(fault, EXIT_REQUEST, "expected an operation, such as layer_norm");
    const struct operation *operation;
    if (!operation_find(name, &operation, fault))
        return false;
    if (request->repeat < 1)
        return fault_set(fault, EXIT_REQUEST, "--repeat %d: expected 1 or more", request->repeat);
    const char *words[ROLES + 1]; /* one too many is one that is given twice, or is none */
    int count = 0;
    for (const char *word; count <= ROLES && (word = command_line_next(line)); count++) {
        words[count] = word;
        const bool reads_y = strncmp(word, "y=", 2) == 0 && operation_from_y(operation);
        operation = reads_y ? operation_from_y(operation) : operation;
    }
    job_init(&run->job, operation);
    for (int i = 0; i < count; i++)
        if (!read_mapping(run, words[i], fault))
            return false;
    if (!open_files(run, request->in, fault) || !bind_inputs(run, fault) ||
        !job_describe(&run->job, &request->options, fault))
        return false;
    for (int i = 0; request->out && operation->roles[i].name; i++)
        if (run->job.wanted[i])
            return tensor_write_check(request->out, run->job.tensor[i].element, fault);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ output */

static void print_tensors(const struct job *job) {
    for (int i = 0; i < ROLES; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if (!tensor->element || job->operation->roles[i].output)
            continue;
        char shape[SHAPE_TEXT];
        printf("%-8s %s %s, from %.100s\n", job->operation->roles[i].name, tensor->element->name,
               tensor_shape_text(tensor, shape), tensor->name);
    }
}

static bool measure(const struct run *run, int repeat, struct fault *fault) {
    struct samples samples = {0};
    for (int i = 0; i < repeat; i++) {
        double us;
        progress("run %d of %d", i + 1, repeat);
        if (!launch_run(&run->launch, &run->session, &us, fault) || !samples_add(&samples, us, fault)) {
            progress_end();
            samples_free(&samples);
            return false;
        }
    }
    progress_end();
    const double us = samples_median(&samples);
    samples_free(&samples);
    char size[SIZE_TEXT];
    const uint64_t bytes = job_bytes(&run->job);
    printf("time     %.1f us, the median of %d run%s: %.1f GB/s, %s in and out\n", us, repeat, repeat == 1 ? "" : "s",
           us > 0 ? (double)bytes / us * 1e-3 : 0, size_text(bytes, size));
    return true;
}

/* Prints a verdict a tensor, and fails with the first wrong one. */
static bool verify(const struct job *job, struct fault *fault) {
    struct verdict verdicts[ROLES] = {0};
    progress("verifying");
    const bool done = job->operation->verify(job, verdicts, fault);
    progress_end();
    if (!done)
        return false;
    bool right = true;
    for (int i = 0; i < ROLES; i++) {
        const struct verdict *const verdict = &verdicts[i];
        if (!verdict->checked)
            continue;
        printf("verify   %-7s largest error %.3g, tolerance %.3g there (%s): %s\n", job->tensor[i].name, verdict->error,
               verdict->tolerance, clnorm_dtype_name(job->tensor[i].element->dtype), verdict->wrong ? "wrong" : "good");
        if (verdict->wrong && right)
            right = fault_set(fault, EXIT_FAILED,
                              "verify: %s has %" PRIu64 " of %" PRIu64 " elements wrong; element %" PRIu64
                              " is %.9g, expected %.9g within %.3g",
                              job->tensor[i].name, verdict->wrong, verdict->checked, verdict->index, verdict->actual,
                              verdict->expected, verdict->tolerance);
    }
    return right;
}

static bool write_outputs(const struct job *job, const char *path, struct fault *fault) {
    const struct tensor *outputs[ROLES];
    size_t count = 0;
    for (int i = 0; i < ROLES; i++)
        if (job->output[i])
            outputs[count++] = &job->tensor[i];
    if (!tensor_write(path, outputs, count, fault))
        return false;
    const bool npy = tensor_format_of(path) == FORMAT_NPY;
    printf("wrote    %s:", path);
    for (size_t i = 0; i < (npy ? 1 : count); i++) {
        char shape[SHAPE_TEXT];
        printf("%s %s %s %s", i ? "," : "", outputs[i]->name, outputs[i]->element->name,
               tensor_shape_text(outputs[i], shape));
    }
    putchar('\n');
    return true;
}

/* --------------------------------------------------------------------------------------------------------------- run */

static bool run_job(struct run *run, const struct request *request, struct fault *fault) {
    if (!session_open(&run->session, request->device, CL_QUEUE_PROFILING_ENABLE, NULL, fault))
        return false;
    printf("device   ");
    device_print_line(&run->session.device);
    print_tensors(&run->job);
    progress("building");
    const bool ready = job_allocate_outputs(&run->job, fault) &&
                       launch_prepare(&run->launch, &run->session, &run->job, fault) &&
                       launch_upload(&run->launch, &run->session, &run->job, fault);
    progress_end();
    if (!ready)
        return false;
    clnorm_config config;
    char text[CONFIG_TEXT];
    clnorm_plan_config(run->launch.plan, &config);
    clnorm_config_text(&config, text, sizeof text);
    printf("config   %s\n", text);
    return measure(run, request->repeat, fault) && launch_download(&run->launch, &run->session, &run->job, fault) &&
           (!request->verify || verify(&run->job, fault)) &&
           (!request->out || write_outputs(&run->job, request->out, fault));
}

static bool run_request(struct command_line *line, const struct request *request, struct fault *fault) {
    struct run run = {0};
    const bool done = read_request(&run, line, request, fault) && run_job(&run, request, fault);
    launch_free(&run.launch);
    session_close(&run.session);
    job_free(&run.job);
    for (size_t i = 0; i < run.count; i++)
        tensor_file_close(&run.files[i]);
    free(run.files);
    return done;
}

/* What --help says of operations and tensors. */
static void describe_operations(char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "Operations:\n");
    for (const struct operation *operation = operations; operation->name; operation++) {
        length += (size_t)snprintf(text + length, capacity - length, "  %s: %s\n              reads", operation->name,
                                   operation->summary);
        for (int i = 0; operation->roles[i].name; i++) {
            const struct role *const role = &operation->roles[i];
            const bool first_output = role->output && !operation->roles[i - 1].output;
            const bool always = !role->optional || (role->with && !strcmp(role->with, operation->roles[0].name));
            length += (size_t)snprintf(text + length, capacity - length, "%s %s%s",
                                       first_output ? "\n              writes" : "", role->name, always ? "" : "?");
        }
        length += (size_t)snprintf(text + length, capacity - length, "\n");
    }
    (void)snprintf(text + length, capacity - length,
                   "residual is added to x before the norm, after --dropout and row_scale; the sum is\n"
                   "residual_out. dweight is written where weight is given, dbias with bias, dz with z and\n"
                   "dresidual with residual; y is computed\n"
                   "again with --recompute-output. With y=TENSOR a backward is the one from y. --outputs\n"
                   "names others, such as dweight without a weight,\n"
                   "which is f32 then.\n"
                   "A tensor's role is its name, unless ROLE=TENSOR names another; ROLE= leaves one out.\n"
                   "Files end in .safetensors or .npy; an .npy file's tensor has the file's name.\n"
                   "Example:\n"
                   "  clnorm run layer_norm --in model.safetensors x=embeddings.word_embeddings.weight \\\n"
                   "      weight=embeddings.LayerNorm.weight bias=embeddings.LayerNorm.bias --verify\n");
}

int run_command(int argc, const char **argv, struct fault *fault) {
    struct request request = {.repeat = 11, .options = OPERATION_OPTIONS_INIT};
    struct operation_options *const options = &request.options;
    const struct poptOption table[] = {
        {"in", 'i', POPT_ARG_ARGV, &request.in, 0, "Read tensors from FILE; may be given again", "FILE"},
        {"out", 'o', POPT_ARG_STRING, &request.out, 0, "Write outputs to FILE; to .npy the main one", "FILE"},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Run on this device; see clnorm select --help", "SELECTOR"},
        {"verify", '\0', POPT_ARG_NONE, &request.verify, 0, "Compare with a computation in double on the host", NULL},
        {"repeat", '\0', POPT_ARG_INT, &request.repeat, 0, "Take the time of so many runs (11)", "N"},
        {"eps", '\0', POPT_ARG_DOUBLE, &options->eps, 0, "Added to the variance (1e-5)", "E"},
        {"group-size", '\0', POPT_ARG_LONGLONG, &options->group_size, 0, "Normalise groups of G columns (all)", "G"},
        {"gate", '\0', POPT_ARG_STRING, &options->gate, 0, "Multiply by silu(z) or sigmoid(z)", "silu|sigmoid"},
        {"gate-first", '\0', POPT_ARG_NONE, &options->gate_first, 0, "Gate x, before the norm", NULL},
        {"activation", '\0', POPT_ARG_STRING, &options->activation, 0, "Of the norm's result", "gelu|gelu_tanh|silu"},
        {"dropout", '\0', POPT_ARG_DOUBLE, &options->dropout, 0, "Put zeros into x with this probability (0)", "P"},
        {"seed", '\0', POPT_ARG_LONGLONG, &options->seed, 0, "Of --dropout", "S"},
        {"s-given", '\0', POPT_ARG_NONE, &options->s_given, 0, "Backward: x is the forward's residual_out", NULL},
        {"weight-offset", '\0', POPT_ARG_DOUBLE, &options->weight_offset, 0, "Added to every weight (0)", "F"},
        {"outputs", '\0', POPT_ARG_STRING, &options->outputs, 0, "Write these outputs, instead of the usual", "ROLE,..."},
        {"recompute-output", '\0', POPT_ARG_NONE, &options->recompute_output, 0, "Backward: write y too", NULL},
        {"reduction", '\0', POPT_ARG_STRING, &options->reduction, 0, "Backward: how rows add up", "partial|locked"},
        {"slots", '\0', POPT_ARG_LONGLONG, &options->slots, 0, "Of --reduction locked (128)", "N"},
        {"approximate", '\0', POPT_ARG_STRING, &options->approximate, 0, "GELU by erf or by tanh (none)", "none|tanh"},
        {"quantize", '\0', POPT_ARG_STRING, &options->quantize, 0, "Norms: y in 8 bits, a scale for", "tensor|row|group"},
        {"quantize-group", '\0', POPT_ARG_LONGLONG, &options->quantize_group, 0, "Of --quantize group: columns", "QB"},
        {"quantize-scale", '\0', POPT_ARG_DOUBLE, &options->quantize_scale, 0, "Of --quantize tensor", "F"},
        {"mode", '\0', POPT_ARG_STRING, &options->mode, 0, "Quantisation: what has a scale (tensor)", "tensor|row|group"},
        {"scale-dtype", '\0', POPT_ARG_STRING, &options->scale_dtype, 0, "Quantisation: of scales (f32)", "f32|bf16"},
        {"stochastic", '\0', POPT_ARG_LONGLONG, &options->stochastic, 0, "Quantisation: round at random", "SEED"},
        {"transpose", '\0', POPT_ARG_NONE, &options->transpose, 0, "Quantisation: write q_t too", NULL},
        {"accuracy", '\0', POPT_ARG_STRING, &options->accuracy, 0, "fp8_rms_norm: roundings", "fused|compatible"},
        {"dtype", '\0', POPT_ARG_STRING, &options->dtype, 0,
         "Of the main output: f32, f16, bf16, f64 (as x); in 8 bits f8e4m3 or f8e5m2", "DT"},
        {"config", '\0', POPT_ARG_STRING, &options->config, 0, "Force knobs: vec=8,lanes=128,...", "KNOB=N,..."},
        POPT_TABLEEND,
    };
    char epilogue[4096];
    describe_operations(epilogue, sizeof epilogue);
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "OP --in FILE [ROLE=TENSOR...] [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || run_request(&line, &request, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
