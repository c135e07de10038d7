#include "run_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "report.h"

/* ------------------------------------------------------------------------------------------------------------- values */

enum { FIRST = 5 };

/* The values of a tensor. min, mean and max are of its finite elements; NaN: it has none. */
struct summary {
    double min, mean, max;
    uint64_t others; /* infinities and NaN */
    unsigned shown;
    double first[FIRST];
};

static struct summary summary_of(const struct tensor *tensor) {
    struct summary summary = {.min = NAN, .max = NAN};
    long double sum = 0;
    for (uint64_t i = 0; i < tensor->count; i++) {
        const double value = element_load(tensor->element, tensor->data, i);
        if (i < FIRST)
            summary.first[summary.shown++] = value;
        if (!isfinite(value)) {
            summary.others++;
            continue;
        }
        summary.min = fmin(value, summary.min);
        summary.max = fmax(value, summary.max);
        sum += (long double)value;
    }
    const uint64_t finite = tensor->count - summary.others;
    summary.mean = finite ? (double)(sum / (long double)finite) : NAN;
    return summary;
}

static void print_values(const struct tensor *tensor) {
    const struct summary summary = summary_of(tensor);
    char label[32];
    char shape[SHAPE_TEXT];
    char text[SHAPE_TEXT + 512];
    (void)snprintf(label, sizeof label, "%-8s ", tensor->name);
    size_t length = (size_t)snprintf(text, sizeof text, "%s %s", tensor->element->name, tensor_shape_text(tensor, shape));
    if (tensor->count)
        length += (size_t)snprintf(text + length, sizeof text - length, ": min %.4g, mean %.4g, max %.4g", summary.min,
                                   summary.mean, summary.max);
    if (summary.others)
        length += (size_t)snprintf(text + length, sizeof text - length, ", %" PRIu64 " not finite", summary.others);
    for (unsigned i = 0; i < summary.shown; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.4g", i ? ", " : "; first ", summary.first[i]);
    if (tensor->count > summary.shown)
        (void)snprintf(text + length, sizeof text - length, ", ...");
    print_wrapped(label, text);
}

/* --------------------------------------------------------------------------------------------------------------- text */

void run_report_inputs(const struct run_report *report) {
    const struct job *const job = report->job;
    device_print_line("device   ", &report->session->device);
    for (int i = 0; i < ROLES; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if (!tensor->element || job->operation->roles[i].output)
            continue;
        char shape[SHAPE_TEXT];
        printf("%-8s %s %s, from ", job->operation->roles[i].name, tensor->element->name, tensor_shape_text(tensor, shape));
        print_name(tensor->name);
        putchar('\n');
    }
}

enum { NOTE = 1024 };

/* The line of the plan's description on the source of the config's knobs; "": there is none. */
static void read_note(const clnorm_plan *plan, char note[NOTE]) {
    static const char word[] = "config: ";
    const size_t length = clnorm_plan_describe(plan, NULL, 0);
    char *const text = malloc(length + 1);
    *note = '\0';
    if (!text)
        return;
    clnorm_plan_describe(plan, text, length + 1);
    const char *line = text;
    while (line && strncmp(line, word, strlen(word)) != 0) {
        const char *const newline = strchr(line, '\n');
        line = newline ? newline + 1 : NULL;
    }
    if (line)
        (void)snprintf(note, NOTE, "%.*s", (int)strcspn(line + strlen(word), "\n"), line + strlen(word));
    free(text);
}

void run_report_config(const struct run_report *report) {
    clnorm_config config;
    char text[CONFIG_TEXT];
    char note[NOTE];
    clnorm_plan_config(report->launch->plan, &config);
    clnorm_config_text(&config, text, sizeof text);
    print_wrapped("config   ", text);
    read_note(report->launch->plan, note);
    if (*note)
        print_wrapped("         ", note);
}

static double gb_s_of(const struct run_report *report) {
    return report->us > 0 ? (double)job_bytes(report->job) / report->us * 1e-3 : 0;
}

void run_report_time(const struct run_report *report) {
    char size[SIZE_TEXT];
    printf("time     %.1f us, the median of %d run%s: %.1f GB/s, %s in and out\n", report->us, report->repeat,
           plural((uint64_t)report->repeat), gb_s_of(report), size_text(job_bytes(report->job), size));
}

void run_report_verdicts(const struct run_report *report) {
    for (int i = 0; i < ROLES; i++) {
        const struct verdict *const verdict = &report->verdicts[i];
        const struct tensor *const tensor = &report->job->tensor[i];
        if (verdict->checked)
            printf("verify   %-7s largest error %.3g, tolerance %.3g there (%s): %s\n", tensor->name, verdict->error,
                   verdict->tolerance, clnorm_dtype_name(tensor->element->dtype), verdict->wrong ? "wrong" : "good");
    }
}

/* An .npy file holds the first output only. */
static void print_written(const struct run_report *report) {
    char text[1024 + ROLES * (SHAPE_TEXT + 64)];
    const bool npy = tensor_format_of(report->out) == FORMAT_NPY;
    size_t length = (size_t)snprintf(text, sizeof text, "%.1000s:", report->out);
    int written = 0;
    for (int i = 0; i < ROLES && !(npy && written); i++) {
        const struct tensor *const tensor = &report->job->tensor[i];
        char shape[SHAPE_TEXT];
        if (report->job->output[i])
            length += (size_t)snprintf(text + length, sizeof text - length, "%s %s %s %s", written++ ? "," : "",
                                       tensor->name, tensor->element->name, tensor_shape_text(tensor, shape));
    }
    print_wrapped("wrote    ", text);
}

void run_report_outputs(const struct run_report *report) {
    for (int i = 0; i < ROLES; i++)
        if (report->job->output[i])
            print_values(&report->job->tensor[i]);
    if (report->out)
        print_written(report);
}

/* --------------------------------------------------------------------------------------------------------------- JSON */

/* null where the number is not finite: JSON has no such numbers. */
static json_t *real_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *tensor_json(const struct tensor *tensor, const char *role) {
    json_t *const shape = json_array();
    for (unsigned i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s, s:s, s:s, s:o}", "role", role, "tensor", tensor->name, "dtype", tensor->element->name, "shape",
                     shape);
}

static json_t *output_json(const struct run_report *report, int role) {
    const struct tensor *const tensor = &report->job->tensor[role];
    const struct verdict *const verdict = &report->verdicts[role];
    const struct summary summary = summary_of(tensor);
    json_t *const object = tensor_json(tensor, tensor->name);
    json_t *const first = json_array();
    for (unsigned i = 0; i < summary.shown; i++)
        json_array_append_new(first, real_json(summary.first[i]));
    json_object_update_new(object, json_pack("{s:o, s:o, s:o, s:I, s:o}", "min", real_json(summary.min), "mean",
                                             real_json(summary.mean), "max", real_json(summary.max), "not_finite",
                                             (json_int_t)summary.others, "first", first));
    if (verdict->checked)
        json_object_set_new(object, "verify",
                            json_pack("{s:I, s:I, s:o, s:o}", "checked", (json_int_t)verdict->checked, "wrong",
                                      (json_int_t)verdict->wrong, "error", real_json(verdict->error), "tolerance",
                                      real_json(verdict->tolerance)));
    return object;
}

static json_t *report_json(const struct run_report *report) {
    const struct job *const job = report->job;
    const clnorm_device_info *const device = &report->session->device;
    json_t *const inputs = json_array();
    json_t *const outputs = json_array();
    for (int i = 0; i < ROLES; i++) {
        if (job->output[i])
            json_array_append_new(outputs, output_json(report, i));
        else if (job->tensor[i].element)
            json_array_append_new(inputs, tensor_json(&job->tensor[i], job->operation->roles[i].name));
    }
    clnorm_config config;
    char note[NOTE];
    clnorm_plan_config(report->launch->plan, &config);
    read_note(report->launch->plan, note);
    return json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:o, s:o, s:s, s:f, s:i, s:f, s:I, s:b, s:o, s:s?}", "op",
                     job->operation->name, "rows", (json_int_t)job->rows, "cols", (json_int_t)job->cols, "device",
                     device->name, "driver", device->driver, "platform", device->platform_name, "inputs", inputs, "config",
                     config_json(&config), "config_note", note, "us", report->us, "runs", report->repeat, "gb_s",
                     gb_s_of(report), "bytes", (json_int_t)job_bytes(job), "verified", report->verified, "outputs", outputs,
                     "out", report->out);
}

bool run_report_json(const struct run_report *report, struct fault *fault) {
    return json_print(report_json(report), fault);
}
