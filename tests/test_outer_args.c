/* Outer dimensions of tensors: refused ones and their error messages, the bytes that buffers must have, tensors that may
 * overlap, and parts of a packed tensor that are normalised in place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "outer_case.h"
#include "reference/reference.h"

enum { B = 2, S = 3, H = 4, D = 8, ROWS = B * S * H, BS = B * S, SH = S * H };

/* Elements: all heads of a position; all positions of a sample; q, k and v of a position; a dense tensor; and the span of q
 * in a packed tensor. */
enum { HD = H * D, SHD = S * H * D, PACKED_ROW = 3 * H * D, DENSE = ROWS * D, THIRD = (B * S - 1) * 3 * H * D + H * D };

/* Multiples for rows that lie apart. */
enum { D2 = 2 * D, HD2 = 2 * HD, SHD2 = 2 * SHD, D7 = 7 * D };

static clnorm_norm_desc forward_of(uint64_t rows, uint64_t cols) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.rows = rows;
    desc.cols = cols;
    return desc;
}

static void set_outer(clnorm_tensor *tensor, const clnorm_dim outer[3]) {
    memcpy(tensor->outer, outer, sizeof tensor->outer);
}

static void assert_refused(const struct fixture *fixture, const clnorm_norm_desc *desc, clnorm_status status,
                           const char *words) {
    clnorm_plan *plan = NULL;
    const clnorm_status found = clnorm_norm_forward_plan_create(fixture->context, desc, &plan);
    if (found != status || !strstr(clnorm_error_detail(), words))
        fail_msg("%s, \"%s\", should be \"%s\"", clnorm_status_text(found), clnorm_error_detail(), words);
    assert_null(plan);
}

static void bad_dimensions_are_refused(void **state) {
    static const struct {
        clnorm_dim outer[3];
        uint64_t stride;
        bool y; /* else x */
        clnorm_status status;
        const char *words;
    } cases[] = {
        {{{5, 8}, {3, 0}},
         0,
         false,
         CLNORM_INVALID_SHAPE,
         "desc.x.outer has sizes 5, 3, 0: expected desc.rows, 24, as the product of those that are not 0"},
        {{{UINT64_C(1) << 62, 8}, {4, 8}, {24, 8}},
         0,
         false,
         CLNORM_INVALID_SHAPE,
         "desc.x.outer has sizes 4611686018427387904"},
        {{{24, 8}},
         8,
         false,
         CLNORM_INVALID_SHAPE,
         "desc.x.stride is 8: expected 0 with desc.x.outer, whose dimensions have strides"},
        {{{0, 0}, {0, 7}, {24, 8}},
         0,
         false,
         CLNORM_INVALID_SHAPE,
         "desc.x.outer[1].size is 0, its stride 7: expected a stride of 0 without a size"},
        {{{0, 0}},
         1,
         false,
         CLNORM_INVALID_SHAPE,
         "desc.x.stride is 1: expected at least cols, 8; copy a transposed tensor"},
        {{{24, 0}},
         0,
         true,
         CLNORM_INVALID_SHAPE,
         "desc.y.outer[0].stride is 0: expected at least 8, since an output's rows may not overlap"},
        {{{4, 8}, {6, 31}}, 0, true, CLNORM_INVALID_SHAPE, "desc.y.outer[1].stride is 31: expected at least 32"},
        {{{6, 7}, {4, 48}}, 0, true, CLNORM_INVALID_SHAPE, "desc.y.outer[0].stride is 7: expected at least 8"},
        {{{2, UINT64_C(1) << 63}, {12, 8}}, 0, false, CLNORM_OVERFLOW, "x has 24 rows of stride 9223372036854775808 "},
        {{{3, UINT64_C(1) << 63}, {8, 8}}, 0, true, CLNORM_OVERFLOW, "y has 24 rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_norm_desc desc = forward_of(ROWS, D);
        clnorm_tensor *const tensor = cases[i].y ? &desc.y : &desc.x;
        set_outer(tensor, cases[i].outer);
        tensor->stride = cases[i].stride;
        assert_refused(*state, &desc, cases[i].status, cases[i].words);
    }
}

/* In every operation, tensors of one row or one stride refuse outer dimensions by their names. */
static void dimensions_of_other_tensors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (unsigned i = 0; i < (*operation)->tensor_count; i++) {
            const struct cln_tensor_rule *const rule = &(*operation)->tensors[i];
            if (rule->extent == CLN_MATRIX && (*operation)->outer)
                continue;
            struct outer_desc desc = outer_desc_of(*operation, 4, 64);
            clnorm_tensor *const tensor = outer_tensor(*operation, &desc, rule->name);
            if (!tensor->dtype)
                tensor->dtype = rule->dtypes & 1 << CLNORM_F32 ? CLNORM_F32 : CLNORM_F8_E4M3;
            if (cln_operation_tensor(&(*operation)->tensors[0], desc.bytes)->dtype == CLNORM_DTYPE_NONE)
                continue;
            tensor->outer[2] = (clnorm_dim){4, 64};
            clnorm_plan *plan = NULL;
            char words[64];
            (void)snprintf(words, sizeof words, "desc.%s.outer[2] is 4 of stride 64: expected 0, ", rule->name);
            assert_int_not_equal(cln_operation_plan_create(*operation, fixture->context, desc.bytes, &plan),
                                 CLNORM_SUCCESS);
            if (!strstr(clnorm_error_detail(), words))
                fail_msg("%s: \"%s\" does not say \"%s\"", (*operation)->name, clnorm_error_detail(), words);
        }
    clnorm_norm_desc desc = forward_of(ROWS, 64);
    desc.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR, .outer = {{6, 512}, {4, 64}}};
    desc.y_t.dtype = CLNORM_F8_E4M3;
    assert_refused(fixture, &desc, CLNORM_INVALID_SHAPE,
                   "desc.y.outer gives rows more than one stride: expected one with a y_t");
}

static clnorm_tensor_info needs_of(const struct fixture *fixture, const clnorm_norm_desc *desc, const char *name) {
    clnorm_requirements needs = CLNORM_REQUIREMENTS_INIT;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, desc, &needs), CLNORM_SUCCESS);
    for (uint32_t i = 0; i < needs.tensor_count; i++)
        if (strcmp(needs.tensors[i].name, name) == 0)
            return needs.tensors[i];
    fail_msg("no %s", name);
    return needs.tensors[0];
}

static void buffers_hold_the_extent(void **state) {
    static const struct {
        clnorm_dim outer[3];
        uint64_t elements, stride;
    } cases[] = {
        {{{BS, PACKED_ROW}, {H, D}}, THIRD, D},
        {{{B, SHD}, {H, D}, {S, HD}}, DENSE, HD},
        {{{B, 0}, {SH, D}}, SHD, D},
        {{{ROWS, 0}}, D, 0},
        {{{2, 100}, {12, 3}}, 100 + 11 * 3 + D, 3}, /* an input's rows may overlap */
        {{{1, 9}, {ROWS, D}, {1, 1000}}, DENSE, D},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_norm_desc desc = forward_of(ROWS, D);
        set_outer(&desc.x, cases[i].outer);
        const clnorm_tensor_info info = needs_of(*state, &desc, "x");
        assert_int_equal(info.bytes, cases[i].elements * sizeof(float));
        assert_int_equal(info.stride, cases[i].stride * sizeof(float));
        assert_int_equal(info.rows, ROWS);
        assert_int_equal(info.cols, D);
    }
    clnorm_norm_desc none = forward_of(0, D);
    set_outer(&none.x, (const clnorm_dim[3]){{3, 100}, {4, D}});
    set_outer(&none.y, (const clnorm_dim[3]){{0, 100}, {4, D}});
    assert_int_equal(needs_of(*state, &none, "x").bytes, 0);
    assert_int_equal(needs_of(*state, &none, "y").bytes, 0);
    set_outer(&none.y, (const clnorm_dim[3]){{0, 0}, {4, 1}});
    assert_int_equal(needs_of(*state, &none, "y").bytes, 0);
}

/* Outer dimensions that amount to one stride give the plan of that stride, with the same build options. */
static void one_stride_has_the_plain_kernel(void **state) {
    const struct fixture *fixture = *state;
    static const clnorm_dim same[][3] = {{{B, SHD}, {S, HD}, {H, D}}, {{1, 5}, {ROWS, D}}, {{B, SHD}, {SH, D}}};
    char expected[4096], text[4096];
    for (size_t i = 0; i <= sizeof same / sizeof *same; i++) {
        clnorm_norm_desc desc = forward_of(ROWS, D);
        clnorm_plan *plan = NULL;
        if (i)
            set_outer(&desc.x, same[i - 1]);
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        (void)clnorm_plan_describe(plan, i ? text : expected, sizeof text);
        clnorm_plan_destroy(plan);
        if (i)
            assert_string_equal(text, expected);
    }
    assert_null(strstr(expected, "OUTER"));
}

/* Row numbers are divided in 32 bits where they fit, else in 64. */
static void many_rows_have_64_bit_numbers(void **state) {
    const struct fixture *fixture = *state;
    static char text[16384];
    for (uint64_t wide = 0; wide < 2; wide++) {
        clnorm_norm_desc desc = forward_of((UINT64_C(1) << 32) - 2 + 2 * wide, 1);
        clnorm_plan *plan = NULL;
        set_outer(&desc.x, (const clnorm_dim[3]){{desc.rows / 2, 3}, {2, 1}});
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        (void)clnorm_plan_describe(plan, text, sizeof text);
        clnorm_plan_destroy(plan);
        assert_non_null(strstr(text, wide ? " -D OUTER_x=1 -D ROW_T=ulong" : " -D OUTER_x=1 -D ROW_T=uint"));
    }
}

/* --------------------------------------------------------------------------------------------------- packed tensors */

enum { PACKED = B * S * 3 * H * D }; /* elements of [B, S, 3, H, D] */

static const clnorm_dim third[3] = {{BS, PACKED_ROW}, {H, D}};

static cl_mem upload(const struct fixture *fixture, const float values[PACKED]) {
    cl_int code;
    const cl_mem mem = clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                      (size_t)PACKED * sizeof *values, (void *)values, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

static void download(const struct fixture *fixture, cl_mem mem, float values[PACKED]) {
    assert_int_equal(
        clEnqueueReadBuffer(fixture->queue, mem, CL_TRUE, 0, (size_t)PACKED * sizeof *values, values, 0, NULL, NULL),
        CL_SUCCESS);
    clReleaseMemObject(mem);
}

static void fill(float values[PACKED], uint64_t seed) {
    struct random random = {seed};
    for (int i = 0; i < PACKED; i++)
        values[i] = (float)random_normal(&random);
}

static clnorm_buffer part(cl_mem mem, uint64_t index) {
    return (clnorm_buffer){mem, index * HD * sizeof(float)};
}

/* The largest difference between the parts index of two packed tensors. A NaN counts as infinite. */
static double distance(const float *a, const float *b, uint64_t index) {
    double largest = 0;
    for (uint64_t i = 0; i < PACKED; i++) {
        const double error = fabs((double)a[i] - (double)b[i]);
        if (i / HD % 3 == index)
            largest = isnan(error) ? INFINITY : fmax(largest, error);
    }
    return largest;
}

/* q and k of a packed tensor are normalised in place, and v is unchanged. */
static void parts_are_normalised_in_place(void **state) {
    const struct fixture *fixture = *state;
    float before[PACKED], after[PACKED], expected[PACKED];
    fill(before, 1);
    memcpy(expected, before, sizeof before);
    const cl_mem mem = upload(fixture, before);
    clnorm_norm_desc desc = forward_of(ROWS, D);
    desc.norm = CLNORM_RMS_NORM;
    set_outer(&desc.x, third);
    set_outer(&desc.y, third);
    struct ref_segment segment = ref_segment_make(D);
    for (uint64_t i = 0; i < 2; i++) {
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = args.y = part(mem, i);
        assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL),
                         CLNORM_SUCCESS);
        struct ref_norm norm = ref_norm_of(&desc);
        norm.x.elements = before + i * HD;
        for (uint64_t row = 0; row < ROWS; row++) {
            ref_norm_segment(&norm, row, 0, &segment);
            for (uint64_t column = 0; column < D; column++)
                expected[i * HD + ref_row_index(&norm.x, row) + column] = (float)segment.y[column];
        }
    }
    ref_segment_free(&segment);
    download(fixture, mem, after);
    assert_true(distance(after, expected, 0) < 1e-5);
    assert_true(distance(after, expected, 1) < 1e-5);
    assert_true(distance(after, before, 2) == 0);
}

/* dx of a packed k lies over its dy. It is that of the formula, and the other parts are unchanged. */
static void gradients_lie_in_packed_tensors(void **state) {
    const struct fixture *fixture = *state;
    float x[PACKED], dy[PACKED], dx[PACKED];
    fill(x, 2);
    fill(dy, 3);
    const cl_mem x_mem = upload(fixture, x), dy_mem = upload(fixture, dy);
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.rows = ROWS;
    desc.cols = D;
    desc.dx.dtype = CLNORM_F32;
    set_outer(&desc.x, third);
    set_outer(&desc.dy, third);
    set_outer(&desc.dx, third);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = part(x_mem, 1);
    args.dy = args.dx = part(dy_mem, 1);
    assert_int_equal(clnorm_norm_backward(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    download(fixture, dy_mem, dx);
    clReleaseMemObject(x_mem);
    assert_true(distance(dx, dy, 0) == 0 && distance(dx, dy, 2) == 0);
    for (uint64_t row = 0; row < ROWS; row++) {
        const uint64_t first = (row / H * 3 + 1) * HD + row % H * D;
        double mean = 0, square = 0, c1 = 0, c2 = 0;
        for (int i = 0; i < D; i++)
            mean += (double)x[first + (uint64_t)i] / D;
        for (int i = 0; i < D; i++)
            square += pow((double)x[first + (uint64_t)i] - mean, 2) / D;
        const double rstd = 1 / sqrt(square + desc.eps);
        for (uint64_t i = first; i < first + D; i++) {
            c1 += ((double)x[i] - mean) * rstd * (double)dy[i] / D;
            c2 += (double)dy[i] / D;
        }
        for (uint64_t i = first; i < first + D; i++)
            assert_true(fabs((double)dx[i] - rstd * ((double)dy[i] - ((double)x[i] - mean) * rstd * c1 - c2)) < 1e-5);
    }
}

static void overlaps_are_found(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_dim x[3], y[3];
        uint64_t x_at, y_at; /* elements */
        const char *words;   /* NULL: accepted */
    } cases[] = {
        {{{BS, PACKED_ROW}, {H, D}}, {{BS, PACKED_ROW}, {H, D}}, 0, HD, NULL}, /* k from q */
        {{{BS, PACKED_ROW}, {H, D}}, {{BS, PACKED_ROW}, {H, D}}, HD, HD, NULL},
        {{{BS, PACKED_ROW}, {H, D}}, {{BS, PACKED_ROW}, {H, D}}, 0, HD - 1, "overlaps args.x"},
        {{{BS, PACKED_ROW}, {H, D}}, {{BS, PACKED_ROW}, {H, D}}, HD2, HD + 1, "overlaps args.x"},
        {{{BS, PACKED_ROW}, {H, D}}, {{BS, PACKED_ROW}, {H, D}}, HD2, HD, NULL},
        /* rows of x between the rows of y, in another order */
        {{{B, SHD2}, {H, D2}, {S, HD2}}, {{ROWS, D2}}, 0, D, NULL},
        {{{B, SHD2}, {H, D2}, {S, HD2}}, {{ROWS, D2}}, 0, D + 1, "overlaps args.x"},
        {{{B, SHD2}, {H, D2}, {S, HD2}}, {{ROWS, D2}}, 0, 0, "expected the same element size and row stride"},
        {{{B, SHD}, {S, HD}, {H, D}}, {{ROWS, D}}, 0, 0, NULL}, /* the same rows with other dimensions */
        {{{B, 300}, {SH, D}}, {{B, 96}, {SH, D}}, 0, 0, "the same outer dimensions"},
        {{{B, 0}, {SH, D}}, {{ROWS, D}}, 0, SHD, NULL}, /* after an expanded x */
        {{{B, 0}, {SH, D}}, {{ROWS, D}}, 0, SHD - 1, "overlaps args.x"},
        {{{ROWS, 0}}, {{ROWS, D2}}, D, 0, NULL}, /* in y's first gap */
        {{{ROWS, 0}}, {{ROWS, D2}}, D7 - 1, 0, "overlaps args.x"},
        {{{ROWS, 10}}, {{ROWS, 17}}, 8, 24, "overlaps args.x"}, /* other strides, gaps in both */
    };
    const cl_mem mem = fixture_buffer(fixture, CL_MEM_READ_WRITE, 1 << 16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_norm_desc desc = forward_of(ROWS, D);
        set_outer(&desc.x, cases[i].x);
        set_outer(&desc.y, cases[i].y);
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = (clnorm_buffer){mem, cases[i].x_at * sizeof(float)};
        args.y = (clnorm_buffer){mem, cases[i].y_at * sizeof(float)};
        const clnorm_status status = clnorm_norm_forward(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL);
        if (status != (cases[i].words ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS) ||
            (status && !strstr(clnorm_error_detail(), cases[i].words)))
            fail_msg("case %zu: %s, \"%s\"", i, clnorm_status_text(status), clnorm_error_detail());
    }
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    clReleaseMemObject(mem);
}

/* A buffer of the exact size, and one that is an element short. */
static void short_buffers_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc desc = forward_of(ROWS, D);
    set_outer(&desc.x, third);
    cl_int code;
    const uint64_t bytes = THIRD * sizeof(float);
    for (uint64_t missing = 0; missing < 8; missing += 4) {
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x.mem = clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE, bytes - missing, NULL, &code);
        args.y.mem = clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE, DENSE * sizeof(float), NULL, &code);
        const clnorm_status status = clnorm_norm_forward(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL);
        assert_int_equal(status, missing ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS);
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        clReleaseMemObject(args.x.mem);
        clReleaseMemObject(args.y.mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_dimensions_are_refused),      cmocka_unit_test(dimensions_of_other_tensors_are_refused),
        cmocka_unit_test(buffers_hold_the_extent),         cmocka_unit_test(one_stride_has_the_plain_kernel),
        cmocka_unit_test(many_rows_have_64_bit_numbers),   cmocka_unit_test(parts_are_normalised_in_place),
        cmocka_unit_test(gradients_lie_in_packed_tensors), cmocka_unit_test(overlaps_are_found),
        cmocka_unit_test(short_buffers_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
