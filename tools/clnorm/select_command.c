#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "options.h"
#include "report.h"

static const char epilogue[] = "A selector has terms separated by commas, all of which must hold:\n"
                               "  gpu, cpu, accelerator          the kind of device\n"
                               "  P:D, uuid:...                  as `clnorm devices` prints them\n"
                               "  name=TEXT, vendor=TEXT, platform=TEXT   a part of the text, in any case\n"
                               "  memory>=8G                     K, M, G or T\n"
                               "  fp16, fp64, subgroups          a feature\n"
                               "Alternatives are separated by ';'; the first that a device matches is taken:\n"
                               "  gpu,vendor=nvidia;cpu\n"
                               "Without a selector CLNORM_DEVICE is taken; without that, the best device.\n";

enum { REASON = 512 };

/* Names the alternative of the selector that the device matches. text is cut at its semicolons. */
static void reason_of_alternatives(char *text, const char *source, const clnorm_device_info *chosen, char reason[REASON]) {
    unsigned number = 0;
    for (char *alternative = text; alternative;) {
        char *const semicolon = strchr(alternative, ';');
        if (semicolon)
            *semicolon = '\0';
        number++;
        clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
        if (*alternative && !clnorm_device_select(alternative, &device) && device.device == chosen->device) {
            if (number == 1 && !semicolon)
                (void)snprintf(reason, REASON, "the best device that matches %s, %s", source, alternative);
            else
                (void)snprintf(reason, REASON, "the best device that matches alternative %u of %s, %s", number, source,
                               alternative);
            return;
        }
        alternative = semicolon ? semicolon + 1 : NULL;
    }
    (void)snprintf(reason, REASON, "the device that %s matches", source);
}

static bool reason_of(const char *selector, const clnorm_device_info *chosen, char reason[REASON], struct fault *fault) {
    const bool given = selector && *selector;
    const char *const variable = getenv("CLNORM_DEVICE");
    const char *const text = given ? selector : variable;
    if (!text || !*text) {
        (void)snprintf(reason, REASON, "the best device: GPU, accelerator, CPU; then by units x clock");
        return true;
    }
    char *const copy = strdup(text);
    if (!copy)
        return fault_set(fault, EXIT_FAILED, "out of memory");
    reason_of_alternatives(copy, given ? "the selector" : "CLNORM_DEVICE", chosen, reason);
    free(copy);
    return true;
}

static bool print_json(const clnorm_device_info *device, const char *reason, struct fault *fault) {
    json_t *const object = device_json(device);
    json_object_set_new(object, "reason", json_string(reason));
    return json_print(object, fault);
}

static void print_env(const clnorm_device_info *device) {
    if (*device->uuid)
        printf("CLNORM_DEVICE=uuid:%s\n", device->uuid);
    else
        printf("CLNORM_DEVICE=%u:%u\n", device->platform_index, device->device_index);
}

static bool run_select(struct command_line *line, bool json, bool env, struct fault *fault) {
    const char *const selector = command_line_next(line);
    if (!command_line_end(line, fault))
        return false;
    if (json && env)
        return fault_set(fault, EXIT_REQUEST, "--json and --env: expected one of them");
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    const clnorm_status status = clnorm_device_select(selector, &device);
    if (status)
        return fault_library(fault, status, "select");
    char reason[REASON];
    if (!reason_of(selector, &device, reason, fault))
        return false;
    if (json)
        return print_json(&device, reason, fault);
    if (env) {
        print_env(&device);
        return true;
    }
    device_print(&device);
    printf("     %-9s %s\n", "chosen as", reason);
    return true;
}

int select_command(int argc, const char **argv, struct fault *fault) {
    int json = 0;
    int env = 0;
    const struct poptOption table[] = {
        {"json", '\0', POPT_ARG_NONE, &json, 0, "Print a JSON object", NULL},
        {"env", '\0', POPT_ARG_NONE, &env, 0, "Print CLNORM_DEVICE=... for the environment", NULL},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[SELECTOR] [OPTION...]", epilogue, table, fault))
        return fault->code;
    const bool done = line.help || run_select(&line, json, env, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
