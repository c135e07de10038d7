#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "options.h"
#include "report.h"
#include "tensor_file.h"

enum { NAME_WIDTH = 44 };

static void print_text(const struct tensor_file *file) {
    size_t width = 0;
    uint64_t bytes = 0;
    char size[SIZE_TEXT];
    for (size_t i = 0; i < file->count; i++) {
        const size_t length = strlen(file->tensors[i].name);
        width = length > width && length <= NAME_WIDTH ? length : width;
        bytes += file->tensors[i].size;
    }
    for (size_t i = 0; i < file->count; i++) {
        const struct tensor *const tensor = &file->tensors[i];
        char shape[SHAPE_TEXT];
        const size_t length = strlen(tensor->name);
        print_name(tensor->name);
        printf("%*s  %-7s  %9s  %s\n", length < width ? (int)(width - length) : 0, "", tensor->element->name,
               size_text(tensor->size, size), tensor_shape_text(tensor, shape));
    }
    printf("%zu tensor%s, %s\n", file->count, plural(file->count), size_text(bytes, size));
}

static json_t *tensor_json(const struct tensor *tensor) {
    json_t *const shape = json_array();
    for (unsigned i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s, s:s, s:o, s:I}", "name", tensor->name, "dtype", tensor->element->name, "shape", shape, "bytes",
                     (json_int_t)tensor->size);
}

static bool print_json(const struct tensor_file *file, struct fault *fault) {
    json_t *const list = json_array();
    bool done = list;
    for (size_t i = 0; done && i < file->count; i++)
        done = !json_array_append_new(list, tensor_json(&file->tensors[i]));
    if (!done)
        return fault_set(fault, EXIT_FAILED, "%s: a name is not valid UTF-8, or out of memory for JSON", file->path);
    return json_print(list, fault);
}

static bool run_tensors(struct command_line *line, bool json, struct fault *fault) {
    const char *const path = command_line_next(line);
    struct tensor_file file;
    if (!path)
        return fault_set(fault, EXIT_REQUEST, "expected a FILE");
    if (!command_line_end(line, fault) || !tensor_file_open(&file, path, fault))
        return false;
    bool done = true;
    if (json)
        done = print_json(&file, fault);
    else
        print_text(&file);
    tensor_file_close(&file);
    return done;
}

int tensors_command(int argc, const char **argv, struct fault *fault) {
    int json = 0;
    const struct poptOption table[] = {
        {"json", '\0', POPT_ARG_NONE, &json, 0, "Print a JSON list", NULL},
        POPT_TABLEEND,
    };
    struct command_line line;
    if (!command_line_read(&line, argc, argv, "FILE [OPTION...]", NULL, table, fault))
        return fault->code;
    const bool done = line.help || run_tensors(&line, json, fault);
    command_line_close(&line);
    return done ? EXIT_DONE : fault->code;
}
