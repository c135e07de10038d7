/* The store of the one-call forms' plans, with plans of the test's own, which count themselves and their enqueues. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/context.h"
#include "base/status.h"
#include "plan/plan_store.h"

/* ------------------------------------------------------------------------------------------------------- made-up plans */

struct clnorm_plan {
    uint64_t number; /* its descriptor */
    bool slow;       /* an enqueue lasts until the test lets it end */
};

static struct {
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t changed;
    unsigned made, destroyed, enqueued;
    bool held, let_go;         /* a slow enqueue has begun; it may end */
    uint64_t workspace_size;   /* of every plan */
    unsigned buffers;          /* that exist, of workspace */
    cl_mem workspace;          /* of the latest enqueue */
    uint64_t last;             /* the plan of the latest enqueue */
    clnorm_status make_status; /* of making a plan */
} world;

static void count_up(unsigned *counter) {
    pthread_mutex_lock(&world.lock);
    ++*counter;
    pthread_mutex_unlock(&world.lock);
}

void clnorm_plan_destroy(clnorm_plan *plan) {
    if (plan)
        count_up(&world.destroyed);
    free(plan);
}

uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan) {
    (void)plan;
    return world.workspace_size;
}

clnorm_status clnorm_plan_enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                  const cl_event *wait_list, cl_event *event) {
    (void)queue, (void)num_wait, (void)wait_list, (void)event;
    if (!args || args->size != sizeof *args)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "args");
    pthread_mutex_lock(&world.lock);
    world.enqueued++;
    world.workspace = args->workspace.mem;
    if (plan->slow) {
        world.held = true;
        pthread_cond_broadcast(&world.changed);
        while (!world.let_go)
            pthread_cond_wait(&world.changed, &world.lock);
    }
    world.last = plan->number;
    pthread_mutex_unlock(&world.lock);
    return CLNORM_SUCCESS;
}

/* The addresses stand for kinds of descriptors. */
static const char quick, slow;

static clnorm_status make_plan(clnorm_context *context, const void *kind, const void *desc, clnorm_plan **plan) {
    (void)context;
    if (world.make_status != CLNORM_SUCCESS)
        return cln_fail(world.make_status, "no plan");
    clnorm_plan *const made = calloc(1, sizeof *made);
    assert_non_null(made);
    memcpy(&made->number, desc, sizeof made->number);
    made->slow = kind == &slow;
    count_up(&world.made);
    *plan = made;
    return CLNORM_SUCCESS;
}

/* Stands for the loader's function: it makes buffers of workspace. */
cl_mem clCreateBuffer(cl_context cl, cl_mem_flags flags, size_t size, void *host, cl_int *code) {
    (void)cl, (void)flags, (void)host;
    *code = size == world.workspace_size ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;
    if (size > 1 << 20)
        *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (*code != CL_SUCCESS)
        return NULL;
    count_up(&world.buffers);
    return (cl_mem)&world.buffers;
}

cl_int clReleaseMemObject(cl_mem mem) {
    assert_ptr_equal(mem, &world.buffers);
    world.buffers--;
    return CL_SUCCESS;
}

static int setup(void **state) {
    clnorm_context *const context = calloc(1, sizeof *context);
    assert_non_null(context);
    memset(&world, 0, sizeof world);
    pthread_mutex_init(&world.lock, NULL);
    pthread_cond_init(&world.changed, NULL);
    *state = context;
    return cln_plan_store_create(&context->plans) == CLNORM_SUCCESS ? 0 : -1;
}

static int teardown(void **state) {
    clnorm_context *const context = *state;
    cln_plan_store_destroy(context->plans);
    const bool all_destroyed = world.made == world.destroyed;
    pthread_cond_destroy(&world.changed);
    pthread_mutex_destroy(&world.lock);
    free(context);
    return all_destroyed ? 0 : -1;
}

/* Enqueues the plan of a descriptor of count numbers. */
static clnorm_status enqueue_args(clnorm_context *context, const void *kind, const uint64_t *numbers, size_t count,
                                  const clnorm_args *args) {
    const struct cln_plan_source source = {make_plan, kind, numbers, count * sizeof *numbers};
    return cln_plan_store_enqueue(context, &source, NULL, args, 0, NULL, NULL);
}

static clnorm_status enqueue(clnorm_context *context, const void *kind, uint64_t number) {
    const clnorm_args args = CLNORM_ARGS_INIT;
    return enqueue_args(context, kind, &number, 1, &args);
}

static void run(clnorm_context *context, uint64_t number) {
    assert_int_equal(enqueue(context, &quick, number), CLNORM_SUCCESS);
    assert_int_equal(world.last, number);
}

/* --------------------------------------------------------------------------------------------------------------- tests */

static void a_plan_is_made_once(void **state) {
    clnorm_context *const context = *state;
    for (unsigned i = 0; i < 5; i++)
        run(context, 1);
    assert_int_equal(world.made, 1);
    run(context, 2);
    run(context, 1);
    assert_int_equal(world.made, 2);
    assert_int_equal(world.destroyed, 0);
    assert_int_equal(world.enqueued, 7);
}

static void operations_have_their_own_plans(void **state) {
    clnorm_context *const context = *state;
    world.let_go = true;
    run(context, 1);
    assert_int_equal(enqueue(context, &slow, 1), CLNORM_SUCCESS);
    assert_int_equal(world.made, 2);
    const uint64_t longer[2] = {1, 0};
    const clnorm_args args = CLNORM_ARGS_INIT;
    assert_int_equal(enqueue_args(context, &quick, longer, 2, &args), CLNORM_SUCCESS);
    assert_int_equal(world.made, 3);
}

static void the_least_recently_used_plan_goes(void **state) {
    clnorm_context *const context = *state;
    for (uint64_t i = 0; i < 64; i++)
        run(context, i);
    run(context, 0); /* now plan 1 is the oldest */
    assert_int_equal(world.destroyed, 0);
    run(context, 64);
    assert_int_equal(world.made, 65);
    assert_int_equal(world.destroyed, 1);
    run(context, 0);
    for (uint64_t i = 2; i <= 64; i++)
        run(context, i);
    assert_int_equal(world.made, 65);
    run(context, 1);
    assert_int_equal(world.made, 66);
    for (uint64_t i = 1000; i < 2000; i++)
        run(context, i);
    assert_int_equal(world.made - world.destroyed, 64);
}

static void a_failed_plan_is_reported(void **state) {
    clnorm_context *const context = *state;
    world.make_status = CLNORM_INVALID_SHAPE;
    assert_int_equal(enqueue(context, &quick, 1), CLNORM_INVALID_SHAPE);
    assert_string_equal(clnorm_error_detail(), "no plan");
    assert_int_equal(world.enqueued, 0);
    world.make_status = CLNORM_SUCCESS;
    run(context, 1);
}

static void workspace_is_lent(void **state) {
    clnorm_context *const context = *state;
    run(context, 1);
    assert_null(world.workspace);
    world.workspace_size = 4096;
    run(context, 1);
    assert_ptr_equal(world.workspace, &world.buffers);
    assert_int_equal(world.buffers, 0);

    clnorm_args args = CLNORM_ARGS_INIT;
    const uint64_t number = 1;
    args.workspace.mem = (cl_mem)&args;
    assert_int_equal(enqueue_args(context, &quick, &number, 1, &args), CLNORM_SUCCESS);
    assert_ptr_equal(world.workspace, &args);

    world.workspace_size = UINT64_C(1) << 40;
    assert_int_equal(enqueue(context, &quick, 1), CLNORM_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(world.made, 1);
}

static void bad_arguments_are_refused(void **state) {
    clnorm_context *const context = *state;
    const uint64_t number = 1;
    clnorm_args args = CLNORM_ARGS_INIT;
    args.size = 8;
    world.workspace_size = 4096;
    assert_int_equal(enqueue_args(context, &quick, &number, 1, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(enqueue_args(context, &quick, &number, 1, &args), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(world.enqueued, 0);
}

static void *enqueue_slowly(void *context) {
    return enqueue(context, &slow, 7) == CLNORM_SUCCESS ? context : NULL;
}

static void a_removed_plan_lives_while_in_use(void **state) {
    clnorm_context *const context = *state;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, enqueue_slowly, context), 0);
    pthread_mutex_lock(&world.lock);
    while (!world.held)
        pthread_cond_wait(&world.changed, &world.lock);
    for (uint64_t i = 100; i < 200; i++) { /* they remove it while its enqueue goes on */
        pthread_mutex_unlock(&world.lock);
        run(context, i);
        pthread_mutex_lock(&world.lock);
    }
    assert_int_equal(world.made - world.destroyed, 64 + 1);
    world.let_go = true;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, context);
    assert_int_equal(world.last, 7);
    assert_int_equal(world.made - world.destroyed, 64);
}

static void *enqueue_many(void *context) {
    unsigned failures = 0;
    for (uint64_t i = 0; i < 3000; i++)
        failures += enqueue(context, &quick, i * i % 97) != CLNORM_SUCCESS;
    return failures == 0 ? context : NULL;
}

static void threads_share_plans(void **state) {
    clnorm_context *const context = *state;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_many, context), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, context);
    }
    assert_int_equal(world.enqueued, 4 * 3000);
    assert_in_range(world.made - world.destroyed, 1, 64);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_plan_is_made_once),
        TEST(operations_have_their_own_plans),
        TEST(the_least_recently_used_plan_goes),
        TEST(a_failed_plan_is_reported),
        TEST(workspace_is_lent),
        TEST(bad_arguments_are_refused),
        TEST(a_removed_plan_lives_while_in_use),
        TEST(threads_share_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
