/* Enqueues that are refused: arguments, queues and buffers that do not fit the plan. Nothing is launched for them. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_case.h"
#include "refusal.h"

/* A forward norm of 6 x 40 with every tensor, and objects of another cl_context with the same device. */
struct scene {
    const struct fixture *fixture;
    struct norm_run run;
    clnorm_plan *plan;
    cl_context other;       /* another cl_context */
    cl_command_queue queue; /* of other */
    cl_mem foreign;         /* a large buffer of other */
};

static struct norm_case full_case(void) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 6, 40), .seed = 1};
    clnorm_norm_desc *desc = &norm_case.desc;
    desc->x.dtype = CLNORM_BF16;
    desc->y.dtype = CLNORM_F32;
    desc->z.dtype = CLNORM_F16;
    desc->weight.dtype = desc->bias.dtype = CLNORM_F32;
    desc->gate = CLNORM_GATE_SILU;
    desc->save_mean = desc->save_rstd = true;
    desc->residual.dtype = desc->residual_out.dtype = CLNORM_F16;
    desc->dropout = 0.25;
    desc->save_mask = desc->row_scale = true;
    return norm_case;
}

static struct scene scene_open(const struct fixture *fixture) {
    const struct norm_case norm_case = full_case();
    struct scene scene = {.fixture = fixture, .run = norm_run_make(&norm_case)};
    norm_run_upload(fixture, &scene.run);
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &scene.run.desc, &scene.plan), CLNORM_SUCCESS);
    cl_int code;
    scene.other = clCreateContext(NULL, 1, &fixture->device.device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    scene.queue = clCreateCommandQueue(scene.other, fixture->device.device, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    scene.foreign = clCreateBuffer(scene.other, CL_MEM_READ_WRITE, 1 << 16, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return scene;
}

static void scene_close(struct scene *scene) {
    clnorm_plan_destroy(scene->plan);
    norm_run_free(&scene->run);
    clReleaseMemObject(scene->foreign);
    clReleaseCommandQueue(scene->queue);
    clReleaseContext(scene->other);
}

static void assert_outputs_untouched(const struct scene *scene) {
    assert_int_equal(clFinish(scene->fixture->queue), CL_SUCCESS);
    assert_true(tensor_unchanged(scene->fixture, &scene->run.y, "y"));
    assert_true(tensor_unchanged(scene->fixture, &scene->run.mean, "mean"));
    assert_true(tensor_unchanged(scene->fixture, &scene->run.rstd, "rstd"));
    assert_true(tensor_unchanged(scene->fixture, &scene->run.residual_out, "residual_out"));
    assert_true(tensor_unchanged(scene->fixture, &scene->run.mask, "dropout_mask"));
}

/* Enqueues args that must be refused with a status and a message that contains all words of a NULL-terminated list. */
static void assert_refused(const struct scene *scene, cl_command_queue queue, const clnorm_args *args,
                           clnorm_status expected, const char *const *words) {
    cl_event event = NULL;
    const clnorm_status status = clnorm_plan_enqueue(scene->plan, queue, args, 0, NULL, &event);
    if (status != expected)
        fail_msg("%s: \"%s\", not \"%s\"", words[0], clnorm_status_text(status), clnorm_status_text(expected));
    assert_null(event);
    for (; *words != NULL; words++)
        if (strstr(clnorm_error_detail(), *words) == NULL)
            fail_msg("\"%s\" does not contain \"%s\"", clnorm_error_detail(), *words);
    assert_outputs_untouched(scene);
}

/* The tensors of an enqueue, and their names in messages. */
static const struct {
    const char *name;
    size_t place;
} tensors[] = {
    {"args.x", offsetof(clnorm_args, x)},
    {"args.weight", offsetof(clnorm_args, weight)},
    {"args.bias", offsetof(clnorm_args, bias)},
    {"args.z", offsetof(clnorm_args, z)},
    {"args.y", offsetof(clnorm_args, y)},
    {"args.mean", offsetof(clnorm_args, mean)},
    {"args.rstd", offsetof(clnorm_args, rstd)},
    {"args.residual", offsetof(clnorm_args, residual)},
    {"args.row_scale", offsetof(clnorm_args, row_scale)},
    {"args.residual_out", offsetof(clnorm_args, residual_out)},
    {"args.dropout_mask", offsetof(clnorm_args, dropout_mask)},
};

enum { TENSORS = sizeof tensors / sizeof *tensors };

static clnorm_buffer *buffer_at(clnorm_args *args, size_t place) {
    return (clnorm_buffer *)(void *)((char *)args + place);
}

static size_t size_of(cl_mem mem) {
    size_t size = 0;
    assert_int_equal(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof size, &size, NULL), CL_SUCCESS);
    return size;
}

/* ------------------------------------------------------------------------------------------------------- each tensor */

static void missing_buffers_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    for (int i = 0; i < TENSORS; i++) {
        clnorm_args args = norm_run_args(&scene.run);
        buffer_at(&args, tensors[i].place)->mem = NULL;
        assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){tensors[i].name, "NULL", NULL});
    }
    scene_close(&scene);
}

/* An offset at which the buffer is one element too small. */
static void small_buffers_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    const struct tensor *const held[TENSORS] = {
        &scene.run.x,         &scene.run.weight,       &scene.run.bias, &scene.run.z,
        &scene.run.y,         &scene.run.mean,         &scene.run.rstd, &scene.run.residual,
        &scene.run.row_scale, &scene.run.residual_out, &scene.run.mask};
    for (int i = 0; i < TENSORS; i++) {
        clnorm_args args = norm_run_args(&scene.run);
        clnorm_buffer *buffer = buffer_at(&args, tensors[i].place);
        const uint64_t element = clnorm_dtype_size(held[i]->dtype);
        const uint64_t elements = (held[i]->rows - 1) * held[i]->stride + held[i]->cols;
        char span[32];
        char offset[32];
        buffer->offset = size_of(buffer->mem) - elements * element + element;
        (void)snprintf(span, sizeof span, "%llu", (unsigned long long)elements * element);
        (void)snprintf(offset, sizeof offset, "%llu", (unsigned long long)buffer->offset);
        assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){tensors[i].name, span, offset, NULL});
        buffer->offset -= element; /* just fits */
        assert_int_equal(clnorm_plan_enqueue(scene.plan, scene.fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
        assert_int_equal(clFinish(scene.fixture->queue), CL_SUCCESS);
        norm_run_upload(scene.fixture, &scene.run); /* restores the outputs */
    }
    scene_close(&scene);
}

static void offsets_beyond_the_buffer_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    for (int i = 0; i < TENSORS; i++) {
        clnorm_args args = norm_run_args(&scene.run);
        buffer_at(&args, tensors[i].place)->offset = UINT64_MAX - 7;
        assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){tensors[i].name, "18446744073709551608", NULL});
    }
    scene_close(&scene);
}

/* Except the mask, whose elements are bytes. */
static void misaligned_offsets_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    for (int i = 0; i < TENSORS - 1; i++) {
        clnorm_args args = norm_run_args(&scene.run);
        buffer_at(&args, tensors[i].place)->offset = 513;
        assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){tensors[i].name, "offset", "513", "multiple", NULL});
    }
    scene_close(&scene);
}

static void buffers_of_another_context_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    for (int i = 0; i < TENSORS; i++) {
        clnorm_args args = norm_run_args(&scene.run);
        buffer_at(&args, tensors[i].place)->mem = scene.foreign;
        assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){tensors[i].name, "cl_context", NULL});
    }
    scene_close(&scene);
}

/* A plan of x and y alone is given each of the other tensors. */
static void unwanted_buffers_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    clnorm_plan_destroy(scene.plan);
    clnorm_norm_desc bare = norm_desc_of(CLNORM_LAYER_NORM, 6, 40);
    bare.x.dtype = CLNORM_BF16;
    bare.y.dtype = CLNORM_F32;
    assert_int_equal(clnorm_norm_forward_plan_create(scene.fixture->context, &bare, &scene.plan), CLNORM_SUCCESS);
    for (int i = 0; i < TENSORS; i++) {
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = tensor_buffer(&scene.run.x);
        args.y = tensor_buffer(&scene.run.y);
        if (buffer_at(&args, tensors[i].place)->mem != NULL)
            continue;
        buffer_at(&args, tensors[i].place)->mem = scene.run.x.mem;
        assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){tensors[i].name, "given", NULL});
    }
    scene_close(&scene);
}

static void images_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    const cl_image_format format = {CL_RGBA, CL_FLOAT};
    const cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 64};
    cl_int code;
    const cl_mem image = clCreateImage(scene.fixture->cl, CL_MEM_READ_WRITE, &format, &shape, NULL, &code);
    if (code != CL_SUCCESS) {
        scene_close(&scene);
        skip(); /* a device without images */
    }
    clnorm_args args = norm_run_args(&scene.run);
    args.x.mem = image;
    assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_BUFFER, (const char *[]){"args.x", "buffer", NULL});
    clReleaseMemObject(image);
    scene_close(&scene);
}

/* y over x, but with another dtype or stride. */
static void y_over_x_must_match_it(void **state) {
    const struct fixture *fixture = *state;
    struct scene scene = scene_open(fixture);
    for (int i = 0; i < 2; i++) {
        clnorm_plan_destroy(scene.plan);
        clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 2, 20);
        desc.y.dtype = i ? CLNORM_F32 : CLNORM_BF16;
        desc.y.stride = i ? 24 : 0;
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &scene.plan), CLNORM_SUCCESS);
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = args.y = tensor_buffer(&scene.run.y);
        assert_refused(&scene, fixture->queue, &args, CLNORM_INVALID_BUFFER,
                       (const char *[]){"args.y", i ? "96" : "2", i ? "80" : "4", NULL});
    }
    scene_close(&scene);
}

/* --------------------------------------------------------------------------------------------------- the whole call */

static void missing_arguments_are_refused(void **state) {
    struct scene scene = scene_open(*state);
    const cl_command_queue queue = scene.fixture->queue;
    clnorm_args args = norm_run_args(&scene.run);
    assert_refused(&scene, queue, NULL, CLNORM_INVALID_ARGUMENT, (const char *[]){"args", "NULL", NULL});
    args.size = 6;
    assert_refused(&scene, queue, &args, CLNORM_INVALID_ARGUMENT, (const char *[]){"args.size is 6", "expected", NULL});
    args.size = sizeof args;
    assert_int_equal(clnorm_plan_enqueue(NULL, queue, &args, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_plan_enqueue(scene.plan, queue, &args, 2, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_detail("wait_list");
    assert_outputs_untouched(&scene);
    scene_close(&scene);
}

static void seed_belongs_to_dropout(void **state) {
    struct scene scene = scene_open(*state);
    const clnorm_seed seed = {1, 2};
    clnorm_args args = norm_run_args(&scene.run);
    args.seed = NULL;
    assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_ARGUMENT,
                   (const char *[]){"args.seed is NULL", "dropout", NULL});
    clnorm_plan_destroy(scene.plan);
    const clnorm_norm_desc plain = norm_desc_of(CLNORM_RMS_NORM, 6, 40);
    assert_int_equal(clnorm_norm_forward_plan_create(scene.fixture->context, &plain, &scene.plan), CLNORM_SUCCESS);
    args = (clnorm_args)CLNORM_ARGS_INIT;
    args.x = args.y = tensor_buffer(&scene.run.y);
    args.seed = &seed;
    assert_refused(&scene, scene.fixture->queue, &args, CLNORM_INVALID_ARGUMENT,
                   (const char *[]){"args.seed is given", "neither dropout nor stochastic rounding", NULL});
    scene_close(&scene);
}

static void queues_must_belong_to_the_context(void **state) {
    struct scene scene = scene_open(*state);
    const clnorm_args args = norm_run_args(&scene.run);
    assert_refused(&scene, NULL, &args, CLNORM_INVALID_QUEUE, (const char *[]){"queue", NULL});
    assert_refused(&scene, scene.queue, &args, CLNORM_INVALID_QUEUE, (const char *[]){"queue", "cl_context", NULL});
    assert_int_equal(clnorm_plan_warm_up(scene.plan, scene.queue), CLNORM_INVALID_QUEUE);
    assert_int_equal(clnorm_plan_warm_up(scene.plan, NULL), CLNORM_INVALID_QUEUE);
    assert_int_equal(clnorm_plan_warm_up(NULL, scene.fixture->queue), CLNORM_INVALID_ARGUMENT);
    assert_outputs_untouched(&scene);
    scene_close(&scene);
}

/* A context of two devices: the plan is for the first one, and the queue is the second one's. */
static void queue_of_another_device_is_refused(void **state) {
    const struct fixture *fixture = *state;
    cl_device_id devices[2];
    cl_uint count = 0;
    const cl_platform_id platform = fixture->device.platform;
    assert_int_equal(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &count), CL_SUCCESS);
    if (count < 2)
        skip();
    cl_int code;
    const cl_context both = clCreateContext(NULL, 2, devices, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    const cl_command_queue second = clCreateCommandQueue(both, devices[1], 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    const cl_mem mem = clCreateBuffer(both, CL_MEM_READ_WRITE, 4096, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "";
    clnorm_context *context = NULL;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_context_create(both, devices[0], &options, &context), CLNORM_SUCCESS);
    const clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 4, 8);
    assert_int_equal(clnorm_norm_forward_plan_create(context, &desc, &plan), CLNORM_SUCCESS);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = args.y.mem = mem;
    cl_event event = NULL;
    assert_int_equal(clnorm_plan_enqueue(plan, second, &args, 0, NULL, &event), CLNORM_INVALID_QUEUE);
    assert_detail("device");
    assert_null(event);
    clnorm_plan_destroy(plan);
    clnorm_context_destroy(context);
    clReleaseMemObject(mem);
    clReleaseCommandQueue(second);
    clReleaseContext(both);
}

/* A device that the cl_context does not have. */
static void context_needs_its_own_device(void **state) {
    const struct fixture *fixture = *state;
    cl_device_id devices[2];
    cl_uint count = 0;
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(NULL, fixture->device.device, NULL, &context), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_context_create(fixture->cl, NULL, NULL, &context), CLNORM_INVALID_ARGUMENT);
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.size = 1;
    assert_int_equal(clnorm_context_create(fixture->cl, fixture->device.device, &options, &context),
                     CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clGetDeviceIDs(fixture->device.platform, CL_DEVICE_TYPE_ALL, 2, devices, &count), CL_SUCCESS);
    if (count >= 2) {
        const cl_device_id other = devices[0] == fixture->device.device ? devices[1] : devices[0];
        assert_int_not_equal(clnorm_context_create(fixture->cl, other, NULL, &context), CLNORM_SUCCESS);
        assert_detail("device");
    }
    assert_null(context);
    clnorm_context_destroy(NULL);
}

int main(void) {
    (void)setenv("POCL_DEVICES", "pthread pthread", 0); /* PoCL then has two devices, for the tests that need another one */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_buffers_are_refused),
        cmocka_unit_test(small_buffers_are_refused),
        cmocka_unit_test(offsets_beyond_the_buffer_are_refused),
        cmocka_unit_test(misaligned_offsets_are_refused),
        cmocka_unit_test(buffers_of_another_context_are_refused),
        cmocka_unit_test(unwanted_buffers_are_refused),
        cmocka_unit_test(images_are_refused),
        cmocka_unit_test(y_over_x_must_match_it),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(seed_belongs_to_dropout),
        cmocka_unit_test(queues_must_belong_to_the_context),
        cmocka_unit_test(queue_of_another_device_is_refused),
        cmocka_unit_test(context_needs_its_own_device),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
