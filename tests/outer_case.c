#include "outer_case.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/reference.h"

/* A tensor of clnorm_args: a guard, then its bytes, then a guard. */
struct held {
    unsigned char *host;
    uint64_t first, bytes, size;
    cl_mem mem;
    bool is_output;
};

struct outer_desc outer_desc_of(const struct cln_operation *operation, uint64_t rows, uint64_t cols) {
    struct outer_desc desc = {{0}};
    const uint64_t shape[] = {rows, cols};
    cln_operation_init(operation, desc.bytes);
    memcpy(desc.bytes + offsetof(struct cln_desc_head, rows), shape, sizeof shape);
    return desc;
}

static const struct cln_tensor_rule *rule_of(const struct cln_operation *operation, const char *name) {
    for (unsigned i = 0; i < operation->tensor_count; i++)
        if (strcmp(operation->tensors[i].name, name) == 0)
            return &operation->tensors[i];
    fail_msg("%s has no tensor %s", operation->name, name);
    return NULL;
}

clnorm_tensor *outer_tensor(const struct cln_operation *operation, struct outer_desc *desc, const char *name) {
    return (clnorm_tensor *)(void *)(desc->bytes + rule_of(operation, name)->offset);
}

static const struct outer_layout *layout_of(const struct outer_layout *layouts, const char *name) {
    while (layouts->name && strcmp(layouts->name, name) != 0)
        layouts++;
    return layouts->name ? layouts : NULL;
}

/* Index of a row's first element. */
static uint64_t start_of(const clnorm_dim outer[3], uint64_t row) {
    uint64_t start = 0;
    for (int i = 2; i >= 0; i--)
        if (outer[i].size) {
            start += row % outer[i].size * outer[i].stride;
            row /= outer[i].size;
        }
    return start;
}

/* ------------------------------------------------------------------------------------------------------- the tensors */

/* The dtype of a tensor: the descriptor's, or that of the first tensor, or a float type of the element's size. */
static clnorm_dtype dtype_of(const struct cln_operation *operation, const void *desc, const clnorm_tensor_info *info) {
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const clnorm_tensor *const tensor = cln_operation_tensor(&operation->tensors[i], desc);
        if (strcmp(operation->tensors[i].name, info->name) == 0 && tensor->dtype)
            return tensor->dtype;
    }
    const clnorm_dtype first = cln_operation_tensor(&operation->tensors[0], desc)->dtype;
    return clnorm_dtype_size(first) == info->element ? first : info->element == 8 ? CLNORM_F64 : CLNORM_F32;
}

/* Normal numbers for a matrix; positive ones for a vector, such as rstd or scales. */
static void fill(struct held *held, clnorm_dtype dtype, const clnorm_tensor_info *info, uint64_t seed) {
    struct random random = {seed};
    for (uint64_t i = 0; i < info->bytes / info->element; i++) {
        const double value = info->rows > 1 ? random_normal(&random) : 0.5 + random_uniform(&random);
        ref_store(dtype, held->host + held->first, i, value);
    }
}

static struct held make(uint64_t bytes, uint64_t shift, bool is_output) {
    struct held held = {.first = TENSOR_GUARD + shift, .bytes = bytes, .is_output = is_output};
    held.size = held.first + bytes + TENSOR_GUARD;
    held.host = malloc(held.size);
    assert_non_null(held.host);
    memset(held.host, is_output ? TENSOR_CANARY : TENSOR_NAN, held.size);
    return held;
}

static void put_on_device(const struct fixture *fixture, struct held *held) {
    cl_int code;
    held->mem = clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, held->size, held->host, &code);
    assert_int_equal(code, CL_SUCCESS);
}

static void fetch(const struct fixture *fixture, const struct held *held, unsigned char *to) {
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, held->mem, CL_TRUE, 0, held->size, to, 0, NULL, NULL), CL_SUCCESS);
}

static void free_all(struct held held[CLN_ROLES]) {
    for (enum cln_role role = 0; role < CLN_ROLES; role++) {
        free(held[role].host);
        if (held[role].mem)
            clReleaseMemObject(held[role].mem);
    }
}

/* Copies rows between the strided and the dense tensor in host memory. bytes: of a row. */
static void copy_rows(struct held *strided, struct held *dense, const clnorm_dim outer[3], uint64_t rows, uint64_t bytes,
                      uint64_t element, bool to_strided) {
    for (uint64_t row = 0; row < rows; row++) {
        unsigned char *const far = strided->host + strided->first + start_of(outer, row) * element;
        unsigned char *const near = dense->host + dense->first + row * bytes;
        memcpy(to_strided ? far : near, to_strided ? near : far, bytes);
    }
}

/* ---------------------------------------------------------------------------------------------------------- the calls */

struct both {
    const struct cln_operation *operation;
    struct outer_desc dense_desc, desc;
    const struct outer_layout *layouts;
    clnorm_requirements needs, dense_needs;
    struct held dense[CLN_ROLES], strided[CLN_ROLES];
};

static enum cln_role role_of(const clnorm_tensor_info *info) {
    return cln_role_named(info->name);
}

/* Gives both calls the config that is chosen for the strided one. */
static bool settle(const struct fixture *fixture, struct both *both) {
    const struct cln_operation *const operation = both->operation;
    clnorm_plan *plan = NULL;
    const clnorm_requirements none = CLNORM_REQUIREMENTS_INIT;
    both->needs = both->dense_needs = none;
    for (const struct outer_layout *layout = both->layouts; layout->name; layout++)
        memcpy(outer_tensor(operation, &both->desc, layout->name)->outer, layout->outer, sizeof layout->outer);
    bool good = !cln_operation_plan_create(operation, fixture->context, both->desc.bytes, &plan);
    if (good) {
        clnorm_plan_config(plan, (clnorm_config *)(void *)(both->dense_desc.bytes + operation->config));
        clnorm_plan_config(plan, (clnorm_config *)(void *)(both->desc.bytes + operation->config));
    }
    clnorm_plan_destroy(plan);
    good = good && !cln_operation_validate(operation, fixture->context, both->desc.bytes, &both->needs) &&
           !cln_operation_validate(operation, fixture->context, both->dense_desc.bytes, &both->dense_needs);
    if (!good)
        print_error("%s: %s\n", operation->name, clnorm_error_detail());
    return good;
}

/* Where rows of a strided input overlap, the last one is kept, and is copied back to the dense input. */
static void make_tensors(struct both *both) {
    const struct cln_desc_head *const head = (const void *)both->desc.bytes;
    for (uint32_t i = 0; i < both->needs.tensor_count; i++) {
        const clnorm_tensor_info *const info = &both->dense_needs.tensors[i];
        const struct outer_layout *const layout = layout_of(both->layouts, info->name);
        const clnorm_dtype dtype = dtype_of(both->operation, both->desc.bytes, info);
        struct held *const dense = &both->dense[role_of(info)], *const strided = &both->strided[role_of(info)];
        assert_string_equal(info->name, both->needs.tensors[i].name);
        *dense = make(info->bytes, 0, info->is_output);
        if (info->is_input)
            fill(dense, dtype, info, i + 1);
        *strided = make(both->needs.tensors[i].bytes, layout ? layout->shift * info->element : 0, info->is_output);
        const uint64_t row = layout ? head->cols * info->element : info->bytes;
        const clnorm_dim one[3] = {{0, 0}};
        const clnorm_dim *const outer = layout ? layout->outer : one;
        if (info->is_input) {
            copy_rows(strided, dense, outer, layout ? head->rows : 1, row, info->element, true);
            copy_rows(strided, dense, outer, layout ? head->rows : 1, row, info->element, false);
        }
    }
}

/* over: role of the input whose buffer the output shares; CLN_ROLES: none. */
static bool run(const struct fixture *fixture, const struct cln_operation *operation, const struct outer_desc *desc,
                struct held held[CLN_ROLES], enum cln_role output, enum cln_role over) {
    static const clnorm_seed seed = {7, 11};
    clnorm_args args = CLNORM_ARGS_INIT;
    for (enum cln_role role = 0; role < CLN_ROLES; role++) {
        if (!held[role].size)
            continue;
        if (role == output && over != CLN_ROLES) { /* the output begins with the input's bytes */
            memcpy(held[role].host, held[over].host, held[role].size);
            held[role].first = held[over].first;
        }
        put_on_device(fixture, &held[role]);
        *(clnorm_buffer *)cln_args_buffer(&args, role) = (clnorm_buffer){held[role].mem, held[role].first};
    }
    if (over != CLN_ROLES)
        *(clnorm_buffer *)cln_args_buffer(&args, over) = *cln_args_buffer(&args, output);
    double dropout = 0;
    if (operation == &cln_norm_forward)
        dropout = ((const clnorm_norm_desc *)(const void *)desc->bytes)->dropout;
    else if (operation == &cln_norm_backward)
        dropout = ((const clnorm_norm_backward_desc *)(const void *)desc->bytes)->dropout;
    args.seed = dropout > 0 ? &seed : NULL;
    const clnorm_status status =
        cln_operation_enqueue(operation, fixture->context, fixture->queue, desc->bytes, &args, 0, NULL, NULL);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    if (status)
        print_error("%s: %s\n", operation->name, clnorm_error_detail());
    return !status;
}

/* ----------------------------------------------------------------------------------------------------------- comparison */

static bool same(const char *name, const unsigned char *expected, const unsigned char *found, uint64_t size,
                 uint64_t first) {
    for (uint64_t i = 0; i < size; i++)
        if (expected[i] != found[i]) {
            print_error("%s: byte %" PRId64 " from its first element is %02x, should be %02x\n", name,
                        (int64_t)i - (int64_t)first, found[i], expected[i]);
            return false;
        }
    return true;
}

/* Whether the strided buffer has the rows of the dense call's output, and is unchanged outside of them. */
static bool compare(const struct fixture *fixture, struct both *both, const clnorm_tensor_info *info) {
    const struct cln_desc_head *const head = (const void *)both->desc.bytes;
    const struct outer_layout *const layout = layout_of(both->layouts, info->name);
    struct held *const dense = &both->dense[role_of(info)], *const strided = &both->strided[role_of(info)];
    if (info->is_output)
        fetch(fixture, dense, dense->host);
    const clnorm_dim one[3] = {{0, 0}};
    if (info->is_output)
        copy_rows(strided, dense, layout ? layout->outer : one, layout ? head->rows : 1,
                  layout ? head->cols * info->element : info->bytes, info->element, true);
    unsigned char *const found = malloc(strided->size);
    assert_non_null(found);
    fetch(fixture, strided, found);
    const bool good = same(info->name, strided->host, found, strided->size, strided->first);
    free(found);
    return good;
}

static void print_case(const struct both *both, const char *over) {
    const struct cln_desc_head *const head = (const void *)both->desc.bytes;
    char config[320];
    clnorm_config_text((const clnorm_config *)(const void *)(both->desc.bytes + both->operation->config), config,
                       sizeof config);
    print_error("case: %s %" PRIu64 "x%" PRIu64 "%s%s, config %s\n", both->operation->name, head->rows, head->cols,
                over ? " over " : "", over ? over : "", config);
    for (const struct outer_layout *layout = both->layouts; layout->name; layout++)
        print_error("  %s {%" PRIu64 ", %" PRIu64 "} {%" PRIu64 ", %" PRIu64 "} {%" PRIu64 ", %" PRIu64 "}\n", layout->name,
                    layout->outer[0].size, layout->outer[0].stride, layout->outer[1].size, layout->outer[1].stride,
                    layout->outer[2].size, layout->outer[2].stride);
}

bool outer_case_passes(const struct fixture *fixture, const struct cln_operation *operation, const struct outer_desc *desc,
                       const struct outer_layout *layouts, const char *output, const char *over) {
    struct both both = {.operation = operation, .dense_desc = *desc, .desc = *desc, .layouts = layouts};
    const enum cln_role to = over ? rule_of(operation, output)->role : CLN_ROLES;
    const enum cln_role from = over ? rule_of(operation, over)->role : CLN_ROLES;
    bool good = settle(fixture, &both);
    if (good) {
        make_tensors(&both);
        good = run(fixture, operation, &both.dense_desc, both.dense, CLN_ROLES, CLN_ROLES) &&
               run(fixture, operation, &both.desc, both.strided, to, from);
    }
    for (uint32_t i = 0; good && i < both.needs.tensor_count; i++)
        good = compare(fixture, &both, &both.dense_needs.tensors[i]);
    if (!good)
        print_case(&both, over);
    free_all(both.dense);
    free_all(both.strided);
    return good;
}
