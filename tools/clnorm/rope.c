#include "rope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "options.h"

static bool refuse_tensors(const struct job *job, struct fault *fault) {
    static const char *const names[] = {"rope_cos", "rope_sin", "position"};
    for (int i = 0; i < 3; i++)
        if (job_tensor(job, names[i]))
            return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): it is read only with --rope",
                             job_tensor(job, names[i])->name, names[i]);
    return true;
}

static bool read_form(struct job *job, const struct operation_options *options, struct fault *fault) {
    const char *const word = options->rope;
    job->rope.form = word ? (clnorm_rope)parse_word("--rope", word, "neox|interleaved", fault) : CLNORM_ROPE_NONE;
    if (word && !job->rope.form)
        return false;
    if (!job->rope.form && options->rope_dims)
        return fault_set(fault, EXIT_REQUEST, "--rope-dims %lld: expected a --rope too", options->rope_dims);
    if (!job->rope.form && options->rope_heads)
        return fault_set(fault, EXIT_REQUEST, "--rope-heads %lld: expected a --rope too", options->rope_heads);
    return true;
}

bool rope_read(struct job *job, const struct operation_options *options, struct fault *fault) {
    if (!read_form(job, options, fault))
        return false;
    if (!job->rope.form)
        return refuse_tensors(job, fault);
    const struct tensor *const cos = job_tensor(job, "rope_cos");
    const uint64_t head = job->cols / job->groups;
    char shape[SHAPE_TEXT];
    if (!cos || !job_tensor(job, "rope_sin"))
        return fault_set(fault, EXIT_REQUEST, "%s: --rope needs this tensor, of shape [positions, rope_dims / 2]",
                         cos ? "rope_sin" : "rope_cos");
    if (cos->rank != 2 || !cos->shape[0] || !cos->shape[1])
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (rope_cos): shape %s; expected [positions, rope_dims / 2]",
                         cos->name, tensor_shape_text(cos, shape));
    const uint64_t dims = options->rope_dims ? (uint64_t)options->rope_dims : 2 * cos->shape[1];
    if (dims % 2 || dims > head)
        return fault_set(fault, EXIT_REQUEST,
                         "--rope-dims %" PRIu64
                         " (twice the columns of rope_cos): expected an even number, at most the %" PRIu64
                         " columns of a group",
                         dims, head);
    job->rope.dims = dims;
    job->rope.positions = cos->shape[0];
    job->rope.repeat = options->rope_heads ? (uint64_t)options->rope_heads : 1;
    const struct tensor *const position = job_tensor(job, "position");
    const uint64_t tokens = cln_divide_up(job->rows, job->rope.repeat);
    if (position && position->count == job->rows)
        job->rope.repeat = 1;
    if (!position && tokens > job->rope.positions)
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s' (rope_cos): shape %s; expected at least %" PRIu64 " positions, or a tensor position",
                         cos->name, tensor_shape_text(cos, shape), tokens);
    return true;
}

/* Loads a position; memory may have any alignment. */
static int64_t load(const struct tensor *tensor, uint64_t i) {
    int64_t wide;
    int32_t narrow;
    if (tensor->element->bits == 64) {
        memcpy(&wide, tensor->data + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, tensor->data + i * sizeof narrow, sizeof narrow);
    return narrow;
}

static bool narrow_positions(struct job *job, struct tensor *tensor, struct fault *fault) {
    int32_t *const numbers = malloc(tensor->count ? (size_t)tensor->count * sizeof *numbers : 1);
    if (!numbers)
        return fault_set(fault, EXIT_FAILED, "out of memory for %" PRIu64 " positions", tensor->count);
    for (uint64_t i = 0; i < tensor->count; i++) {
        const int64_t at = load(tensor, i);
        if (at < 0 || (uint64_t)at >= job->rope.positions || at > INT32_MAX) {
            free(numbers);
            return fault_set(fault, EXIT_REQUEST,
                             "tensor '%s' (position): [%" PRIu64 "] is %" PRId64 "; expected 0 to %" PRIu64
                             ", a row of rope_cos",
                             tensor->name, i, at, job->rope.positions - 1);
        }
        numbers[i] = (int32_t)at;
    }
    free(job->position); /* the tensor's old data may be this memory */
    job->position = numbers;
    tensor->data = (const unsigned char *)numbers;
    tensor->element = element_by_name("I32");
    tensor->size = tensor->count * sizeof *numbers;
    return true;
}

bool rope_check_positions(struct job *job, int role, struct fault *fault) {
    struct tensor *const tensor = &job->tensor[role];
    const uint64_t tokens = cln_divide_up(job->rows, job->rope.repeat);
    char shape[SHAPE_TEXT];
    if (strcmp(tensor->element->name, "I32") != 0 && strcmp(tensor->element->name, "I64") != 0)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (position): dtype %s; expected I32 or I64", tensor->name,
                         tensor->element->name);
    if (tensor->count != tokens)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (position): shape %s; expected %" PRIu64 " elements",
                         tensor->name, tensor_shape_text(tensor, shape), tokens);
    return !tensor->data || narrow_positions(job, tensor, fault);
}

void rope_make(struct job *job, const struct operation_options *options, uint64_t rows, uint64_t cols, uint64_t groups) {
    enum { MOST_POSITIONS = 4096 };
    if (!options->rope)
        return;
    job->rope.dims = options->rope_dims ? (uint64_t)options->rope_dims : cols / groups;
    job->rope.repeat = options->rope_heads ? (uint64_t)options->rope_heads : 1;
    job->rope.positions = cln_smaller(cln_larger(cln_divide_up(rows, job->rope.repeat), 1), MOST_POSITIONS);
}

void rope_fill_positions(const struct job *job, unsigned char *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const int32_t position = (int32_t)(7 * i % job->rope.positions);
        memcpy(bytes + i * sizeof position, &position, sizeof position);
    }
}

void rope_describe(const struct job *job, clnorm_norm_desc *desc) {
    if (!job->rope.form)
        return;
    desc->rope = job->rope.form;
    desc->rope_dims = job->rope.dims;
    desc->rope_positions = job->rope.positions;
    desc->rope_repeat = job->rope.repeat;
    desc->rope_cos.dtype = job_dtype(job, "rope_cos");
    desc->rope_sin.dtype = job_dtype(job, "rope_sin");
    desc->position_given = job_tensor(job, "position") != NULL;
}

void rope_describe_backward(const struct job *job, clnorm_norm_backward_desc *desc) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    rope_describe(job, &forward);
    desc->rope = forward.rope;
    desc->rope_dims = forward.rope_dims;
    desc->rope_positions = forward.rope_positions;
    desc->rope_repeat = forward.rope_repeat;
    desc->rope_cos = forward.rope_cos;
    desc->rope_sin = forward.rope_sin;
    desc->position_given = forward.position_given;
}

void rope_lend(const struct job *job, struct ref_rope *rope) {
    const struct tensor *const cos = job_tensor(job, "rope_cos"), *const sin = job_tensor(job, "rope_sin");
    rope->cos.elements = cos ? cos->data : NULL;
    rope->sin.elements = sin ? sin->data : NULL;
    rope->position = job->position;
}
