#include "plan_run.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct tensor plan_workspace(const clnorm_plan *plan) {
    const uint64_t halves = (clnorm_plan_workspace_size(plan) + 1) / 2;
    return tensor_make(halves ? CLNORM_F16 : CLNORM_DTYPE_NONE, 1, halves, halves, 0, TENSOR_CANARY);
}

clnorm_status plan_run(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *args) {
    enum { WARMED = 8 }; /* one plan in eight */
    static unsigned plans = 0;
    if (plans++ % WARMED == 0)
        assert_int_equal(clnorm_plan_warm_up(plan, fixture->queue), CLNORM_SUCCESS); /* it accesses no tensor */
    const clnorm_status status = clnorm_plan_enqueue(plan, fixture->queue, args, 0, NULL, NULL);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    clnorm_plan_destroy(plan);
    return status;
}
