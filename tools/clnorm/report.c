#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 80 };

void progress(const char *format, ...) {
    if (!isatty(STDERR_FILENO))
        return;
    char line[COLUMNS]; /* a longer one would wrap, and could not be removed */
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\r\x1b[K%s", line);
    fflush(stderr);
}

void progress_end(void) {
    if (isatty(STDERR_FILENO))
        fputs("\r\x1b[K", stderr);
}

/* Characters to the next space, or past the next comma, outside brackets. */
static int word_length(const char *text) {
    int length = 0;
    for (int depth = 0; text[length] && (depth > 0 || !strchr(" ,", text[length])); length++)
        depth += (text[length] == '[') - (text[length] == ']');
    return length + (text[length] == ',');
}

void print_wrapped(const char *label, const char *text) {
    const int indent = (int)strlen(label);
    int column = printf("%s", label);
    while (*text) {
        const int space = *text == ' ';
        const int start = (int)strspn(text, " ");
        const int length = word_length(text + start);
        if (column + space + length > COLUMNS && column > indent)
            column = printf("\n%*s", indent, "") - 1;
        else if (space)
            column += printf(" ");
        column += printf("%.*s", length, text + start);
        text += start + length;
    }
    putchar('\n');
}

void print_name(const char *name) {
    for (const char *c = name; *c; c++)
        putchar((unsigned char)*c < ' ' || *c == '\x7f' ? '?' : *c);
}

void print_column(const char *name, int width) {
    if (strlen(name) > (size_t)width)
        printf("%s\n%*s ", name, width, "");
    else
        printf("%-*s ", width, name);
}

const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

char *left_text(double seconds, char text[LEFT_TEXT]) {
    if (seconds < 90)
        (void)snprintf(text, LEFT_TEXT, "about %.0f s left", seconds > 1 ? seconds : 1);
    else if (seconds < 5400)
        (void)snprintf(text, LEFT_TEXT, "about %.0f min left", seconds / 60);
    else
        (void)snprintf(text, LEFT_TEXT, "about %.1f h left", seconds / 3600);
    return text;
}

char *us_text(double us, char text[US_TEXT]) {
    (void)snprintf(text, US_TEXT, us < 99999.995 ? "%.2f" : "%.0f", us);
    return text;
}

char *size_text(uint64_t bytes, char text[SIZE_TEXT]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    unsigned unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    (void)snprintf(text, SIZE_TEXT, unit && size < 100 ? "%.3g %s" : "%.0f %s", size, units[unit]);
    return text;
}

/* "GPU", "CPU", "accelerator", "other". */
static const char *kind_name(clnorm_device_kind kind) {
    switch (kind) {
    case CLNORM_DEVICE_GPU:
        return "GPU";
    case CLNORM_DEVICE_ACCELERATOR:
        return "accelerator";
    case CLNORM_DEVICE_CPU:
        return "CPU";
    default:
        return "other";
    }
}

/* Elements of a type in a hardware vector, as the device reports them; 0: it has no arithmetic of the type. */
static cl_uint vector_width(const clnorm_device_info *device, cl_device_info query) {
    cl_uint width = 0;
    return clGetDeviceInfo(device->device, query, sizeof width, &width, NULL) == CL_SUCCESS ? width : 0;
}

void device_print_line(const char *label, const clnorm_device_info *device) {
    char text[640];
    (void)snprintf(text, sizeof text, "%u:%u %s (%s)", device->platform_index, device->device_index, device->name,
                   device->platform_name);
    print_wrapped(label, text);
}

/* Prints a label and a value, wrapped at 80 columns. */
__attribute__((format(printf, 2, 3))) static void print_fact(const char *label, const char *format, ...) {
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    char column[32];
    (void)snprintf(column, sizeof column, "     %-9s ", label);
    print_wrapped(column, value);
}

void device_print(const clnorm_device_info *device) {
    char memory[SIZE_TEXT];
    char largest[SIZE_TEXT];
    char cache[SIZE_TEXT];
    char local[SIZE_TEXT];
    char index[32];
    (void)snprintf(index, sizeof index, "%u:%-3u ", device->platform_index, device->device_index);
    print_wrapped(index, device->name);
    print_fact("kind", "%s, %u compute units at %u MHz", kind_name(device->kind), device->compute_units, device->clock_mhz);
    print_fact("platform", "%s", device->platform_name);
    print_fact("driver", "%s; OpenCL C %u.%u", device->driver, device->opencl_c_version / 100,
               device->opencl_c_version / 10 % 10);
    print_fact("memory", "%s, buffers up to %s", size_text(device->global_memory, memory),
               size_text(device->max_allocation, largest));
    print_fact("cache", "%s; local memory %s, work-groups up to %" PRIu64,
               device->cache_size ? size_text(device->cache_size, cache) : "unknown",
               size_text(device->local_memory, local), device->max_work_group_size);
    print_fact("vectors", "half %u, float %u, double %u", vector_width(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF),
               vector_width(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
               vector_width(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE));
    char step[48] = "";
    if (device->subgroup_size)
        (void)snprintf(step, sizeof step, ", %u work-items in lockstep", device->subgroup_size);
    print_fact("features", "fp16 %s, fp64 %s, sub-groups %s%s", device->fp16 ? "yes" : "no", device->fp64 ? "yes" : "no",
               device->subgroups ? "yes" : "no", step);
    if (device->compute_capability)
        print_fact("NVIDIA", "compute capability %u.%u", device->compute_capability / 10, device->compute_capability % 10);
    if (*device->uuid)
        print_fact("uuid", "%s", device->uuid);
}

json_t *device_json(const clnorm_device_info *device) {
    char index[32];
    (void)snprintf(index, sizeof index, "%u:%u", device->platform_index, device->device_index);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:{s:i, s:i, s:i}, s:i, s:i, s:I, s:I, "
        "s:I, s:I, s:I, s:b, s:b, s:b, s:b}",
        "index", index, "name", device->name, "vendor", device->vendor, "kind", kind_name(device->kind), "family",
        clnorm_platform_family_name(device->family), "platform", device->platform_name, "platform_version",
        device->platform_version, "version", device->version, "driver", device->driver, "uuid", device->uuid,
        "opencl_c_version", (int)device->opencl_c_version, "compute_units", (int)device->compute_units, "clock_mhz",
        (int)device->clock_mhz, "vector_width", "half", (int)vector_width(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF),
        "float", (int)vector_width(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT), "double",
        (int)vector_width(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE), "subgroup_size", (int)device->subgroup_size,
        "compute_capability", (int)device->compute_capability, "memory", (json_int_t)device->global_memory,
        "max_allocation", (json_int_t)device->max_allocation, "cache", (json_int_t)device->cache_size, "local_memory",
        (json_int_t)device->local_memory, "max_work_group_size", (json_int_t)device->max_work_group_size, "fp16",
        device->fp16, "fp64", device->fp64, "subgroups", device->subgroups, "little_endian", device->little_endian);
}

bool json_print(json_t *json, struct fault *fault) {
    if (!json)
        return fault_set(fault, EXIT_FAILED, "out of memory for JSON");
    const bool done = !json_dumpf(json, stdout, JSON_INDENT(2)) && putchar('\n') != EOF;
    json_decref(json);
    return done || fault_set(fault, EXIT_FAILED, "standard output cannot be written");
}
