/* Arguments of backward normalisations that are refused, each with its status and error message. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_backward_case.h"

/* A plan of 6 x 40 with every tensor. */
struct scene {
    const struct fixture *fixture;
    struct norm_backward_run run;
    clnorm_plan *plan;
};

static void scene_plan(struct scene *scene, const clnorm_norm_backward_desc *desc) {
    clnorm_plan_destroy(scene->plan);
    scene->plan = NULL;
    if (clnorm_norm_backward_plan_create(scene->fixture->context, desc, &scene->plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
}

static struct scene scene_open(const struct fixture *fixture) {
    struct norm_backward_case backward_case = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 6, 40, CLNORM_F32),
                                               .seed = 1};
    clnorm_norm_backward_desc *desc = &backward_case.desc;
    desc->x.dtype = CLNORM_BF16;
    desc->z.dtype = CLNORM_F16;
    desc->gate = CLNORM_GATE_SILU;
    desc->dz.dtype = CLNORM_F16;
    desc->mean_given = desc->rstd_given = true;
    /* without it some devices need no workspace for so few rows */
    assert_int_equal(clnorm_config_parse("keep=reread,accumulator=memory", &desc->config), CLNORM_SUCCESS);
    struct scene scene = {.fixture = fixture, .run = norm_backward_run_make(&backward_case)};
    scene_plan(&scene, &scene.run.desc);
    norm_backward_run_prepare(scene.plan, &scene.run);
    norm_backward_run_upload(fixture, &scene.run);
    return scene;
}

static void scene_close(struct scene *scene) {
    clnorm_plan_destroy(scene->plan);
    norm_backward_run_free(&scene->run);
}

/* The tensors of an enqueue, by their names in error messages. */
static const struct {
    const char *name;
    size_t argument, tensor; /* offsets in clnorm_args and in struct norm_backward_run */
} tensors[] = {
    {"args.x", offsetof(clnorm_args, x), offsetof(struct norm_backward_run, x)},
    {"args.weight", offsetof(clnorm_args, weight), offsetof(struct norm_backward_run, weight)},
    {"args.bias", offsetof(clnorm_args, bias), offsetof(struct norm_backward_run, bias)},
    {"args.z", offsetof(clnorm_args, z), offsetof(struct norm_backward_run, z)},
    {"args.dy", offsetof(clnorm_args, dy), offsetof(struct norm_backward_run, dy)},
    {"args.mean", offsetof(clnorm_args, mean), offsetof(struct norm_backward_run, mean)},
    {"args.rstd", offsetof(clnorm_args, rstd), offsetof(struct norm_backward_run, rstd)},
    {"args.dx", offsetof(clnorm_args, dx), offsetof(struct norm_backward_run, dx)},
    {"args.dz", offsetof(clnorm_args, dz), offsetof(struct norm_backward_run, dz)},
    {"args.y", offsetof(clnorm_args, y), offsetof(struct norm_backward_run, y)},
    {"args.dweight", offsetof(clnorm_args, dweight), offsetof(struct norm_backward_run, dweight)},
    {"args.dbias", offsetof(clnorm_args, dbias), offsetof(struct norm_backward_run, dbias)},
    {"args.workspace", offsetof(clnorm_args, workspace), offsetof(struct norm_backward_run, workspace)},
};

enum { TENSORS = sizeof tensors / sizeof *tensors, WORKSPACE = TENSORS - 1 }; /* WORKSPACE: its index */

static clnorm_buffer *buffer_at(clnorm_args *args, int i) {
    return (clnorm_buffer *)(void *)((char *)args + tensors[i].argument);
}

static const struct tensor *tensor_at(const struct scene *scene, int i) {
    return (const struct tensor *)(const void *)((const char *)&scene->run + tensors[i].tensor);
}

/* The enqueue must fail with this status, leave the tensors as they are, and have all words in its error message. words is
 * ended by NULL. */
static void assert_refused(const struct scene *scene, const clnorm_args *args, clnorm_status expected,
                           const char *const *words) {
    cl_event event = NULL;
    const clnorm_status status = clnorm_plan_enqueue(scene->plan, scene->fixture->queue, args, 0, NULL, &event);
    if (status != expected)
        fail_msg("%s: \"%s\", not \"%s\"", words[0], clnorm_status_text(status), clnorm_status_text(expected));
    assert_null(event);
    for (; *words != NULL; words++)
        if (strstr(clnorm_error_detail(), *words) == NULL)
            fail_msg("\"%s\" does not say %s", clnorm_error_detail(), *words);
    assert_int_equal(clFinish(scene->fixture->queue), CL_SUCCESS);
    for (int i = 0; i < TENSORS; i++)
        assert_true(tensor_unchanged(scene->fixture, tensor_at(scene, i), tensors[i].name));
}

static size_t size_of(cl_mem mem) {
    size_t size = 0;
    assert_int_equal(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof size, &size, NULL), CL_SUCCESS);
    return size;
}

static void bad_buffers_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    cl_int code;
    const cl_context other = clCreateContext(NULL, 1, &scene.fixture->device.device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    const cl_mem foreign = clCreateBuffer(other, CL_MEM_READ_WRITE, 1 << 20, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    for (int i = 0; i < TENSORS; i++) {
        const char *name = tensors[i].name;
        clnorm_args args = norm_backward_run_args(&scene.run);
        clnorm_buffer *buffer = buffer_at(&args, i);
        const clnorm_buffer valid = *buffer;
        buffer->mem = NULL;
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){name, "NULL", NULL});
        buffer->mem = foreign;
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){name, "cl_context", NULL});
        *buffer = (clnorm_buffer){valid.mem, UINT64_MAX - 63};
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){name, "18446744073709551552", NULL});
        *buffer = (clnorm_buffer){valid.mem, 513};
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){name, "offset", "513", "multiple", NULL});
    }
    clReleaseMemObject(foreign);
    clReleaseContext(other);
    scene_close(&scene);
}

/* Bytes from the first element to the end of the last one. */
static uint64_t span_of(const struct tensor *tensor) {
    return ((tensor->rows - 1) * tensor->stride + tensor->cols) * clnorm_dtype_size(tensor->dtype);
}

/* Each buffer has an element less than its tensor needs. */
static void small_buffers_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    for (int i = 0; i < TENSORS; i++) {
        const bool workspace = i == WORKSPACE;
        const uint64_t element = workspace ? 64 : clnorm_dtype_size(tensor_at(&scene, i)->dtype);
        const uint64_t span = workspace ? clnorm_plan_workspace_size(scene.plan) : span_of(tensor_at(&scene, i));
        clnorm_args args = norm_backward_run_args(&scene.run);
        clnorm_buffer *buffer = buffer_at(&args, i);
        buffer->offset = (size_of(buffer->mem) - span) / element * element + element;
        char text[32];
        (void)snprintf(text, sizeof text, "%" PRIu64, span);
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){tensors[i].name, text, NULL});
    }
    scene_close(&scene);
}

/* The buffer of a tensor without elements may be missing. One that is given is bound, so it must suit the plan. */
static void buffers_without_elements_are_checked(void **state) {
    struct scene scene = scene_open(*state);
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_RMS_NORM, 0, 40);
    desc.dx.dtype = CLNORM_DTYPE_NONE;
    desc.dweight.dtype = CLNORM_F32;
    scene_plan(&scene, &desc);
    cl_int code;
    const cl_context other = clCreateContext(NULL, 1, &scene.fixture->device.device, NULL, NULL, &code);
    const cl_mem foreign = clCreateBuffer(other, CL_MEM_READ_WRITE, 64, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.dweight = tensor_buffer(&scene.run.dweight);
    args.x.mem = foreign;
    assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){"args.x", "cl_context", NULL});
    args.x = (clnorm_buffer){scene.run.x.mem, 3};
    assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){"args.x", "offset", "3", NULL});
    args.x.mem = NULL;
    assert_int_equal(clnorm_plan_enqueue(scene.plan, scene.fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clFinish(scene.fixture->queue), CL_SUCCESS);
    clReleaseMemObject(foreign);
    clReleaseContext(other);
    scene_close(&scene);
}

/* The workspace begins at a multiple of 64 bytes. */
static void workspace_must_be_aligned(void **state) {
    struct scene scene = scene_open(*state);
    clnorm_args without = norm_backward_run_args(&scene.run);
    without.workspace.mem = NULL;
    assert_refused(&scene, &without, CLNORM_INVALID_BUFFER,
                   (const char *[]){"args.workspace.mem is NULL", "clnorm_plan_workspace_size", NULL});
    for (uint64_t offset = 4; offset < 64; offset *= 2) {
        clnorm_args args = norm_backward_run_args(&scene.run);
        args.workspace.offset = offset;
        char text[32];
        (void)snprintf(text, sizeof text, "%" PRIu64, offset);
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){"args.workspace", text, "64", NULL});
    }
    scene_close(&scene);
}

enum { WORKSPACE_AT = 1 << 14 }; /* in the buffer of the test below, more than any tensor's bytes */

/* Arguments with a tensor and the workspace in one buffer: the tensor begins at a byte of it. */
static clnorm_args sharing(const struct scene *scene, int i, cl_mem mem, uint64_t at) {
    clnorm_args args = norm_backward_run_args(&scene->run);
    *buffer_at(&args, i) = (clnorm_buffer){mem, at};
    args.workspace = (clnorm_buffer){mem, WORKSPACE_AT};
    return args;
}

/* An input or output that has one element in common with the workspace is refused; it may lie right before and after. */
static void workspace_has_its_own_place(void **state) {
    struct scene scene = scene_open(*state);
    const uint64_t end = WORKSPACE_AT + clnorm_plan_workspace_size(scene.plan);
    const cl_mem mem = fixture_buffer(scene.fixture, CL_MEM_READ_WRITE, (size_t)end + WORKSPACE_AT);
    for (int i = 0; i < WORKSPACE; i++) {
        const struct tensor *const tensor = tensor_at(&scene, i);
        const uint64_t element = clnorm_dtype_size(tensor->dtype), before = WORKSPACE_AT - span_of(tensor);
        const char *const words[] = {tensors[i].name, "args.workspace", "overlaps", NULL};
        clnorm_args args = sharing(&scene, i, mem, before + element);
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, words);
        args = sharing(&scene, i, mem, end - element);
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, words);
    }
    for (int i = 0; i < 2 * WORKSPACE; i++) {
        const uint64_t before = WORKSPACE_AT - span_of(tensor_at(&scene, i / 2));
        const clnorm_args args = sharing(&scene, i / 2, mem, i % 2 ? end : before);
        if (clnorm_plan_enqueue(scene.plan, scene.fixture->queue, &args, 0, NULL, NULL))
            fail_msg("%s: %s", tensors[i / 2].name, clnorm_error_detail());
    }
    assert_int_equal(clFinish(scene.fixture->queue), CL_SUCCESS);
    clReleaseMemObject(mem);
    scene_close(&scene);
}

/* The plan has x, dy, rstd and dx alone; it refuses every other tensor, such as z without a gate. */
static void unwanted_buffers_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    clnorm_norm_backward_desc bare = norm_backward_desc_of(CLNORM_RMS_NORM, 6, 40);
    bare.x.dtype = CLNORM_BF16;
    bare.rstd_given = true;
    scene_plan(&scene, &bare);
    assert_int_equal(clnorm_plan_workspace_size(scene.plan), 0);
    for (int i = 0; i < TENSORS; i++) {
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = tensor_buffer(&scene.run.x);
        args.dy = tensor_buffer(&scene.run.dy);
        args.dx = tensor_buffer(&scene.run.dx);
        args.rstd = tensor_buffer(&scene.run.rstd);
        if (buffer_at(&args, i)->mem != NULL)
            continue;
        buffer_at(&args, i)->mem = scene.run.x.mem;
        assert_refused(&scene, &args, CLNORM_INVALID_BUFFER, (const char *[]){tensors[i].name, "given", NULL});
    }
    scene_close(&scene);
}

/* dx lies over x or dy, or dz over z, with another element size or stride. */
static void outputs_over_inputs_must_match_them(void **state) {
    struct scene scene = scene_open(*state);
    for (int i = 0; i < 6; i++) {
        clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_LAYER_NORM, 2, 20);
        const bool stride = i % 2;
        desc.gate = CLNORM_GATE_SILU;
        desc.x.dtype = desc.dy.dtype = desc.z.dtype = CLNORM_BF16;
        desc.dx.dtype = i < 4 ? stride ? CLNORM_BF16 : CLNORM_F32 : CLNORM_DTYPE_NONE;
        desc.dz.dtype = i < 4 ? CLNORM_DTYPE_NONE : stride ? CLNORM_F16 : CLNORM_F32;
        desc.dx.stride = desc.dz.stride = stride ? 24 : 0;
        desc.mean_given = desc.rstd_given = true;
        scene_plan(&scene, &desc);
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = tensor_buffer(&scene.run.x);
        args.dy = tensor_buffer(&scene.run.dy);
        args.z = tensor_buffer(&scene.run.z);
        args.mean = tensor_buffer(&scene.run.mean);
        args.rstd = tensor_buffer(&scene.run.rstd);
        if (i < 4)
            args.dx = i < 2 ? args.x : args.dy;
        else
            args.dz = args.z;
        const char *names[] = {"args.x", "args.dy", "args.z"};
        assert_refused(
            &scene, &args, CLNORM_INVALID_BUFFER,
            (const char *[]){i < 4 ? "args.dx" : "args.dz", names[i / 2], stride ? "48" : "4", stride ? "40" : "2", NULL});
    }
    scene_close(&scene);
}

static void bad_calls_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    clnorm_args args = norm_backward_run_args(&scene.run);
    args.size = 8;
    assert_refused(&scene, &args, CLNORM_INVALID_ARGUMENT, (const char *[]){"args.size", "8", NULL});
    args.size = sizeof args;
    assert_int_equal(clnorm_plan_enqueue(scene.plan, NULL, &args, 0, NULL, NULL), CLNORM_INVALID_QUEUE);
    assert_int_equal(clnorm_plan_enqueue(scene.plan, scene.fixture->queue, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    for (int i = 0; i < TENSORS; i++)
        assert_true(tensor_unchanged(scene.fixture, tensor_at(&scene, i), tensors[i].name));
    scene_close(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_buffers_are_refused),
        cmocka_unit_test(small_buffers_are_refused),
        cmocka_unit_test(buffers_without_elements_are_checked),
        cmocka_unit_test(workspace_must_be_aligned),
        cmocka_unit_test(unwanted_buffers_are_refused),
        cmocka_unit_test(workspace_has_its_own_place),
        cmocka_unit_test(outputs_over_inputs_must_match_them),
        cmocka_unit_test(bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
