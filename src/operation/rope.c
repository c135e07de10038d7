#include "operation/rope.h"

#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/status.h"
#include "plan/tensor.h"

void cln_rope_complete(uint64_t width, uint64_t *dims, uint64_t *repeat, clnorm_tensor *cos, clnorm_tensor *sin) {
    *dims = cln_or_else(*dims, width);
    *repeat = cln_or_else(*repeat, 1);
    cos->stride = cln_or_else(cos->stride, *dims / 2);
    sin->stride = cln_or_else(sin->stride, *dims / 2);
}

static clnorm_status check_absent(const struct cln_rope *rope) {
    const struct cln_option options[] = {{"rope_dims", rope->dims != 0},
                                         {"rope_positions", rope->positions != 0},
                                         {"rope_repeat", rope->repeat != 0},
                                         {"rope_cos", rope->cos.dtype != CLNORM_DTYPE_NONE},
                                         {"rope_sin", rope->sin.dtype != CLNORM_DTYPE_NONE},
                                         {"position_given", rope->position_given},
                                         {NULL, false}};
    return cln_refuse_options(options, CLNORM_INVALID_VALUE, "a desc.rope of 0");
}

static clnorm_status check_table(const char *name, const clnorm_tensor *tensor, uint64_t dims) {
    if (!tensor->dtype)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.%s.dtype is none: expected a dtype with desc.rope", name);
    if (tensor->stride < dims / 2)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.stride is %" PRIu64 ": expected at least rope_dims / 2, %" PRIu64,
                        name, tensor->stride, dims / 2);
    return CLNORM_SUCCESS;
}

static uint64_t positions_of_rows(const struct cln_rope *rope) {
    return cln_divide_up(rope->rows, rope->repeat);
}

clnorm_status cln_rope_check(const struct cln_rope *rope) {
    if (!rope->form)
        return check_absent(rope);
    if (rope->dims % 2)
        return cln_fail(CLNORM_INVALID_SHAPE,
                        "desc.rope_dims is %" PRIu64 ": expected an even number (0 stands for group_size)", rope->dims);
    if (rope->dims > rope->group_size)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.rope_dims is %" PRIu64 ": expected at most group_size, %" PRIu64,
                        rope->dims, rope->group_size);
    if (rope->repeat > INT64_MAX)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.rope_repeat is %" PRIu64 ": expected less than 2^63", rope->repeat);
    if (!rope->positions)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.rope_positions is 0: expected 1 or more with desc.rope");
    if (!rope->position_given && positions_of_rows(rope) > rope->positions)
        return cln_fail(CLNORM_INVALID_SHAPE,
                        "desc.rope_positions is %" PRIu64 ": expected at least rows / rope_repeat, %" PRIu64
                        ", without position_given",
                        rope->positions, positions_of_rows(rope));
    const clnorm_status status = check_table("rope_cos", &rope->cos, rope->dims);
    return status ? status : check_table("rope_sin", &rope->sin, rope->dims);
}

/* Elements of an access to the tables, before the config's vec: NeoX's form reads whole vectors, the others (0) single
 * elements. */
static uint32_t vector_of(const struct cln_rope *rope) {
    return rope->form == CLNORM_ROPE_NEOX;
}

clnorm_status cln_rope_describe(const struct cln_rope *rope, struct cln_tensor tensor[CLN_ROLES]) {
    if (!rope->form)
        return CLNORM_SUCCESS;
    const uint64_t positions = rope->rows ? rope->positions : 0;
    clnorm_status status = cln_tensor_matrix(&tensor[CLN_ROPE_COS], "rope_cos", positions, rope->dims / 2, rope->cos.stride,
                                             rope->cos.dtype, vector_of(rope));
    if (!status)
        status = cln_tensor_matrix(&tensor[CLN_ROPE_SIN], "rope_sin", positions, rope->dims / 2, rope->sin.stride,
                                   rope->sin.dtype, vector_of(rope));
    if (!status && rope->position_given)
        status = cln_tensor_vector(&tensor[CLN_POSITION], "position", positions_of_rows(rope), sizeof(cl_int), 0);
    return status;
}

uint64_t cln_rope_strides(const struct cln_rope *rope) {
    return vector_of(rope) ? rope->cos.stride | rope->sin.stride : 0;
}

void cln_rope_spec(const struct cln_rope *rope, struct cln_spec *spec) {
    if (!rope->form)
        return;
    spec->rope = rope->form;
    spec->rope_dims = rope->dims;
    spec->rope_repeat = rope->repeat;
    spec->rope_position = rope->position_given;
    spec->rope_cos_dtype = rope->cos.dtype;
    spec->rope_sin_dtype = rope->sin.dtype;
}
