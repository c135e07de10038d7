#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "job_describe.h"
#include "op_quantize.h"
#include "options.h"
#include "outer.h"
#include "output_file.h"
#include "report.h"
#include "run_input.h"
#include "run_report.h"
#include "samples.h"
#include "tensor_write.h"

struct request {
    char **in; /* ended by NULL; NULL: none */
    char *out;
    char *device;
    int verify;
    int repeat;
    int force;
    int json;
    struct operation_options options;
};

/* The state of a run. */
struct run {
    struct run_input input;
    struct job job;
    struct session session;
    struct launch launch;
    struct run_report report;
};

/* Only --force lets a run replace one of its inputs. */
static bool check_output(const struct run *run, const struct request *request, struct fault *fault) {
    if (!*request->out)
        return fault_set(fault, EXIT_REQUEST, "--out '': expected the name of a file");
    for (size_t i = 0; i < run->input.count && !request->force; i++)
        if (output_file_is(request->out, run->input.files[i].path))
            return fault_set(fault, EXIT_REQUEST, "--out %s: this is the input %s; --force replaces it", request->out,
                             run->input.files[i].path);
    for (int i = 0; i < ROLES; i++)
        if (run->job.wanted[i]) /* an .npy file holds the first output */
            return tensor_write_check(request->out, run->job.tensor[i].element, fault);
    return true;
}

static bool check_utf8(const char *name, struct fault *fault) {
    json_t *const text = json_string(name);
    json_decref(text);
    return text || fault_set(fault, EXIT_REQUEST, "--json: the name '%.200s' is not valid UTF-8", name);
}

/* JSON holds the names of the inputs and of the output, which come from paths. */
static bool check_json(const struct run *run, const struct request *request, struct fault *fault) {
    for (int i = 0; i < ROLES; i++)
        if (run->job.tensor[i].element && !check_utf8(run->job.tensor[i].name, fault))
            return false;
    return !request->out || check_utf8(request->out, fault);
}

static bool read_request(struct run *run, struct command_line *line, const struct request *request, struct fault *fault) {
    const char *const name = command_line_next(line);
    if (!name)
        return fault_set(fault, EXIT_REQUEST, "expected an operation, such as layer_norm");
    const struct operation *operation;
    if (!operation_find(name, &operation, fault))
        return false;
    const char *words[ROLES + 1]; /* one more than there are roles: it repeats a role, or names none */
    int count = 0;
    for (const char *word; count <= ROLES && (word = command_line_next(line)); count++) {
        words[count] = word;
        const bool reads_y = strncmp(word, "y=", 2) == 0 && operation_from_y(operation);
        operation = reads_y ? operation_from_y(operation) : operation;
    }
    job_init(&run->job, operation);
    for (int i = 0; i < count; i++)
        if (!run_input_map(&run->input, operation, words[i], fault))
            return false;
    if (!run_input_open(&run->input, request->in, fault) || !run_input_bind(&run->input, &run->job, fault) ||
        !job_describe(&run->job, &request->options, fault))
        return false;
    return (!request->json || check_json(run, request, fault)) && (!request->out || check_output(run, request, fault));
}

/* --------------------------------------------------------------------------------------------------------------- run */

static bool measure(struct run *run, int repeat, struct fault *fault) {
    struct samples samples = {0};
    bool done = true;
    for (int i = 0; done && i < repeat; i++) {
        double us;
        progress("run %d of %d", i + 1, repeat);
        done = launch_run(&run->launch, &run->session, &us, fault) && samples_add(&samples, us, fault);
    }
    progress_end();
    if (done)
        run->report.us = samples_median(&samples);
    samples_free(&samples);
    return done;
}

/* Whether any output has an element; without one there is nothing to verify. */
static bool has_elements(const struct job *job) {
    for (int i = 0; i < ROLES; i++)
        if (job->output[i] && job->tensor[i].count)
            return true;
    return false;
}

static bool verify(struct run *run, struct fault *fault) {
    progress("verifying");
    const bool done = !has_elements(&run->job) || run->job.operation->verify(&run->job, run->report.verdicts, fault);
    progress_end();
    run->report.verified = done;
    return done;
}

/* Fails with the first output that is wrong. */
static bool judge(const struct run *run, struct fault *fault) {
    for (int i = 0; i < ROLES; i++) {
        const struct verdict *const verdict = &run->report.verdicts[i];
        if (verdict->wrong)
            return fault_set(fault, EXIT_FAILED,
                             "verify: %s has %" PRIu64 " of %" PRIu64 " elements wrong; element %" PRIu64
                             " is %.9g, expected %.9g within %.3g",
                             run->job.tensor[i].name, verdict->wrong, verdict->checked, verdict->index, verdict->actual,
                             verdict->expected, verdict->tolerance);
    }
    return true;
}

static bool write_outputs(struct run *run, const char *path, struct fault *fault) {
    const struct tensor *outputs[ROLES];
    size_t count = 0;
    for (int i = 0; i < ROLES; i++)
        if (run->job.output[i])
            outputs[count++] = &run->job.tensor[i];
    if (!tensor_write(path, outputs, count, fault))
        return false;
    run->report.out = path;
    return true;
}

static bool prepare(struct run *run, struct fault *fault) {
    progress("building");
    const bool ready = job_allocate_outputs(&run->job, fault) &&
                       launch_prepare(&run->launch, &run->session, &run->job, fault) &&
                       launch_upload(&run->launch, &run->session, &run->job, fault);
    progress_end();
    return ready;
}

/* Prints the text of each step after it, or JSON at the end, also where an output is wrong. Then no output is written. */
static bool run_job(struct run *run, const struct request *request, struct fault *fault) {
    struct run_report *const report = &run->report;
    *report =
        (struct run_report){.job = &run->job, .session = &run->session, .launch = &run->launch, .repeat = request->repeat};
    const bool text = !request->json;
    if (!session_open(&run->session, request->device, CL_QUEUE_PROFILING_ENABLE, NULL, fault))
        return false;
    if (text)
        run_report_inputs(report);
    if (!prepare(run, fault))
        return false;
    if (text)
        run_report_config(report);
    if (!measure(run, request->repeat, fault) || !launch_download(&run->launch, &run->session, &run->job, fault))
        return false;
    if (run->job.rows == 0)
        put_scale_of_no_rows(&run->job);
    if (text)
        run_report_time(report);
    if (request->verify && !verify(run, fault))
        return false;
    const bool right = judge(run, fault);
    const bool done = right && (!request->out || write_outputs(run, request->out, fault));
    if (right && !done)
        return false;
    if (!text)
        return run_report_json(report, fault) && done;
    run_report_verdicts(report);
    run_report_outputs(report);
    return done;
}

static bool run_request(struct command_line *line, const struct request *request, struct fault *fault) {
    struct run run = {0};
    const bool done = read_request(&run, line, request, fault) && run_job(&run, request, fault);
    launch_free(&run.launch);
    session_close(&run.session);
    job_free(&run.job);
    run_input_close(&run.input);
    return done;
}

/* The text of --help on operations and tensors. */
static void describe_operations(char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "Operations (optional tensors have a question mark):\n");
    for (const struct operation *operation = operation_list(); operation->name; operation++) {
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
    (void)snprintf(
        text + length, capacity - length,
        "residual is added to x before the norm, after --dropout and row_scale; the sum is residual_out. dweight "
        "is written where weight is given, dbias with bias, dz with z, and dresidual with residual, in "
        "group_norm_backward with dresidual_out. --recompute-output adds y to a backward. --outputs chooses others, "
        "such as dweight without a weight, which is then f32. With y=TENSOR the backward of a norm is the one from "
        "y.\n"
        "A tensor's role is its name, unless ROLE=TENSOR names another; ROLE= leaves one out. The only tensor of "
        "the only file is the first input, whatever its name.\n"
        "Files end in .safetensors or .npy; an .npy file's tensor has the file's name.\n"
        "Example:\n"
        "  clnorm run layer_norm --in m.safetensors x=embeddings.word_embeddings.weight \\\n"
        "      weight=embeddings.LayerNorm.weight bias=embeddings.LayerNorm.bias --verify\n");
}

int run_command(int argc, const char **argv, struct fault *fault) {
    struct request request = {.repeat = 11, .options = OPERATION_OPTIONS_INIT};
    struct operation_options *const options = &request.options;
    const struct poptOption fixed[] = {
        {"in", 'i', POPT_ARG_ARGV, &request.in, 0, "Read tensors from FILE; may be repeated", "FILE"},
        {"out", 'o', POPT_ARG_STRING, &request.out, 0, "Write outputs to FILE; an .npy holds the main one only", "FILE"},
        {"force", 'f', POPT_ARG_NONE, &request.force, 0, "Let --out replace an input", NULL},
        {"device", 'd', POPT_ARG_STRING, &request.device, 0, "Run on this device; see clnorm select --help", "SELECTOR"},
        {"verify", '\0', POPT_ARG_NONE, &request.verify, 0, "Compare with a computation in double on the host", NULL},
        {"json", '\0', POPT_ARG_NONE, &request.json, 0, "Print a JSON object", NULL},
        {"repeat", '\0', POPT_ARG_INT, &request.repeat, 1, "Print the median time of N runs (11)", "N"},
        {"eps", '\0', POPT_ARG_DOUBLE, &options->eps, 0, "Add E to the variance (1e-5; l2_norm 1e-12)", "E"},
    };
    enum { FIXED = sizeof fixed / sizeof *fixed };
    _Static_assert(FIXED + OPERATION_OPTIONS + CHOICES <= MOST_OPTIONS, "a command line has a place for every option");
    struct poptOption table[FIXED + OPERATION_OPTIONS + CHOICES + 1];
    memcpy(table, fixed, sizeof fixed);
    operation_options_rows(options, table + FIXED);
    choices_add(table + FIXED + OPERATION_OPTIONS, &options->choices);
    char epilogue[8192];
    describe_operations(epilogue, sizeof epilogue);
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "OP --in FILE [ROLE=TENSOR...] [OPTION...]", epilogue, table, fault))
        return fault->code;
    operation_options_note(options, &line);
    const bool done = line.help || run_request(&line, &request, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
