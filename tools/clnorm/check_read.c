#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_case.h"

enum { LINE = 512 };

_Noreturn static void refuse(const char *line, const char *word) {
    (void)fprintf(stderr, "check: '%s' in \"%s\" cannot be read\n", word, line);
    abort();
}

static clnorm_dtype dtype_of(const char *name) {
    int dtype = CLNORM_F8_E5M2; /* the last one */
    while (dtype && strcmp(clnorm_dtype_name((clnorm_dtype)dtype), name) != 0)
        dtype--;
    return (clnorm_dtype)dtype;
}

/* The index of a word; 0, the default that no line gives, where there is no such word. */
static int index_of(const char *word, const char *const words[4]) {
    int i = 3;
    while (i && strcmp(words[i], word) != 0)
        i--;
    return i;
}

/* roles: "x,weight" */
static bool read_inputs(struct check_case *made, char *roles, clnorm_dtype dtype) {
    const struct operation *operation;
    struct fault fault;
    char *rest;
    for (char *role = strtok_r(roles, ",", &rest); role; role = strtok_r(NULL, ",", &rest)) {
        if (!dtype || !operation_find(made->operation, &operation, &fault) || operation_role(operation, role) < 0)
            return false;
        check_case_add_input(made, role, dtype);
        if (!strcmp(role, "x"))
            made->x.dtype = dtype;
    }
    return true;
}

/* Reads a whole number. Returns 0, which is no valid value here, for anything else. */
static long long whole(const char *text) {
    char *end;
    const long long number = strtoll(text, &end, 10);
    return *end ? 0 : number;
}

/* Reads the options that `clnorm run` lacks, since it has these values from its files. */
static bool read_own(struct check_case *made, const char *name, const char *value) {
    static const char *const patterns[] = {"centred", "far", "apart", "special"};
    static const char *const scalings[] = {"none", "tensor", "row", "group"};
    long long number = 0;
    if (!strcmp(name, "pattern"))
        made->pattern = (enum pattern)(number = index_of(value, patterns));
    else if (!strcmp(name, "x-scaling"))
        made->x.scaling = (clnorm_scaling)(number = index_of(value, scalings));
    else if (!strcmp(name, "x-scale-group"))
        made->x.scale_group = (uint32_t)(number = whole(value));
    else if (!strcmp(name, "weight-rows"))
        made->options.weight_rows = number = whole(value);
    return number > 0;
}

static bool read_option(struct operation_options *options, const char *name, char *value) {
    struct poptOption rows[OPERATION_OPTIONS];
    operation_options_rows(options, rows);
    int i = 0;
    while (i < OPERATION_OPTIONS && strcmp(rows[i].longName, name) != 0)
        i++;
    if (i == OPERATION_OPTIONS || !*value == (rows[i].argInfo != POPT_ARG_NONE))
        return false;
    char *end = value + strlen(value);
    if (rows[i].argInfo == POPT_ARG_STRING)
        *(char **)rows[i].arg = value;
    else if (rows[i].argInfo == POPT_ARG_LONGLONG)
        *(long long *)rows[i].arg = strtoll(value, &end, 10);
    else if (rows[i].argInfo == POPT_ARG_DOUBLE)
        *(double *)rows[i].arg = strtod(value, &end);
    else
        *(int *)rows[i].arg = 1;
    return !*end;
}

static bool read_shape(struct check_case *made, const char *word) {
    char *end = NULL;
    made->rows = strtoull(word, &end, 10);
    made->cols = *end == 'x' ? strtoull(end + 1, &end, 10) : 0;
    made->spatial = *end == 'x' ? strtoull(end + 1, &end, 10) : 0;
    return made->cols && !*end;
}

struct check_case check_case_read(const char *line) {
    static char text[LINE];
    char *rest;
    (void)snprintf(text, LINE, "%s", line);
    struct check_case made = {.operation = strtok_r(text, " ", &rest), .options = OPERATION_OPTIONS_INIT};
    char *word = strtok_r(NULL, " ", &rest);
    if (strlen(line) >= LINE || !word || !read_shape(&made, word))
        refuse(line, "the shape");
    while ((word = strtok_r(NULL, " ", &rest))) {
        char *value = word + strcspn(word, "=");
        if (*value)
            *value++ = '\0';
        if (!read_option(&made.options, word, value) && !read_own(&made, word, value) &&
            !read_inputs(&made, word, dtype_of(value)))
            refuse(line, word);
    }
    return made;
}
