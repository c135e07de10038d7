/* The OpenCL calls of an enqueue: each fails once, and none of their errors is lost; and each launch waits for what it
 * must. Both show on drivers that run commands one after the other, where results are right by chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault_calls.h"
#include "fixture.h"
#include "plan/plan.h"

enum { ROWS = 40, COLS = 64, MOST_KERNELS = 8 };

/* Plans whose kernels have every kind of argument. The seed comes from a dropout. */
static const struct shape {
    const char *config;
    bool numbered; /* a kernel has the number of the launch */
    bool over_dy;  /* dx is dy: the last kernel is launched in two parts */
} shapes[] = {
    {"accumulator=registers", false, false},
    {"vec=4,lanes=8,keep=registers,accumulator=registers,segments=1,tile=32,row_split=exchange", true, false},
    {"accumulator=columns", false, true},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

struct scene {
    const struct fixture *fixture;
    cl_command_queue queue;
    clnorm_norm_backward_desc desc;
    clnorm_plan *plan;
    clnorm_seed seed;
    clnorm_args args;
    cl_event gates[2]; /* what each enqueue waits for: complete */
};

static cl_mem zeros_of(const struct fixture *fixture, size_t bytes) {
    const cl_uchar zero = 0;
    const cl_mem mem = fixture_buffer(fixture, CL_MEM_READ_WRITE, bytes);
    assert_int_equal(clEnqueueFillBuffer(fixture->queue, mem, &zero, 1, 0, bytes, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    return mem;
}

/* The kernels must have the arguments whose errors are looked for. */
static void assert_arguments(const clnorm_plan *plan, const struct shape *shape) {
    bool seeded = false, numbered = false;
    for (unsigned i = 0; i < plan->stages; i++) {
        seeded = seeded || plan->stage[i].seed;
        numbered = numbered || plan->stage[i].launch;
    }
    assert_true(seeded);
    assert_int_equal(numbered, shape->numbered);
}

static void give_buffers(struct scene *scene, bool over_dy) {
    const struct fixture *const fixture = scene->fixture;
    const size_t bytes = (size_t)(scene->desc.rows * scene->desc.cols) * sizeof(float);
    const size_t workspace = (size_t)clnorm_plan_workspace_size(scene->plan);
    clnorm_args_init(&scene->args);
    scene->args.x.mem = zeros_of(fixture, bytes);
    scene->args.dy.mem = zeros_of(fixture, bytes);
    scene->args.dx.mem = over_dy ? scene->args.dy.mem : zeros_of(fixture, bytes);
    scene->args.dweight.mem = zeros_of(fixture, (size_t)scene->desc.cols * sizeof(float));
    scene->args.workspace.mem = workspace ? zeros_of(fixture, workspace) : NULL;
    scene->args.seed = &scene->seed;
}

static void scene_open(struct scene *scene, const struct fixture *fixture, cl_command_queue queue,
                       const struct shape *shape) {
    *scene = (struct scene){fixture, queue, CLNORM_NORM_BACKWARD_DESC_INIT, .seed = {1, 2}};
    scene->desc.rows = ROWS;
    scene->desc.cols = COLS;
    scene->desc.dx.dtype = scene->desc.dweight.dtype = CLNORM_F32;
    scene->desc.dropout = 0.25;
    scene->desc.config = config_of(shape->config);
    if (clnorm_norm_backward_plan_create(fixture->context, &scene->desc, &scene->plan))
        fail_msg("%s: %s", shape->config, clnorm_error_detail());
    assert_in_range(clnorm_plan_kernel_count(scene->plan), 1, MOST_KERNELS);
    assert_arguments(scene->plan, shape);
    give_buffers(scene, shape->over_dy);
    for (size_t i = 0; i < 2; i++) {
        scene->gates[i] = fixture_gate(fixture->cl);
        assert_int_equal(clSetUserEventStatus(scene->gates[i], CL_COMPLETE), CL_SUCCESS);
    }
}

static void scene_close(struct scene *scene) {
    const cl_mem mems[] = {scene->args.x.mem, scene->args.dy.mem, scene->args.dweight.mem};
    for (size_t i = 0; i < sizeof mems / sizeof *mems; i++)
        clReleaseMemObject(mems[i]);
    if (scene->args.dx.mem != scene->args.dy.mem)
        clReleaseMemObject(scene->args.dx.mem);
    if (scene->args.workspace.mem)
        clReleaseMemObject(scene->args.workspace.mem);
    for (size_t i = 0; i < 2; i++)
        clReleaseEvent(scene->gates[i]);
    clnorm_plan_destroy(scene->plan);
}

/* ---------------------------------------------------------------------------------------------------------- the forms */

/* Releases events of a success; a failure must have written none. */
static void take_events(clnorm_status status, const cl_event *events, cl_uint count) {
    for (cl_uint i = 0; i < count; i++) {
        assert_int_equal(status == CLNORM_SUCCESS, events[i] != NULL);
        if (events[i])
            assert_int_equal(clReleaseEvent(events[i]), CL_SUCCESS);
    }
}

static clnorm_status enqueue(const struct scene *scene) {
    return clnorm_plan_enqueue(scene->plan, scene->queue, &scene->args, 2, scene->gates, NULL);
}

static clnorm_status enqueue_for_event(const struct scene *scene) {
    cl_event event = NULL;
    const clnorm_status status = clnorm_plan_enqueue(scene->plan, scene->queue, &scene->args, 2, scene->gates, &event);
    take_events(status, &event, 1);
    return status;
}

static clnorm_status enqueue_kernels(const struct scene *scene) {
    cl_event events[MOST_KERNELS] = {NULL};
    const clnorm_status status =
        clnorm_plan_enqueue_kernels(scene->plan, scene->queue, &scene->args, 2, scene->gates, events);
    take_events(status, events, clnorm_plan_kernel_count(scene->plan));
    return status;
}

static clnorm_status warm_up(const struct scene *scene) {
    return clnorm_plan_warm_up(scene->plan, scene->queue);
}

static clnorm_status one_call(const struct scene *scene) {
    cl_event event = NULL;
    clnorm_args args = scene->args;
    args.workspace.mem = NULL; /* the context has one */
    const clnorm_status status =
        clnorm_norm_backward(scene->fixture->context, scene->queue, &scene->desc, &args, 2, scene->gates, &event);
    take_events(status, &event, 1);
    return status;
}

static const struct form {
    const char *name;
    clnorm_status (*go)(const struct scene *scene);
} forms[] = {{"enqueue", enqueue},
             {"enqueue with an event", enqueue_for_event},
             {"enqueue of kernels", enqueue_kernels},
             {"warm-up", warm_up},
             {"one call", one_call}};

enum { FORMS = sizeof forms / sizeof *forms };

/* Runs a test for each shape on each kind of queue. */
static void for_each_scene(const struct fixture *fixture, void (*check)(const struct scene *scene, bool in_order)) {
    const cl_command_queue_properties orders[] = {0, fixture_out_of_order(fixture)};
    for (size_t order = 0; order < 2; order++) {
        const cl_command_queue queue = fixture_queue(fixture, orders[order]);
        for (size_t i = 0; i < SHAPES; i++) {
            struct scene scene;
            scene_open(&scene, fixture, queue, &shapes[i]);
            check(&scene, !orders[order]);
            scene_close(&scene);
        }
        clReleaseCommandQueue(queue);
    }
}

/* ------------------------------------------------------------------------------------------------------------- errors */

/* Returns whether a call failed: the form makes as many. No call of these forms may fail without an error: each sets what
 * a kernel reads, launches one, waits for one, or checks an argument. */
static bool fail_call(const struct scene *scene, const struct form *form, long at) {
    struct fault_calls *const control = &fault_calls;
    const long references = control->references;
    *control = (struct fault_calls){.fail_at = at, .code = CL_OUT_OF_RESOURCES, .references = references};
    const clnorm_status status = form->go(scene);
    control->fail_at = 0;
    assert_int_equal(clFinish(scene->queue), CL_SUCCESS);
    if (control->references != references)
        fail_msg("%s, call %ld, %s: %ld references are left", form->name, at, control->failed,
                 control->references - references);
    if (!control->failed)
        return false;
    if (status != CLNORM_OUT_OF_DEVICE_MEMORY || clnorm_error_opencl() != CL_OUT_OF_RESOURCES)
        fail_msg("%s, call %ld, %s: its error is lost: %s", form->name, at, control->failed, clnorm_status_text(status));
    return true;
}

static void check_errors(const struct scene *scene, bool in_order) {
    (void)in_order;
    for (size_t i = 0; i < FORMS; i++) {
        assert_int_equal(forms[i].go(scene), CLNORM_SUCCESS);
        long calls = 0;
        while (fail_call(scene, &forms[i], calls + 1))
            calls++;
        assert_in_range(calls, 10, 1000);
    }
}

static void no_error_is_lost(void **state) {
    for_each_scene(*state, check_errors);
}

/* --------------------------------------------------------------------------------------------------------- wait lists */

/* Whether a launch waits for the enqueue's whole list, or for the launch before it and nothing else. */
static bool waits_for_list(const struct scene *scene, const struct fault_launch *launch) {
    return launch->num_wait == 2 && memcmp(launch->awaited, scene->gates, sizeof scene->gates) == 0;
}

static bool waits_for_launch(const struct fault_launch *launch, const struct fault_launch *before) {
    return launch->num_wait == 1 && before->event && launch->awaited[0] == before->event;
}

/* A launch with an offset is the second part of one in place: it waits for the first part, which reads what it overwrites.
 * Other launches wait for the one before, or in an in-order queue, where that has no event, for the list. */
static void check_launches(const struct scene *scene, const struct form *form, bool in_order) {
    fault_calls.launches = 0;
    assert_int_equal(form->go(scene), CLNORM_SUCCESS);
    assert_int_equal(clFinish(scene->queue), CL_SUCCESS);
    const struct fault_launch *const launch = fault_calls.launch;
    assert_in_range(fault_calls.launches, 1, FAULT_LAUNCHES);
    assert_true(waits_for_list(scene, &launch[0]));
    for (unsigned i = 1; i < fault_calls.launches; i++) {
        const bool listed = in_order && form->go != enqueue_kernels && !launch[i].first;
        if (!(listed ? waits_for_list(scene, &launch[i]) : waits_for_launch(&launch[i], &launch[i - 1])))
            fail_msg("%s, launch %u of %u: it waits for %u events, not for %s", form->name, i, fault_calls.launches,
                     launch[i].num_wait, listed ? "the list" : "the launch before");
    }
}

static void check_wait_lists(const struct scene *scene, bool in_order) {
    const bool in_place = scene->args.dx.mem == scene->args.dy.mem;
    for (size_t i = 0; i < FORMS; i++) {
        if (forms[i].go == warm_up) /* it has no list */
            continue;
        check_launches(scene, &forms[i], in_order);
        assert_int_equal(fault_calls.launches, clnorm_plan_kernel_count(scene->plan) + in_place);
        assert_int_equal(fault_calls.launch[fault_calls.launches - 1].first > 0, in_place);
    }
}

static void each_launch_waits(void **state) {
    for_each_scene(*state, check_wait_lists);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_error_is_lost),
        cmocka_unit_test(each_launch_waits),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
