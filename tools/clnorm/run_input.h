/* The files of `clnorm run`, and which of their tensors are read as what. */
#ifndef RUN_INPUT_H
#define RUN_INPUT_H

#include "operation.h"

struct run_input {
    struct tensor_file *files;
    size_t count;
    const char *names[ROLES]; /* tensors that ROLE=TENSOR names; "": left out; NULL: named as the role */
};

/* paths: ended by NULL; NULL: none. */
bool run_input_open(struct run_input *input, char *const *paths, struct fault *fault);

/* Takes a half-opened one. */
void run_input_close(struct run_input *input);

/* Takes "ROLE=TENSOR", which is borrowed. */
bool run_input_map(struct run_input *input, const struct operation *operation, const char *word, struct fault *fault);

/* Gives the job its inputs, which are borrowed. */
bool run_input_bind(const struct run_input *input, struct job *job, struct fault *fault);

#endif
