#include "run_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "closest.h"

bool run_input_open(struct run_input *input, char *const *paths, struct fault *fault) {
    size_t count = 0;
    while (paths && paths[count])
        count++;
    if (count == 0)
        return fault_set(fault, EXIT_REQUEST, "--in FILE: expected at least one");
    input->files = calloc(count, sizeof *input->files);
    if (!input->files)
        return fault_set(fault, EXIT_FAILED, "out of memory for %zu files", count);
    for (; input->count < count; input->count++) {
        const char *const path = paths[input->count];
        if (!*path)
            return fault_set(fault, EXIT_REQUEST, "--in '': expected the name of a file");
        if (!tensor_file_open(&input->files[input->count], path, fault))
            return false;
    }
    return true;
}

bool run_input_map(struct run_input *input, const struct operation *operation, const char *word, struct fault *fault) {
    const struct role *const roles = operation->roles;
    const char *const equals = strchr(word, '=');
    if (!equals)
        return fault_set(fault, EXIT_REQUEST, "'%s': expected ROLE=TENSOR", word);
    const size_t length = (size_t)(equals - word);
    for (int i = 0; roles[i].name; i++) {
        if (roles[i].output || !closest_is(word, length, roles[i].name))
            continue;
        if (input->names[i])
            return fault_set(fault, EXIT_REQUEST, "'%s': %s is given twice", word, roles[i].name);
        input->names[i] = equals + 1;
        return true;
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    struct closest closest = closest_to(name);
    for (int i = 0; roles[i].name && !roles[i].output; i++)
        closest_offer(&closest, roles[i].name);
    char text[CLOSEST_TEXT];
    return fault_set(fault, EXIT_REQUEST, "'%s': %s has no input of that role; %s", word, operation->name,
                     closest_text(&closest, text));
}

/* Finds a tensor by name in all files; *found stays NULL where there is none. */
static bool find_tensor(const struct run_input *input, const char *name, const struct tensor **found, struct fault *fault) {
    const char *path = NULL;
    for (size_t i = 0; i < input->count; i++) {
        const struct tensor *const tensor = tensor_file_find(&input->files[i], name);
        if (tensor && *found)
            return fault_set(fault, EXIT_REQUEST, "tensor '%s' is in two files, %s and %s", name, path,
                             input->files[i].path);
        if (!tensor)
            continue;
        *found = tensor;
        path = input->files[i].path;
    }
    return true;
}

enum { SHOWN = 3 };

/* Names of tensors, the closest to the wanted one first. */
struct neighbours {
    const char *names[SHOWN];
    size_t distances[SHOWN];
    size_t count; /* of all tensors */
};

static void add_neighbour(struct neighbours *neighbours, const char *wanted, const char *name) {
    const size_t distance = closest_distance(wanted, name);
    size_t place = neighbours->count < SHOWN ? neighbours->count : SHOWN;
    while (place > 0 && distance < neighbours->distances[place - 1])
        place--;
    for (size_t i = SHOWN - 1; i > place; i--) {
        neighbours->names[i] = neighbours->names[i - 1];
        neighbours->distances[i] = neighbours->distances[i - 1];
    }
    if (place < SHOWN) {
        neighbours->names[place] = name;
        neighbours->distances[place] = distance;
    }
    neighbours->count++;
}

/* Reports a missing tensor, and the names closest to it. */
static bool fail_missing(const struct run_input *input, const char *role, const char *name, struct fault *fault) {
    struct neighbours neighbours = {0};
    for (size_t f = 0; f < input->count; f++)
        for (size_t i = 0; i < input->files[f].count; i++)
            add_neighbour(&neighbours, name, input->files[f].tensors[i].name);
    char known[256] = "no tensors";
    for (size_t i = 0; i < neighbours.count && i < SHOWN; i++) {
        const size_t length = i ? strlen(known) : 0;
        (void)snprintf(known + length, sizeof known - length, "%s'%.60s'%s", i ? ", " : "", neighbours.names[i],
                       i == SHOWN - 1 && neighbours.count > SHOWN ? ", ..." : "");
    }
    return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s) is not in %s%s, which %s %s; name one with %s=TENSOR", name,
                     role, input->files[0].path, input->count > 1 ? " nor in the other files" : "",
                     input->count > 1 ? "have" : "has", known, role);
}

/* The only tensor of the only file is the first input, whatever its name, unless the request names one. */
static const struct tensor *only_tensor(const struct run_input *input) {
    const bool only = input->count == 1 && input->files[0].count == 1 && !input->names[0];
    return only ? &input->files[0].tensors[0] : NULL;
}

bool run_input_bind(const struct run_input *input, struct job *job, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    const struct tensor *const only = only_tensor(input);
    for (int i = 0; roles[i].name; i++) {
        if (roles[i].output)
            continue;
        const char *const name = input->names[i] ? input->names[i] : roles[i].name;
        const struct tensor *found = i == 0 ? only : NULL;
        const bool looked_for = *name && !found && (input->names[i] || !only);
        if (looked_for && !find_tensor(input, name, &found, fault))
            return false;
        if (found)
            job->tensor[i] = *found;
        else if (!roles[i].optional && !*name)
            return fault_set(fault, EXIT_REQUEST, "'%s=': expected the name of a tensor, which %s needs", roles[i].name,
                             job->operation->name);
        else if (!roles[i].optional || (input->names[i] && *name))
            return fail_missing(input, roles[i].name, name, fault);
    }
    return true;
}

void run_input_close(struct run_input *input) {
    for (size_t i = 0; i < input->count; i++)
        tensor_file_close(&input->files[i]);
    free(input->files);
    *input = (struct run_input){0};
}
