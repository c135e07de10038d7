/* Every OpenCL call and every allocation of the library fails once. fault_calls.h fails the calls, and the linker
 * redirects the allocations to this file. A failure returns a proper status and leaves nothing behind, and later calls
 * work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_allocations.h"
#include "fault_calls.h"
#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "norm_case.h"
#include "scratch.h"

/* --------------------------------------------------------------------------------------------------------- the calls */

enum { ROWS = 3, COLS = 64, GROUP = 16 };

struct scene {
    struct fixture *fixture;
    clnorm_status (*go)(struct scene *scene); /* the calls to try */
    void (*prepare)(struct scene *scene);     /* replaces the results of an earlier run; may be NULL */
    bool (*check)(struct scene *scene);       /* whether the results are right; NULL: each failure must be an error */
    struct norm_run run;
    struct norm_backward_run backward;
    struct tensor x, q, q_t, scale, y, y_t, y_scale, rstd, workspace; /* of operations on 8 bits */
    const char *cache_dir;
};

static clnorm_status enqueue_twice(const struct scene *scene, clnorm_context *context, clnorm_plan *plan) {
    const cl_command_queue queue = scene->fixture->queue;
    const clnorm_args args = norm_run_args(&scene->run);
    cl_event event = NULL;
    clnorm_status status = clnorm_plan_warm_up(plan, queue);
    if (status == CLNORM_SUCCESS) {
        status = clnorm_plan_enqueue(plan, queue, &args, 0, NULL, &event);
        assert_int_equal(status == CLNORM_SUCCESS, event != NULL);
    }
    if (status == CLNORM_SUCCESS)
        status = clnorm_norm_forward(context, queue, &scene->run.desc, &args, 1, &event, NULL);
    if (event != NULL)
        assert_int_equal(clReleaseEvent(event), CL_SUCCESS);
    return status;
}

/* A whole call, from the choice of a device on. */
static clnorm_status try_everything(struct scene *scene) {
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    clnorm_context *context = NULL;
    clnorm_plan *plan = NULL;
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = scene->cache_dir;
    clnorm_status status = clnorm_device_select("", &device);
    if (status == CLNORM_SUCCESS) {
        status = clnorm_context_create(scene->fixture->cl, scene->fixture->device.device, &options, &context);
        assert_int_equal(status == CLNORM_SUCCESS, context != NULL);
    }
    if (status == CLNORM_SUCCESS) {
        status = clnorm_norm_forward_plan_create(context, &scene->run.desc, &plan);
        assert_int_equal(status == CLNORM_SUCCESS, plan != NULL);
    }
    if (status == CLNORM_SUCCESS) {
        scene->run.config = chosen_knobs(plan);
        status = enqueue_twice(scene, context, plan);
    }
    clnorm_plan_destroy(plan);
    clnorm_context_destroy(context);
    return status;
}

static clnorm_status enqueue_and_drop(const struct scene *scene, clnorm_plan *plan, const clnorm_args *args) {
    const clnorm_status status = clnorm_plan_enqueue(plan, scene->fixture->queue, args, 0, NULL, NULL);
    clnorm_plan_destroy(plan);
    return status;
}

/* Quantisation, and the norm of its result: five kernels and a workspace. The context has their programs already. */
static clnorm_status try_quantized(struct scene *scene) {
    clnorm_quantize_desc quantize = CLNORM_QUANTIZE_DESC_INIT;
    quantize.rows = ROWS;
    quantize.cols = COLS;
    quantize.q.scaling = CLNORM_SCALING_GROUP;
    quantize.q.scale_group = GROUP;
    quantize.q_t.dtype = CLNORM_F8_E4M3;
    clnorm_norm_desc norm = norm_desc_of(CLNORM_RMS_NORM, ROWS, COLS);
    norm.x = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_GROUP, .scale_group = GROUP};
    norm.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    norm.y_t.dtype = CLNORM_F8_E4M3;
    norm.save_rstd = 1;
    clnorm_args first = CLNORM_ARGS_INIT, second = CLNORM_ARGS_INIT;
    first.x = tensor_buffer(&scene->x);
    first.q = second.x = tensor_buffer(&scene->q);
    first.q_t = tensor_buffer(&scene->q_t);
    first.scale = second.x_scale = tensor_buffer(&scene->scale);
    second.y = tensor_buffer(&scene->y);
    second.y_t = tensor_buffer(&scene->y_t);
    second.y_scale = tensor_buffer(&scene->y_scale);
    second.rstd = tensor_buffer(&scene->rstd);
    second.workspace = tensor_buffer(&scene->workspace);
    clnorm_plan *plan = NULL;
    clnorm_status status = clnorm_quantize_plan_create(scene->fixture->context, &quantize, &plan);
    assert_int_equal(status == CLNORM_SUCCESS, plan != NULL);
    if (status == CLNORM_SUCCESS)
        status = enqueue_and_drop(scene, plan, &first);
    plan = NULL;
    if (status == CLNORM_SUCCESS) {
        status = clnorm_norm_forward_plan_create(scene->fixture->context, &norm, &plan);
        assert_int_equal(status == CLNORM_SUCCESS, plan != NULL);
    }
    return status == CLNORM_SUCCESS ? enqueue_and_drop(scene, plan, &second) : status;
}

/* The backward of few rows with dx over dy: its last kernel is launched in two parts, one after the other. */
static clnorm_status try_in_place(struct scene *scene) {
    const clnorm_args args = norm_backward_run_args(&scene->backward);
    clnorm_plan *plan = NULL;
    cl_event event = NULL;
    clnorm_status status = clnorm_norm_backward_plan_create(scene->fixture->context, &scene->backward.desc, &plan);
    assert_int_equal(status == CLNORM_SUCCESS, plan != NULL);
    if (status == CLNORM_SUCCESS) {
        status = clnorm_plan_enqueue(plan, scene->fixture->queue, &args, 0, NULL, &event);
        assert_int_equal(status == CLNORM_SUCCESS, event != NULL);
    }
    if (event != NULL)
        assert_int_equal(clReleaseEvent(event), CL_SUCCESS);
    clnorm_plan_destroy(plan);
    return status;
}

/* Replaces an output that an earlier run wrote. */
static void forget(const struct tensor *output, int byte) {
    const size_t element = clnorm_dtype_size(output->dtype);
    unsigned char *const first = tensor_elements(output);
    for (uint64_t row = 0; row < output->rows; row++)
        memset(first + row * output->stride * element, byte, (size_t)output->cols * element);
}

static void prepare_norm(struct scene *scene) {
    forget(&scene->run.y, 0xff);
    forget(&scene->run.rstd, 0xff);
    norm_run_upload(scene->fixture, &scene->run);
}

static bool norm_is_right(struct scene *scene) {
    return norm_run_verify(scene->fixture, &scene->run);
}

static void prepare_quantized(struct scene *scene) {
    forget(&scene->y, 0x11);
    forget(&scene->y_t, 0x22);
    struct tensor *const all[] = {&scene->x,   &scene->q,       &scene->q_t,  &scene->scale,    &scene->y,
                                  &scene->y_t, &scene->y_scale, &scene->rstd, &scene->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_upload(scene->fixture, all[i]);
}

/* y_t must have the codes of y. Other tests check the codes themselves. */
static bool quantized_is_right(struct scene *scene) {
    bool right = tensor_receive(scene->fixture, &scene->y, "y") && tensor_receive(scene->fixture, &scene->y_t, "y_t");
    const unsigned char *y = tensor_elements(&scene->y), *y_t = tensor_elements(&scene->y_t);
    for (int i = 0; i < ROWS * COLS; i++)
        right = right && y_t[i % COLS * ROWS + i / COLS] == y[i];
    return right;
}

static struct scene scene_open(struct fixture *fixture, const char *cache_dir) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 3, 50), .seed = 1};
    norm_case.desc.weight.dtype = norm_case.desc.bias.dtype = CLNORM_F32;
    norm_case.desc.save_mean = norm_case.desc.save_rstd = true;
    struct scene scene = {fixture, try_everything, prepare_norm, norm_is_right, .cache_dir = cache_dir};
    scene.run = norm_run_make(&norm_case);
    return scene;
}

static struct scene quantized_scene_open(struct fixture *fixture) {
    const clnorm_dtype codes = CLNORM_F8_E4M3;
    struct scene scene = {fixture, try_quantized, prepare_quantized, quantized_is_right, .cache_dir = ""};
    scene.x = tensor_make(CLNORM_F32, ROWS, COLS, COLS, 0, TENSOR_NAN);
    scene.q = tensor_make(codes, ROWS, COLS, COLS, 0, TENSOR_CANARY);
    scene.q_t = tensor_make(codes, COLS, ROWS, ROWS, 0, TENSOR_CANARY);
    scene.scale = tensor_make(CLNORM_F32, ROWS, COLS / GROUP, COLS / GROUP, 0, TENSOR_CANARY);
    scene.y = tensor_make(codes, ROWS, COLS, COLS, 0, TENSOR_CANARY);
    scene.y_t = tensor_make(codes, COLS, ROWS, ROWS, 0, TENSOR_CANARY);
    scene.y_scale = tensor_make(CLNORM_F32, 1, 1, 1, 0, TENSOR_CANARY);
    scene.rstd = tensor_make(CLNORM_F32, 1, ROWS, ROWS, 0, TENSOR_CANARY);
    scene.workspace = tensor_make(CLNORM_F32, 1, ROWS, ROWS, 0, TENSOR_CANARY); /* a largest magnitude for each row */
    tensor_fill(&scene.x, INPUT_NORMAL, COLS, 1);
    return scene;
}

static void quantized_scene_close(struct scene *scene) {
    struct tensor *const all[] = {&scene->x,   &scene->q,       &scene->q_t,  &scene->scale,    &scene->y,
                                  &scene->y_t, &scene->y_scale, &scene->rstd, &scene->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_free(all[i]);
}

/* Without faults it must work, and its results must be right. */
static void assert_works(struct scene *scene) {
    scene->prepare(scene);
    if (scene->go(scene) != CLNORM_SUCCESS)
        fail_msg("without a fault: %s", clnorm_error_detail());
    assert_int_equal(clFinish(scene->fixture->queue), CL_SUCCESS);
    assert_true(scene->check(scene));
}

static bool has_other_platforms(void) {
    cl_uint platforms = 0;
    assert_int_equal(clGetPlatformIDs(0, NULL, &platforms), CL_SUCCESS);
    return platforms > 1;
}

/* Whether a call may fail without an error of the library. */
static bool is_harmless(const struct scene *scene, const char *call) {
    const bool cached = *scene->cache_dir != '\0', others = has_other_platforms();
    const struct {
        const char *call;
        bool harmless;
    } calls[] = {
        {"clGetDeviceInfo", true},             /* facts that a device may not know; each has a default */
        {"clCreateProgramWithBinary", cached}, /* the source is compiled instead */
        {"clBuildProgram", cached},            /* of such a binary */
        {"clGetDeviceIDs", others},            /* a platform that does not answer is left out */
        {"clGetPlatformInfo", others},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(call, calls[i].call) == 0)
            return calls[i].harmless;
    return false;
}

/* The library succeeds without the failed call, where it is harmless, and then its results are right. Otherwise it returns
 * an error with a message and OpenCL's code. */
static void assert_proper(struct scene *scene, clnorm_status status, long at, const struct fault_calls *control) {
    if (status == CLNORM_SUCCESS) {
        if (!scene->check || !is_harmless(scene, control->failed))
            fail_msg("call %ld, %s: its error is lost", at, control->failed);
        assert_true(scene->check(scene));
        return;
    }
    const bool proper = status == CLNORM_OUT_OF_HOST_MEMORY || status == CLNORM_OUT_OF_DEVICE_MEMORY ||
                        status == CLNORM_OPENCL_ERROR || status == CLNORM_BUILD_FAILED || status == CLNORM_DEVICE_NOT_FOUND;
    const bool explained = strlen(clnorm_error_detail()) > 10 && clnorm_error_opencl() == control->code;
    if (!proper || !explained) {
        fail_msg("call %ld, %s: \"%s\", \"%s\", %d", at, control->failed, clnorm_status_text(status), clnorm_error_detail(),
                 clnorm_error_opencl());
    }
}

/* ------------------------------------------------------------------------------------------------------------ faults */

/* Returns the number of calls that failed, one in each run. */
static long fail_each_call(struct scene *scene, cl_int code) {
    struct fault_calls *const control = &fault_calls;
    long errors = 0;
    for (long at = 1;; at++) {
        const long references = control->references;
        if (scene->prepare)
            scene->prepare(scene);
        *control = (struct fault_calls){.fail_at = at, .code = code, .references = references};
        const clnorm_status status = scene->go(scene);
        control->fail_at = 0;
        assert_int_equal(clFinish(scene->fixture->queue), CL_SUCCESS);
        if (control->references != references)
            fail_msg("call %ld, %s: %ld references are left", at, control->failed, control->references - references);
        if (control->failed == NULL) {
            assert_int_equal(status, CLNORM_SUCCESS);
            assert_true(errors > at / 2); /* the library cannot continue without most calls */
            return at - 1;
        }
        assert_proper(scene, status, at, control);
        errors += status != CLNORM_SUCCESS;
    }
}

static void every_opencl_call_fails_once(void **state) {
    struct scene scene = scene_open(*state, "");
    assert_works(&scene);
    const long calls = fail_each_call(&scene, CL_OUT_OF_RESOURCES);
    print_message("%ld calls\n", calls);
    assert_in_range(calls, 50, 1000);
    assert_works(&scene);
    norm_run_free(&scene.run);
}

/* The same with a program cache, whose failures are no errors. */
static void every_opencl_call_fails_once_with_a_cache(void **state) {
    char *folder = scratch_make();
    struct scene scene = scene_open(*state, folder);
    assert_works(&scene);
    const long calls = fail_each_call(&scene, CL_OUT_OF_HOST_MEMORY);
    print_message("%ld calls\n", calls);
    assert_works(&scene);
    norm_run_free(&scene.run);
    scratch_remove(folder);
}

static void fail_each_allocation(struct scene *scene) {
    long at = 0, errors = 0;
    do {
        const long references = fault_calls.references;
        at++;
        fault_allocations = (struct fault_allocations){.to_failure = at};
        const clnorm_status status = scene->go(scene);
        fault_allocations.to_failure = 0;
        assert_int_equal(clFinish(scene->fixture->queue), CL_SUCCESS);
        assert_int_equal(fault_calls.references, references);
        assert_true(status == CLNORM_OUT_OF_HOST_MEMORY || status == CLNORM_SUCCESS);
        errors += status != CLNORM_SUCCESS;
    } while (fault_allocations.failed);
    print_message("%ld allocations\n", at - 1);
    assert_in_range(at, 2, 1000);
    assert_true(errors > (at - 1) / 2); /* the library cannot continue without most allocations */
}

static void every_allocation_fails_once(void **state) {
    char *folder = scratch_make();
    const char *const folders[] = {"", folder};
    for (int i = 0; i < 2; i++) {
        struct scene scene = scene_open(*state, folders[i]);
        assert_works(&scene);
        fail_each_allocation(&scene);
        assert_works(&scene);
        norm_run_free(&scene.run);
    }
    scratch_remove(folder);
}

static void quantisation_fails_properly(void **state) {
    struct scene scene = quantized_scene_open(*state);
    assert_works(&scene);
    const long calls = fail_each_call(&scene, CL_OUT_OF_RESOURCES);
    print_message("%ld calls\n", calls);
    assert_in_range(calls, 50, 1000);
    fail_each_allocation(&scene);
    assert_works(&scene);
    quantized_scene_close(&scene);
}

static void backward_in_place_fails_properly(void **state) {
    struct norm_backward_case c = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, ROWS, COLS, CLNORM_F32),
                                   .dx_place = DX_OVER_DY};
    KNOB(c.desc.config, accumulator) = CLN_ACCUMULATOR_COLUMNS;
    struct scene scene = {.fixture = *state, .go = try_in_place, .backward = norm_backward_run_make(&c), .cache_dir = ""};
    assert_int_equal(norm_backward_run_go(scene.fixture, &scene.backward), CLNORM_SUCCESS);
    const long calls = fail_each_call(&scene, CL_OUT_OF_RESOURCES);
    print_message("%ld calls\n", calls);
    assert_in_range(calls, 20, 1000);
    fail_each_allocation(&scene);
    norm_backward_run_free(&scene.backward);
    assert_true(norm_backward_case_passes(scene.fixture, &c));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opencl_call_fails_once),     cmocka_unit_test(every_opencl_call_fails_once_with_a_cache),
        cmocka_unit_test(every_allocation_fails_once),      cmocka_unit_test(quantisation_fails_properly),
        cmocka_unit_test(backward_in_place_fails_properly),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
