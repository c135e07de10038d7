#include "outer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "closest.h"
#include "operation/operations.h"
#include "plan/tensor.h"
#include "reference/tensor.h"

/* ------------------------------------------------------------------------------------------------------------- layout */

bool outer_has(const struct job *job, int role) {
    return job->tensor[role].element && job->outer[role][0].size;
}

/* The layout of a role's rows on the device. */
static struct ref_tensor device_rows(const struct job *job, int role) {
    struct ref_tensor rows = {.dtype = job->tensor[role].element->dtype};
    memcpy(rows.outer, job->outer[role], sizeof rows.outer);
    return rows;
}

uint64_t outer_bytes(const struct job *job, int role) {
    const struct tensor *const tensor = &job->tensor[role];
    return outer_has(job, role) && job->rows ? cln_tensor_extent(job->outer[role], job->cols) * (tensor->element->bits / 8)
                                             : tensor->size;
}

/* Copies rows between an image of the device's memory and the host's. */
static void copy_rows(const struct job *job, int role, unsigned char *image, unsigned char *rows, bool to_image) {
    const uint64_t element = job->tensor[role].element->bits / 8, bytes = job->cols * element;
    const struct ref_tensor device = device_rows(job, role);
    for (uint64_t row = 0; row < job->rows; row++) {
        unsigned char *const on_device = image + ref_row_index(&device, row) * element;
        unsigned char *const on_host = rows + row * bytes;
        memcpy(to_image ? on_device : on_host, to_image ? on_host : on_device, (size_t)bytes);
    }
}

/* The image of a role's tensor, with NaNs between its rows. */
static unsigned char *make_image(const struct job *job, int role, struct fault *fault) {
    const uint64_t bytes = outer_bytes(job, role);
    unsigned char *const image = bytes <= SIZE_MAX ? malloc(bytes ? (size_t)bytes : 1) : NULL;
    if (!image) {
        fault_set(fault, EXIT_FAILED, "%s: out of memory for %" PRIu64 " bytes", job->operation->roles[role].name, bytes);
        return NULL;
    }
    memset(image, 0xff, (size_t)bytes);
    copy_rows(job, role, image, (unsigned char *)job->tensor[role].data, true);
    return image;
}

unsigned char *outer_image(const struct job *job, int role, struct fault *fault) {
    unsigned char *const image = make_image(job, role, fault);
    const struct tensor *const tensor = &job->tensor[role];
    const uint64_t element = tensor->element->bits / 8, bytes = job->cols * element;
    const struct ref_tensor device = device_rows(job, role);
    for (uint64_t row = 0; image && row < job->rows; row++) {
        const unsigned char *const on_device = image + ref_row_index(&device, row) * element;
        if (memcmp(on_device, tensor->data + row * bytes, (size_t)bytes) == 0)
            continue;
        fault_set(fault, EXIT_REQUEST,
                  "--outer %s: row %" PRIu64
                  " of tensor '%s' shares memory with a later row; expected equal elements in both",
                  job->operation->roles[role].name, row, tensor->name);
        free(image);
        return NULL;
    }
    return image;
}

bool outer_gather(const struct job *job, int role, const unsigned char *image, unsigned char *to, struct fault *fault) {
    copy_rows(job, role, (unsigned char *)image, to, false);
    unsigned char *const expected = make_image(job, role, fault);
    if (!expected)
        return false;
    const bool same = memcmp(expected, image, (size_t)outer_bytes(job, role)) == 0;
    free(expected);
    return same ||
           fault_set(fault, EXIT_FAILED, "%s: memory between its rows was written", job->operation->roles[role].name);
}

bool outer_fold(const struct job *job, int role, unsigned char *bytes, struct fault *fault) {
    if (!outer_has(job, role))
        return true;
    unsigned char *const image = make_image(job, role, fault);
    if (image)
        copy_rows(job, role, image, bytes, false);
    free(image);
    return image != NULL;
}

/* ---------------------------------------------------------------------------------------------------------- the option */

/* "10:192,3:64" up to a ';' or the end; *end is set to that. */
static bool read_dims(const char *text, clnorm_dim dims[CLNORM_OUTER_DIMS], const char **end) {
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++) {
        uint64_t *const numbers[] = {&dims[i].size, &dims[i].stride};
        for (int k = 0; k < 2; k++) {
            char *after;
            errno = 0;
            if (*text < '0' || *text > '9')
                return false;
            *numbers[k] = strtoull(text, &after, 10);
            if (errno || (k == 0 && (*after != ':' || !*numbers[k])))
                return false;
            text = k == 0 ? after + 1 : after;
        }
        *end = text;
        if (*text == ';' || *text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
    return false;
}

static bool check_dims(const struct job *job, int role, struct fault *fault) {
    const char *const name = job->operation->roles[role].name;
    const uint64_t element = job->tensor[role].element->bits / 8;
    uint64_t rows = 1, bytes;
    bool overflow = false;
    for (int i = 0; i < CLNORM_OUTER_DIMS && job->outer[role][i].size; i++)
        overflow |= __builtin_mul_overflow(rows, job->outer[role][i].size, &rows);
    if (overflow || rows != job->rows)
        return fault_set(fault, EXIT_REQUEST, "--outer %s: sizes of %" PRIu64 " rows; expected x's %" PRIu64, name, rows,
                         job->rows);
    return (!__builtin_mul_overflow(cln_tensor_extent(job->outer[role], job->cols), element, &bytes) &&
            bytes <= INT64_MAX) ||
           fault_set(fault, EXIT_REQUEST, "--outer %s: strides of 2^63 bytes or more", name);
}

/* The index of a present tensor of x's shape; -1: there is none of this name. */
static int find_role(const struct job *job, const char *word, size_t length) {
    const struct role *const roles = job->operation->roles;
    for (int i = 0; roles[i].name; i++)
        if (closest_is(word, length, roles[i].name) && job->tensor[i].element &&
            (roles[i].shape == SHAPE_X || roles[i].shape == SHAPE_SCALED))
            return i;
    return -1;
}

bool outer_read(struct job *job, const struct operation_options *options, struct fault *fault) {
    const char *text = options->outer;
    memset(job->outer, 0, sizeof job->outer);
    while (text && *text) {
        const size_t length = strcspn(text, "=;");
        const int role = find_role(job, text, length);
        if (role < 0)
            return fault_set(fault, EXIT_REQUEST, "--outer '%s': expected ROLE=… of a tensor of x's shape that %s has",
                             text, job->operation->name);
        if (outer_has(job, role))
            return fault_set(fault, EXIT_REQUEST, "--outer '%s': %s is given twice; expected each role once", text,
                             job->operation->roles[role].name);
        const char *end = text + length;
        if (*end++ != '=' || !read_dims(end, job->outer[role], &end))
            return fault_set(fault, EXIT_REQUEST,
                             "--outer '%s': expected " OUTER_WORD
                             " with up to three sizes and strides of rows; columns are contiguous, so a tensor whose "
                             "normalised dimension is not the last must be copied first",
                             text);
        if (!check_dims(job, role, fault))
            return false;
        text = *end == ';' ? end + 1 : end;
    }
    return true;
}

/* The record of the operation's descriptor; NULL: its tensors have no outer dimensions. */
static const struct cln_operation *record_of(const struct operation *operation) {
    switch (operation->kind) {
    case OPERATION_NORM:
        return &cln_norm_forward;
    case OPERATION_NORM_BACKWARD:
    case OPERATION_NORM_BACKWARD_FROM_Y:
        return &cln_norm_backward;
    default:
        return operation->record;
    }
}

bool outer_pack(struct job *job, long long heads, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    const struct cln_operation *const record = record_of(job->operation);
    const uint64_t size = (uint64_t)heads;
    if (!heads)
        return true;
    if (!record || !record->outer)
        return fault_set(fault, EXIT_REQUEST, "--packed: tensors of %s have no outer dimensions", job->operation->name);
    if (job->rows % size)
        return fault_set(fault, EXIT_REQUEST, "--packed %lld: expected a divisor of the %" PRIu64 " rows", heads,
                         job->rows);
    for (int i = 0; roles[i].name; i++) {
        if (!job->tensor[i].element || (roles[i].shape != SHAPE_X && roles[i].shape != SHAPE_SCALED))
            continue;
        job->outer[i][0] = (clnorm_dim){job->rows / size, 3 * size * job->cols};
        job->outer[i][1] = (clnorm_dim){size, job->cols};
    }
    return true;
}

clnorm_status outer_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    const struct cln_operation *const record = record_of(job->operation);
    struct job strided = *job;
    for (unsigned i = 0; record && i < record->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &record->tensors[i];
        const int role = operation_role(job->operation, rule->name);
        if (role >= 0 && outer_has(job, role))
            memcpy(strided.desc.of_record + rule->offset + offsetof(clnorm_tensor, outer), job->outer[role],
                   sizeof job->outer[role]);
    }
    return job->operation->plan(context, &strided, plan);
}
