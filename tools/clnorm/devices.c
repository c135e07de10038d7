#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "options.h"
#include "report.h"

static bool describe_devices(const cl_device_id *ids, size_t count, clnorm_device_info *devices, struct fault *fault) {
    for (size_t i = 0; i < count; i++) {
        clnorm_device_info_init(&devices[i]);
        const clnorm_status status = clnorm_device_describe(ids[i], &devices[i]);
        if (status)
            return fault_library(fault, status, "devices");
    }
    return true;
}

/* Lists every device. The caller frees *devices. */
static bool list_devices(clnorm_device_info **devices, size_t *count, struct fault *fault) {
    clnorm_status status = clnorm_device_list(NULL, 0, count);
    if (status)
        return fault_library(fault, status, "devices");
    const size_t capacity = *count;
    cl_device_id *const ids = calloc(capacity + 1, sizeof *ids);
    *devices = calloc(capacity + 1, sizeof **devices);
    bool listed = false;
    if (!ids || !*devices) {
        fault_set(fault, EXIT_FAILED, "out of memory for %zu devices", capacity);
    } else {
        status = clnorm_device_list(ids, capacity, count);
        *count = *count < capacity ? *count : capacity;
        listed = status ? fault_library(fault, status, "devices") : describe_devices(ids, *count, *devices, fault);
    }
    free(ids);
    return listed;
}

static bool print_json(const clnorm_device_info *devices, size_t count, struct fault *fault) {
    json_t *const list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, device_json(&devices[i]));
    return json_print(list, fault);
}

static void print_text(const clnorm_device_info *devices, size_t count) {
    if (count == 0)
        printf("No OpenCL device: install a driver, such as pocl-opencl-icd for CPUs.\n");
    for (size_t i = 0; i < count; i++) {
        if (i)
            putchar('\n');
        device_print(&devices[i]);
    }
}

static bool run_devices(struct command_line *line, bool json, struct fault *fault) {
    if (!command_line_end(line, fault))
        return false;
    clnorm_device_info *devices = NULL;
    size_t count;
    bool done = list_devices(&devices, &count, fault);
    if (done && json)
        done = print_json(devices, count, fault);
    else if (done)
        print_text(devices, count);
    free(devices);
    return done;
}

int devices_command(int argc, const char **argv, struct fault *fault) {
    int json = 0;
    const struct poptOption table[] = {
        {"json", '\0', POPT_ARG_NONE, &json, 0, "Print a JSON list", NULL},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "[OPTION...]", NULL, table, fault))
        return fault->code;
    const bool done = line.help || run_devices(&line, json, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
