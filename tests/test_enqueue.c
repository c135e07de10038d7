/* Enqueues: order by events, no rows, several threads, destroyed plans. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "norm_case.h"

static struct norm_case small_case(uint64_t rows, uint64_t seed) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, rows, 200), .seed = seed};
    norm_case.desc.weight.dtype = CLNORM_F32;
    norm_case.desc.save_mean = norm_case.desc.save_rstd = true;
    return norm_case;
}

static clnorm_plan *plan_of(const struct fixture *fixture, struct norm_run *run) {
    clnorm_plan *plan = NULL;
    if (clnorm_norm_forward_plan_create(fixture->context, &run->desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    run->config = chosen_knobs(plan);
    return plan;
}

static void enqueue(clnorm_plan *plan, cl_command_queue queue, const struct norm_run *run, cl_uint num_wait,
                    const cl_event *wait_list, cl_event *event) {
    const clnorm_args args = norm_run_args(run);
    if (clnorm_plan_enqueue(plan, queue, &args, num_wait, wait_list, event) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
}

static cl_int status_of(cl_event event) {
    cl_int status = CL_SUBMITTED;
    assert_int_equal(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), CL_SUCCESS);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- events */

/* Work waits for every event of its list; its own event is complete when its outputs are written. */
static void check_wait_list(const struct fixture *fixture, cl_command_queue queue, uint64_t rows) {
    const struct norm_case norm_case = small_case(rows, 1);
    struct norm_run run = norm_run_make(&norm_case);
    norm_run_upload(fixture, &run);
    clnorm_plan *plan = plan_of(fixture, &run);
    assert_int_equal(clnorm_plan_warm_up(plan, queue), CLNORM_SUCCESS);
    const cl_event gates[2] = {fixture_gate(fixture->cl), fixture_gate(fixture->cl)};
    cl_event event = NULL;
    enqueue(plan, queue, &run, 2, gates, &event);
    assert_int_equal(clFlush(queue), CL_SUCCESS);
    assert_int_equal(clSetUserEventStatus(gates[0], CL_COMPLETE), CL_SUCCESS);
    assert_true(status_of(event) > CL_COMPLETE);
    assert_true(tensor_unchanged(fixture, &run.y, "y"));
    assert_int_equal(clSetUserEventStatus(gates[1], CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    assert_int_equal(status_of(event), CL_COMPLETE);
    assert_true(norm_run_verify(fixture, &run));
    clReleaseEvent(event);
    clReleaseEvent(gates[0]);
    clReleaseEvent(gates[1]);
    clnorm_plan_destroy(plan);
    norm_run_free(&run);
}

/* Each has its own queue, so that the fixture's can read while the work waits. */
static void work_waits_for_its_list(void **state) {
    const struct fixture *fixture = *state;
    const cl_command_queue in_order = fixture_queue(fixture, 0);
    const cl_command_queue out_of_order = fixture_queue(fixture, fixture_out_of_order(fixture));
    check_wait_list(fixture, in_order, 5);
    check_wait_list(fixture, out_of_order, 5);
    check_wait_list(fixture, in_order, 0);
    check_wait_list(fixture, out_of_order, 0);
    clReleaseCommandQueue(in_order);
    clReleaseCommandQueue(out_of_order);
}

static void check_kernel_events(const struct fixture *fixture, clnorm_plan *plan, struct norm_backward_run *run,
                                cl_command_queue queue) {
    const cl_event gate = fixture_gate(fixture->cl);
    enum { MOST = 8 };
    const cl_uint count = clnorm_plan_kernel_count(plan);
    assert_in_range(count, 2, MOST);
    cl_event events[MOST] = {NULL};
    const clnorm_args args = norm_backward_run_args(run);
    assert_int_equal(clnorm_plan_enqueue_kernels(plan, queue, &args, 1, &gate, events), CLNORM_SUCCESS);
    assert_int_equal(clFlush(queue), CL_SUCCESS);
    for (cl_uint i = 0; i < count; i++)
        assert_true(status_of(events[i]) > CL_COMPLETE);
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &events[count - 1]), CL_SUCCESS);
    for (cl_uint i = 0; i < count; i++) {
        assert_int_equal(status_of(events[i]), CL_COMPLETE);
        clReleaseEvent(events[i]);
    }
    assert_true(norm_backward_run_receive(fixture, run) && norm_backward_run_check(run));
    clReleaseEvent(gate);
}

/* rstd and the sums of slots are parts of the workspace. The first kernel moves x and rstd, the last one the sums and
 * dweight. */
static void check_moved_bytes(const clnorm_plan *plan) {
    const uint64_t rstd = 40 * sizeof(float), aligned = 192;
    clnorm_kernel_info first = CLNORM_KERNEL_INFO_INIT, last = CLNORM_KERNEL_INFO_INIT;
    assert_int_equal(clnorm_plan_kernel(plan, 0, &first), CLNORM_SUCCESS);
    assert_int_equal(clnorm_plan_kernel(plan, clnorm_plan_kernel_count(plan) - 1, &last), CLNORM_SUCCESS);
    assert_int_equal(first.bytes, (uint64_t)40 * 64 * sizeof(float) + rstd);
    assert_int_equal(last.bytes, clnorm_plan_workspace_size(plan) - aligned + 64 * sizeof(float));
    assert_int_equal(first.arguments, 5);
    assert_int_equal(last.arguments, 5);
}

/* The sums over rows are a kernel of their own, which waits for the first. Each queue has new buffers: those of an earlier
 * run hold what the second kernel should wait for. */
static void each_kernel_has_an_event(void **state) {
    const struct fixture *fixture = *state;
    struct norm_backward_case backward_case = {.desc = norm_backward_desc_of(CLNORM_RMS_NORM, 40, 64), .seed = 1};
    backward_case.desc.dweight.dtype = CLNORM_F32;
    /* otherwise some devices use one kernel for so few rows */
    assert_int_equal(clnorm_config_parse("keep=reread,accumulator=memory", &backward_case.desc.config), CLNORM_SUCCESS);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &backward_case.desc, &plan), CLNORM_SUCCESS);
    check_moved_bytes(plan);
    const cl_command_queue_properties orders[] = {0, fixture_out_of_order(fixture)};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const cl_command_queue queue = fixture_queue(fixture, orders[i]);
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        norm_backward_run_prepare(plan, &run);
        norm_backward_run_upload(fixture, &run);
        check_kernel_events(fixture, plan, &run, queue);
        assert_int_equal(clnorm_plan_enqueue_kernels(plan, queue, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
        norm_backward_run_free(&run);
        clReleaseCommandQueue(queue);
    }
    clnorm_plan_destroy(plan);
}

/* Each y is the next x, on an out-of-order queue where the device has one. */
static void events_chain_an_out_of_order_queue(void **state) {
    enum { LINKS = 6 };
    const struct fixture *fixture = *state;
    const cl_command_queue queue = fixture_queue(fixture, fixture_out_of_order(fixture));
    struct norm_run runs[LINKS];
    cl_event events[LINKS];
    const cl_event gate = fixture_gate(fixture->cl);
    clnorm_plan *plan = NULL;
    for (int i = 0; i < LINKS; i++) {
        const struct norm_case norm_case = small_case(300, 1);
        runs[i] = norm_run_make(&norm_case);
        norm_run_upload(fixture, &runs[i]);
        plan = plan != NULL ? plan : plan_of(fixture, &runs[i]);
        runs[i].config = chosen_knobs(plan);
    }
    for (int i = 0; i < LINKS; i++) {
        clnorm_args args = norm_run_args(&runs[i]);
        args.x = i ? tensor_buffer(&runs[i - 1].y) : args.x;
        assert_int_equal(clnorm_plan_enqueue(plan, queue, &args, 1, i ? &events[i - 1] : &gate, &events[i]),
                         CLNORM_SUCCESS);
    }
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &events[LINKS - 1]), CL_SUCCESS);
    for (int i = 0; i < LINKS; i++) {
        if (i > 0) { /* the host's x becomes the y of the link before */
            memcpy(tensor_elements(&runs[i].x), tensor_elements(&runs[i - 1].y), sizeof(float) * 300 * 200);
            tensor_upload(fixture, &runs[i].x);
        }
        assert_true(norm_run_verify(fixture, &runs[i]));
    }
    for (int i = 0; i < LINKS; i++) {
        clReleaseEvent(events[i]);
        norm_run_free(&runs[i]);
    }
    clReleaseEvent(gate);
    clnorm_plan_destroy(plan);
    clReleaseCommandQueue(queue);
}

/* An empty wait list may be a pointer or NULL, with and without rows. */
static void empty_wait_lists_are_fine(void **state) {
    const struct fixture *fixture = *state;
    const cl_event unused = fixture_gate(fixture->cl);
    for (uint64_t rows = 0; rows <= 3; rows += 3) {
        const struct norm_case norm_case = small_case(rows, 2);
        struct norm_run run = norm_run_make(&norm_case);
        norm_run_upload(fixture, &run);
        clnorm_plan *plan = plan_of(fixture, &run);
        enqueue(plan, fixture->queue, &run, 0, &unused, NULL);
        enqueue(plan, fixture->queue, &run, 0, NULL, NULL);
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        assert_true(norm_run_verify(fixture, &run));
        clnorm_plan_destroy(plan);
        norm_run_free(&run);
    }
    /* With a user event that never completes, NVIDIA's driver blocks the end of the process for ever. */
    assert_int_equal(clSetUserEventStatus(unused, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(unused);
}

/* ---------------------------------------------------------------------------------------------------------- no rows */

/* Without rows nothing is read or written, and no buffer is needed. Events are still returned. */
static void no_rows_need_no_buffers(void **state) {
    const struct fixture *fixture = *state;
    const struct norm_case norm_case = small_case(0, 1);
    struct norm_run run = norm_run_make(&norm_case);
    clnorm_plan *plan = plan_of(fixture, &run);
    const clnorm_args args = CLNORM_ARGS_INIT;
    cl_event event = NULL;
    assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, &event), CLNORM_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    event = NULL;
    assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, &run.desc, &args, 0, NULL, &event),
                     CLNORM_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    assert_int_equal(clnorm_plan_workspace_size(plan), 0);
    assert_int_equal(clnorm_plan_warm_up(plan, fixture->queue), CLNORM_SUCCESS);
    char text[64];
    assert_true(clnorm_plan_describe(plan, text, sizeof text) > 0);
    clnorm_plan_destroy(plan);
    norm_run_free(&run);
}

/* -------------------------------------------------------------------------------------------------------- lifetimes */

/* A plan may be destroyed while its work waits. */
static void plan_may_go_before_its_work_is_done(void **state) {
    const struct fixture *fixture = *state;
    const cl_command_queue queue = fixture_queue(fixture, 0);
    const struct norm_case norm_case = small_case(50, 3);
    struct norm_run run = norm_run_make(&norm_case);
    norm_run_upload(fixture, &run);
    clnorm_plan *plan = plan_of(fixture, &run);
    const cl_event gate = fixture_gate(fixture->cl);
    enqueue(plan, queue, &run, 1, &gate, NULL);
    clnorm_plan_destroy(plan);
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    assert_true(norm_run_verify(fixture, &run));
    clReleaseEvent(gate);
    clReleaseCommandQueue(queue);
    norm_run_free(&run);
}

/* A warm-up runs over no rows, touches nothing, and leaves the plan as it was. */
static void warm_up_changes_nothing(void **state) {
    const struct fixture *fixture = *state;
    for (uint64_t shift = 0; shift <= 1; shift++) {
        struct norm_case norm_case = small_case(9, 4);
        norm_case.shift.x = shift;
        struct norm_run run = norm_run_make(&norm_case);
        norm_run_upload(fixture, &run);
        clnorm_plan *plan = plan_of(fixture, &run);
        enqueue(plan, fixture->queue, &run, 0, NULL, NULL); /* so that the kernels have arguments */
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        norm_run_upload(fixture, &run);
        assert_int_equal(clnorm_plan_warm_up(plan, fixture->queue), CLNORM_SUCCESS);
        assert_true(tensor_unchanged(fixture, &run.y, "y"));
        enqueue(plan, fixture->queue, &run, 0, NULL, NULL);
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        assert_true(norm_run_verify(fixture, &run));
        norm_run_free(&run); /* a warm-up must not use the released buffers */
        assert_int_equal(clnorm_plan_warm_up(plan, fixture->queue), CLNORM_SUCCESS);
        clnorm_plan_destroy(plan);
    }
}

/* ---------------------------------------------------------------------------------------------------------- threads */

enum { THREADS = 4, TURNS = 40 };

struct worker {
    const struct fixture *fixture;
    clnorm_plan *plan;      /* NULL: the one-call form */
    cl_command_queue queue; /* its own */
    struct norm_run run;
    unsigned failures;
};

static void *work(void *of) {
    struct worker *worker = of;
    const clnorm_args args = norm_run_args(&worker->run);
    for (int turn = 0; turn < TURNS; turn++) {
        const clnorm_status status =
            worker->plan != NULL
                ? clnorm_plan_enqueue(worker->plan, worker->queue, &args, 0, NULL, NULL)
                : clnorm_norm_forward(worker->fixture->context, worker->queue, &worker->run.desc, &args, 0, NULL, NULL);
        worker->failures += status != CLNORM_SUCCESS;
    }
    worker->failures += clFinish(worker->queue) != CL_SUCCESS;
    return NULL;
}

static void check_threads(const struct fixture *fixture, bool planned) {
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    clnorm_plan *plan = NULL;
    for (int i = 0; i < THREADS; i++) {
        struct norm_case norm_case = small_case(20, (uint64_t)i);
        norm_case.shift.x = norm_case.shift.y = i % 2 ? 3 : 0;         /* two kernels, on devices that have them */
        norm_case.desc.cols = planned ? 200 : 200 + (uint64_t)(i % 2); /* two plans */
        workers[i] =
            (struct worker){.fixture = fixture, .queue = fixture_queue(fixture, 0), .run = norm_run_make(&norm_case)};
        norm_run_upload(fixture, &workers[i].run);
        plan = plan != NULL ? plan : plan_of(fixture, &workers[i].run);
        workers[i].run.config = chosen_knobs(plan);
        workers[i].plan = planned ? plan : NULL;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].failures, 0);
        assert_true(norm_run_verify(fixture, &workers[i].run));
        norm_run_free(&workers[i].run);
        clReleaseCommandQueue(workers[i].queue);
    }
    clnorm_plan_destroy(plan);
}

static void threads_share_a_plan(void **state) {
    check_threads(*state, true);
}

static void threads_share_the_one_call_form(void **state) {
    check_threads(*state, false);
}

enum { DETAIL_CAPACITY = 4096 };

static void *read_detail(void *to) {
    (void)snprintf(to, DETAIL_CAPACITY, "%s", clnorm_error_detail());
    return NULL;
}

/* An error message belongs to the thread of the failed call. */
static void details_belong_to_a_thread(void **state) {
    (void)state;
    char theirs[DETAIL_CAPACITY] = "something";
    pthread_t thread;
    assert_int_not_equal(clnorm_norm_forward(NULL, NULL, NULL, NULL, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_true(strlen(clnorm_error_detail()) > 0);
    assert_int_equal(pthread_create(&thread, NULL, read_detail, theirs), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(theirs, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_waits_for_its_list),
        cmocka_unit_test(each_kernel_has_an_event),
        cmocka_unit_test(events_chain_an_out_of_order_queue),
        cmocka_unit_test(empty_wait_lists_are_fine),
        cmocka_unit_test(no_rows_need_no_buffers),
        cmocka_unit_test(plan_may_go_before_its_work_is_done),
        cmocka_unit_test(warm_up_changes_nothing),
        cmocka_unit_test(threads_share_a_plan),
        cmocka_unit_test(threads_share_the_one_call_form),
        cmocka_unit_test(details_belong_to_a_thread),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
