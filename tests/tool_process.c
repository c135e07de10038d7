#include "tool_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary.h"
#include "tensor_write.h"

static char folder[TEMPORARY_PATH];

struct result result;

void read_text(const char *path, char *text) {
    FILE *const stream = fopen(path, "r");
    assert_non_null(stream);
    text[fread(text, 1, MOST_TEXT - 1, stream)] = '\0';
    assert_int_equal(fclose(stream), 0);
}

void run_in(const char *environment, const char *format, ...) {
    char words[4096];
    char command[8192];
    va_list arguments;
    va_start(arguments, format);
    assert_in_range(vsnprintf(words, sizeof words, format, arguments), 0, sizeof words - 1);
    va_end(arguments);
    (void)snprintf(command, sizeof command, "%s \"$CLNORM_TOOL\" %s >out.txt 2>err.txt", environment, words);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    result.code = WEXITSTATUS(status);
    read_text("out.txt", result.out);
    read_text("err.txt", result.err);
}

void assert_done(void) {
    if (result.code != EXIT_DONE || *result.err)
        fail_msg("exit code %d, stderr: %s", result.code, result.err);
}

void assert_failed(int code, const char *part) {
    const char *const newline = strchr(result.err, '\n');
    if (result.code != code || strncmp(result.err, "clnorm: ", 8) != 0 || !strstr(result.err, part) || !newline ||
        newline[1])
        fail_msg("exit code %d, not %d, or not \"%s\" in the one line: %s", result.code, code, part, result.err);
}

void assert_each_refused(const char *command, const struct refused_words *table, size_t count) {
    for (size_t i = 0; i < count; i++) {
        run("%s %s", command, table[i].words);
        assert_failed(EXIT_REQUEST, table[i].part);
    }
}

void assert_says(const char *part) {
    if (!strstr(result.out, part))
        fail_msg("\"%s\" is not in: %s", part, result.out);
}

void assert_narrow(void) {
    for (const char *line = result.out; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        if (strcspn(line, "\n") > 80)
            fail_msg("%zu columns: %.*s", strcspn(line, "\n"), (int)strcspn(line, "\n"), line);
}

void open_file(struct tensor_file *file, const char *path) {
    struct fault fault = {0};
    if (!tensor_file_open(file, path, &fault))
        fail_msg("%s", fault.text);
}

const struct tensor *find(const struct tensor_file *file, const char *name, clnorm_dtype dtype, unsigned rank) {
    const struct tensor *const tensor = tensor_file_find(file, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->element->dtype, dtype);
    assert_int_equal(tensor->rank, rank);
    return tensor;
}

double at(const struct tensor *tensor, uint64_t i) {
    return element_load(tensor->element, tensor->data, i);
}

void put_tensor(const char *path, const char *name, const char *element, unsigned rank, uint64_t rows, uint64_t cols) {
    struct tensor tensor = {.name = name, .element = element_by_name(element), .rank = rank, .shape = {rows, cols}};
    assert_true(tensor_measure(&tensor));
    unsigned char *const bytes = calloc(1, tensor.size + 1);
    assert_non_null(bytes);
    for (uint64_t i = 0; tensor.element->dtype && i < tensor.count; i++)
        element_store(tensor.element, bytes, i, (double)(i % 17));
    tensor.data = bytes;
    const struct tensor *const tensors[] = {&tensor};
    struct fault fault = {0};
    if (!tensor_write(path, tensors, 1, &fault))
        fail_msg("%s", fault.text);
    free(bytes);
}

int make_folder(void **state) {
    (void)state;
    struct fault fault = {0};
    if (!getenv("CLNORM_TOOL") || !getenv("CLNORM_SAMPLE") || !temporary_make(folder, &fault) || chdir(folder)) {
        print_error("CLNORM_TOOL, CLNORM_SAMPLE or a scratch folder is missing: %s\n", fault.text);
        return -1;
    }
    return 0;
}

int remove_folder(void **state) {
    (void)state;
    temporary_remove(folder);
    return access(folder, F_OK) ? 0 : -1;
}

json_t *json_of(const char *text) {
    json_error_t error;
    json_t *const json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("no JSON, %s: %s", error.text, text);
    return json;
}

void assert_has_keys(const json_t *object, const char *const *keys) {
    for (; *keys; keys++)
        if (!json_object_get(object, *keys))
            fail_msg("no key %s", *keys);
}

size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}
