/* The input files of `clnorm run`, and the roles of their tensors. */
#ifndef RUN_INPUT_H
#define RUN_INPUT_H

#include "operation.h"

struct run_input {
    struct tensor_file *files;
    size_t count;
    const char *names[ROLES]; /* the tensor that ROLE=TENSOR names; "": left out; NULL: the role's name */
};

/* paths: ended by NULL; NULL: none. */
bool run_input_open(struct run_input *input, char *const *paths, struct fault *fault);

/* Also closes what run_input_open could not finish. */
void run_input_close(struct run_input *input);

/* Reads "ROLE=TENSOR", which is borrowed. */
bool run_input_map(struct run_input *input, const struct operation *operation, const char *word, struct fault *fault);

/* Gives the job its inputs, which are borrowed. */
bool run_input_bind(const struct run_input *input, struct job *job, struct fault *fault);

#endif
