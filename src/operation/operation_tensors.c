/* The tensors and numbers of a descriptor, by the rules of its operation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/status.h"
#include "operation/operation.h"
#include "operation/operation_scales.h"
#include "operation/outer.h"
#include "plan/tensor.h"

const clnorm_tensor *cln_operation_tensor(const struct cln_tensor_rule *rule, const void *desc) {
    return (const clnorm_tensor *)(const void *)((const char *)desc + rule->offset);
}

static clnorm_tensor *tensor_of(const struct cln_tensor_rule *rule, void *desc) {
    return (clnorm_tensor *)(void *)((char *)desc + rule->offset);
}

static const struct cln_desc_head *head_of(const void *desc) {
    return desc;
}

/* Elements of a row of a matrix. */
static uint64_t width_of(const struct cln_operation *operation, const void *desc) {
    uint64_t spatial = 1;
    if (operation->spatial)
        memcpy(&spatial, (const char *)desc + operation->spatial, sizeof spatial);
    return head_of(desc)->cols * spatial;
}

/* The weight map of a descriptor; 0: the default. */
struct weight_map {
    uint64_t rows, repeat;
};

static struct weight_map weight_map_of(const struct cln_operation *operation, const void *desc) {
    struct weight_map map = {0, 0};
    if (operation->weight_map)
        memcpy(&map, (const char *)desc + operation->weight_map, sizeof map);
    return map;
}

static bool is_in(int dtypes, clnorm_dtype dtype) {
    return (cln_dtype_real(dtype) || cln_dtype_fp8(dtype)) && (dtypes >> dtype & 1);
}

/* ---------------------------------------------------------------------------------------------------------- dtypes */

/* "f32, f16 or none" */
static void list_dtypes(const struct cln_tensor_rule *rule, char *text, size_t capacity) {
    const char *names[8];
    size_t count = 0;
    for (clnorm_dtype dtype = CLNORM_F32; dtype <= CLNORM_F8_E5M2; dtype++)
        if (is_in(rule->dtypes, dtype))
            names[count++] = clnorm_dtype_name(dtype);
    if (rule->none != CLN_REFUSED)
        names[count++] = "none";
    size_t length = 0;
    for (size_t i = 0; i < count && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s",
                                   i == 0          ? ""
                                   : i + 1 < count ? ", "
                                                   : " or ",
                                   names[i]);
}

static clnorm_status check_dtype(const struct cln_tensor_rule *rule, clnorm_dtype dtype) {
    if (is_in(rule->dtypes, dtype) || (dtype == CLNORM_DTYPE_NONE && rule->none != CLN_REFUSED))
        return CLNORM_SUCCESS;
    char field[48], expected[96];
    (void)snprintf(field, sizeof field, "%s.dtype", rule->name);
    list_dtypes(rule, expected, sizeof expected);
    return cln_dtype_refuse(field, dtype, expected);
}

/* Refuses a tensor whose precision is not that of the arithmetic. Weights and their gradients may differ where the
 * operation is mixed, as the kernels convert them. */
static clnorm_status check_precision(const struct cln_operation *operation, const struct cln_tensor_rule *rule,
                                     clnorm_dtype dtype, clnorm_dtype first) {
    const bool columns = operation->mixed && rule->extent == CLN_COLUMNS;
    if (!dtype || !first || (dtype == CLNORM_F64) == (first == CLNORM_F64) ||
        (columns && (dtype == CLNORM_F64 || dtype == CLNORM_F32)))
        return CLNORM_SUCCESS;
    return cln_fail(CLNORM_UNSUPPORTED, "desc.%s.dtype is %s, desc.%s.dtype is %s: expected %s", rule->name,
                    clnorm_dtype_name(dtype), operation->tensors[0].name, clnorm_dtype_name(first),
                    columns ? "f64, f32 or none" : "f64 for all tensors or for none");
}

/* Either all matrices are F64 or none is. The same holds for weights, unless the operation is mixed. A device without
 * double precision allows no F64. */
static clnorm_status check_double(const struct cln_operation *operation, const clnorm_device_info *device,
                                  const void *desc) {
    const struct cln_tensor_rule *const first = &operation->tensors[0];
    const clnorm_dtype dtype = cln_operation_tensor(first, desc)->dtype;
    const struct cln_tensor_rule *first_double = dtype == CLNORM_F64 ? first : NULL;
    for (unsigned i = 1; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        const clnorm_dtype other = cln_operation_tensor(rule, desc)->dtype;
        const clnorm_status status = check_precision(operation, rule, other, dtype);
        if (status)
            return status;
        if (other == CLNORM_F64 && !first_double)
            first_double = rule;
    }
    if (first_double && !device->fp64)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.%s.dtype is f64: the device %s has no double precision",
                        first_double->name, device->name);
    return CLNORM_SUCCESS;
}

/* -------------------------------------------------------------------------------------------------- single tensors */

/* outer: whether the rows of matrices may have outer dimensions. */
static clnorm_status check_outer(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor,
                                 const struct cln_desc_head *head, uint64_t width, bool outer) {
    if (rule->extent == CLN_COLUMNS || rule->extent == CLN_OWN)
        return cln_outer_refuse(rule->name, tensor, ", its rows have one stride");
    if (rule->extent == CLN_TRANSPOSED)
        return cln_outer_refuse(rule->name, tensor, ", a transposed copy has one stride");
    if (!outer)
        return cln_outer_refuse(rule->name, tensor, ", this operation's tensors have one stride");
    return cln_outer_check(rule->name, tensor, head->rows, width, rule->output);
}

/* weight_rows: as in the descriptor, 0 by default. */
static clnorm_status check_stride(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor,
                                  const struct cln_desc_head *head, uint64_t width, uint64_t weight_rows) {
    if (rule->extent == CLN_COLUMNS && !weight_rows)
        return tensor->stride ? cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.stride is %" PRIu64 ": expected 0, it has one row",
                                         rule->name, tensor->stride)
                              : CLNORM_SUCCESS;
    if (rule->extent == CLN_OWN)
        return CLNORM_SUCCESS;
    const uint64_t least = rule->extent == CLN_MATRIX ? width : rule->extent == CLN_COLUMNS ? head->cols : head->rows;
    const bool samples = least != head->cols; /* the rows of group norm */
    const char *const matrix = samples ? "cols x spatial" : "cols";
    if (tensor->stride && tensor->stride < least)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.stride is %" PRIu64 ": expected at least %s, %" PRIu64 "%s",
                        rule->name, tensor->stride, rule->extent == CLN_TRANSPOSED ? "rows" : matrix, least,
                        rule->extent != CLN_MATRIX ? ""
                        : samples                  ? "; it leads from sample to sample"
                                                   : "; copy a transposed tensor, so that columns lie side by side");
    return CLNORM_SUCCESS;
}

/* Checks one tensor and fills in its defaults. first: the operation's first tensor, completed. width: elements of a matrix
 * row. */
static clnorm_status complete_tensor(const struct cln_tensor_rule *rule, clnorm_tensor *tensor, const clnorm_tensor *first,
                                     const struct cln_desc_head *head, uint64_t width, uint64_t weight_rows, bool outer) {
    struct cln_tensor_rule own = *rule;
    if (own.none == CLN_LIKE_FIRST && cln_dtype_fp8(first->dtype)) /* 8 bits are no default, as they need scales */
        own.none = CLN_REFUSED;
    if (!tensor->dtype && own.none == CLN_LIKE_FIRST)
        tensor->dtype = first->dtype;
    clnorm_status status = check_dtype(&own, tensor->dtype);
    if (status)
        return status;
    /* A transposed copy uses the scales of its original, unless that is absent. */
    const bool scales = rule->scale != CLN_ROLES && (rule->extent != CLN_TRANSPOSED || tensor->scaling);
    const bool codes = cln_dtype_fp8(tensor->dtype) && scales;
    if (!tensor->dtype) {
        *tensor = (clnorm_tensor)CLNORM_TENSOR_NONE;
        return CLNORM_SUCCESS;
    }
    status = cln_operation_check_scales(rule, tensor, codes);
    if (!status)
        status = check_outer(rule, tensor, head, width, outer);
    if (!status)
        status = check_stride(rule, tensor, head, width, weight_rows);
    if (cln_outer_given(tensor))
        cln_outer_collapse(tensor, head->rows, width);
    else if (rule->extent != CLN_OWN && (rule->extent != CLN_COLUMNS || weight_rows))
        tensor->stride = cln_or_else(tensor->stride, rule->extent == CLN_TRANSPOSED ? head->rows : width);
    if (codes && !tensor->scale_dtype)
        tensor->scale_dtype = CLNORM_F32;
    return status;
}

/* Checks group_size and eps, and fills in group_size. */
static clnorm_status complete_numbers(const struct cln_operation *operation, void *desc) {
    const uint64_t cols = head_of(desc)->cols, group_size = cln_operation_group_size(operation, desc);
    if (cols % group_size)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.group_size is %" PRIu64 ": expected a divisor of cols, %" PRIu64,
                        group_size, cols);
    if (operation->group_size)
        memcpy((char *)desc + operation->group_size, &group_size, sizeof group_size);
    const double largest = cln_dtype_largest(cln_operation_tensor(&operation->tensors[0], desc)->dtype);
    double eps = 0;
    if (operation->eps)
        memcpy(&eps, (const char *)desc + operation->eps, sizeof eps);
    if (!(eps >= 0 && eps <= largest))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.eps is %g: expected 0 to %g", eps, largest);
    return CLNORM_SUCCESS;
}

/* Checks the weight map. By default it has 1 row, repeated once. */
static clnorm_status complete_weight_map(const struct cln_operation *operation, void *desc) {
    const struct weight_map given = weight_map_of(operation, desc);
    const struct weight_map map = {cln_or_else(given.rows, 1), cln_or_else(given.repeat, 1)};
    const uint64_t rows = head_of(desc)->rows;
    if (!operation->weight_map)
        return CLNORM_SUCCESS;
    if (!given.rows && given.repeat)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_repeat is %" PRIu64 ": expected 0 without weight_rows",
                        given.repeat);
    bool shared = false;
    char names[64] = "";
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        if (rule->extent != CLN_COLUMNS)
            continue;
        shared = shared || cln_operation_tensor(rule, desc)->dtype;
        const size_t length = strlen(names);
        (void)snprintf(names + length, sizeof names - length, "%s%s", length ? " or " : "", rule->name);
    }
    if (given.rows && !shared)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_rows is %" PRIu64 ": expected 0 without %s", given.rows, names);
    uint64_t period;
    if (__builtin_mul_overflow(map.rows, map.repeat, &period))
        return cln_fail(CLNORM_OVERFLOW,
                        "desc.weight_rows is %" PRIu64 ", desc.weight_repeat %" PRIu64 ": expected a product below 2^64",
                        map.rows, map.repeat);
    if (rows % period)
        return cln_fail(CLNORM_INVALID_SHAPE,
                        "desc.rows is %" PRIu64 ": expected a multiple of weight_rows x weight_repeat, %" PRIu64
                        " x %" PRIu64,
                        rows, map.rows, map.repeat);
    memcpy((char *)desc + operation->weight_map, &map, sizeof map);
    return CLNORM_SUCCESS;
}

clnorm_status cln_operation_complete_tensors(const struct cln_operation *operation, const clnorm_device_info *device,
                                             void *desc) {
    const struct cln_desc_head *const head = head_of(desc);
    const clnorm_tensor *const first = cln_operation_tensor(&operation->tensors[0], desc);
    if (!head->cols)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is 0: expected 1 or more");
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        const clnorm_status status = complete_tensor(rule, tensor_of(rule, desc), first, head, width_of(operation, desc),
                                                     weight_map_of(operation, desc).rows, operation->outer);
        if (status)
            return status;
    }
    clnorm_status status = check_double(operation, device, desc);
    if (!status)
        status = complete_weight_map(operation, desc);
    return status ? status : complete_numbers(operation, desc);
}

uint64_t cln_operation_real_size(const struct cln_operation *operation, const void *desc) {
    return cln_dtype_real_size(cln_operation_tensor(&operation->tensors[0], desc)->dtype);
}

uint64_t cln_operation_group_size(const struct cln_operation *operation, const void *desc) {
    uint64_t group_size = 0;
    if (operation->group_size)
        memcpy(&group_size, (const char *)desc + operation->group_size, sizeof group_size);
    return cln_or_else(group_size, head_of(desc)->cols);
}

/* Rows of a tensor of CLN_COLUMNS: 1 without a weight map. */
static uint64_t weight_rows_of(const struct cln_operation *operation, const void *desc) {
    return cln_or_else(weight_map_of(operation, desc).rows, 1);
}

uint64_t cln_operation_strides(const struct cln_operation *operation, const void *desc) {
    const bool maps = weight_rows_of(operation, desc) > 1;
    uint64_t strides = 0;
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        if (rule->extent == CLN_MATRIX || (rule->extent == CLN_COLUMNS && maps && !rule->output))
            strides |= cln_outer_strides(cln_operation_tensor(rule, desc));
    }
    return strides;
}

uint64_t cln_operation_lead_vec(const struct cln_operation *operation, const void *desc) {
    enum { ANY = 16 };
    const uint64_t first = cln_operation_tensor(&operation->tensors[0], desc)->stride;
    uint64_t differences = ANY;
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        const clnorm_tensor *const tensor = cln_operation_tensor(rule, desc);
        const size_t size = clnorm_dtype_size(tensor->dtype);
        if (!tensor->dtype)
            continue;
        const bool codes = rule->output && tensor->scaling && tensor->scaling != CLNORM_SCALING_GROUP;
        if (cln_outer_given(tensor) || (!codes && (tensor->scaling || (size != 2 && size != 4))))
            return 0;
        if (rule->extent == CLN_MATRIX)
            differences |= tensor->stride ^ first;
    }
    return cln_lowest_bit(differences);
}

/* ---------------------------------------------------------------------------------------------------- arguments */

static clnorm_status describe_statistics(const struct cln_operation *operation, const void *desc,
                                         struct cln_tensor described[CLN_ROLES]) {
    const struct cln_desc_head *const head = head_of(desc);
    const uint64_t groups = head->cols / cln_operation_group_size(operation, desc);
    uint64_t count;
    if (__builtin_mul_overflow(head->rows, groups, &count))
        return cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ", groups %" PRIu64 ": expected a product below 2^63",
                        head->rows, groups);
    clnorm_status status = CLNORM_SUCCESS;
    for (unsigned i = 0; i < operation->statistic_count && !status; i++) {
        const struct cln_statistic_rule *const rule = &operation->statistics[i];
        uint32_t given = 1;
        uint64_t numbers;
        if (rule->given)
            memcpy(&given, (const char *)desc + rule->given, sizeof given);
        if (!given)
            continue;
        if (__builtin_mul_overflow(count, rule->numbers, &numbers))
            return cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ", groups %" PRIu64 ": expected less than 2^63 %s",
                            head->rows, groups, rule->name);
        status =
            cln_tensor_vector(&described[rule->role], rule->name, numbers, cln_operation_real_size(operation, desc), 0);
    }
    return status;
}

static clnorm_status describe_tensor(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor,
                                     const struct cln_desc_head *head, uint64_t width, uint64_t weight_rows,
                                     struct cln_tensor described[CLN_ROLES]) {
    const bool reads_nothing = !head->rows && !rule->output;
    switch (rule->extent) {
    case CLN_COLUMNS:
        if (weight_rows > 1)
            return cln_tensor_matrix(&described[rule->role], rule->name, reads_nothing ? 0 : weight_rows, head->cols,
                                     tensor->stride, tensor->dtype, 1);
        return cln_tensor_vector(&described[rule->role], rule->name, reads_nothing ? 0 : head->cols,
                                 clnorm_dtype_size(tensor->dtype), 1);
    case CLN_OWN:
        return CLNORM_SUCCESS;
    case CLN_TRANSPOSED:
        return cln_tensor_matrix(&described[rule->role], rule->name, head->rows ? head->cols : 0, head->rows,
                                 tensor->stride, tensor->dtype, 1);
    default:
        return cln_tensor_rows(&described[rule->role], rule->name, head->rows, width, tensor, 1);
    }
}

clnorm_status cln_operation_describe_tensors(const struct cln_operation *operation, const void *desc,
                                             struct cln_tensor described[CLN_ROLES]) {
    clnorm_status status = CLNORM_SUCCESS;
    for (unsigned i = 0; i < operation->tensor_count && !status; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        const clnorm_tensor *const tensor = cln_operation_tensor(rule, desc);
        if (tensor->dtype)
            status = describe_tensor(rule, tensor, head_of(desc), width_of(operation, desc),
                                     weight_rows_of(operation, desc), described);
        if (tensor->dtype && !status)
            status = cln_operation_describe_scales(rule, tensor, head_of(desc), described);
    }
    return status ? status : describe_statistics(operation, desc, described);
}
