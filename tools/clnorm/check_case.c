#include "check_case.h"

#include <inttypes.h>
#include <stdio.h>

void check_case_add_input(struct check_case *check_case, const char *role, clnorm_dtype dtype) {
    int i = 0;
    while (check_case->inputs[i].role)
        i++;
    check_case->inputs[i].role = role;
    check_case->inputs[i].dtype = dtype;
}

char *check_case_text(const struct check_case *check_case, char text[CASE_TEXT]) {
    const struct operation_options *const options = &check_case->options;
    size_t length = (size_t)snprintf(text, CASE_TEXT, "%s %" PRIu64 "x%" PRIu64, check_case->operation, check_case->rows,
                                     check_case->cols);
    if (check_case->spatial)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, "x%" PRIu64 ", channels %s", check_case->spatial,
                                   options->layout);
    if (options->groups)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %lld groups", options->groups);
    if (options->group_size)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, " in groups of %lld", options->group_size);
    for (int i = 0; check_case->inputs[i].role; i++)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, "%s %s=%s", i ? "" : ",", check_case->inputs[i].role,
                                   clnorm_dtype_name(check_case->inputs[i].dtype));
    if (options->weight_rows)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %lld rows of weights", options->weight_rows);
    if (options->weight_repeat)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, " for %lld rows each", options->weight_repeat);
    if (options->rope)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", rope %s", options->rope);
    if (options->rope_dims)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, " of %lld columns", options->rope_dims);
    if (options->dtype)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, " y=%s", options->dtype);
    if (options->outputs)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", outputs %s", options->outputs);
    if (options->quantize)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", quantised by %s", options->quantize);
    if (options->reduction)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->reduction);
    if (options->gate)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", gate %s%s", options->gate,
                                   options->gate_first ? " first" : "");
    if (options->outer)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", rows %s", options->outer);
    if (options->dropout > 0)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", dropout %g", options->dropout);
    if (options->activation)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->activation);
    if (options->s_given)
        length += (size_t)snprintf(text + length, CASE_TEXT - length, ", of s");
    for (int i = 0; choice_at(i); i++)
        if (options->choices.word[i])
            length += (size_t)snprintf(text + length, CASE_TEXT - length, ", %s", options->choices.word[i]);
    if (options->config)
        (void)snprintf(text + length, CASE_TEXT - length, ", %s", options->config);
    return text;
}
