/* Calls of the library that must fail with a status and an error message. */
#ifndef TEST_REFUSAL_H
#define TEST_REFUSAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* The last error message has this text. */
static inline void assert_detail(const char *text) {
    if (!strstr(clnorm_error_detail(), text))
        fail_msg("\"%s\" does not say \"%s\"", clnorm_error_detail(), text);
}

/* A plan of the forward norm is refused with this status and text. */
static inline void assert_norm_refused(const struct fixture *fixture, const clnorm_norm_desc *desc, clnorm_status status,
                                       const char *text) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, desc, &plan), status);
    assert_null(plan);
    assert_detail(text);
}

/* Likewise, of group norm. */
static inline void assert_group_norm_refused(const struct fixture *fixture, const clnorm_group_norm_desc *desc,
                                             clnorm_status status, const char *text) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_group_norm_plan_create(fixture->context, desc, &plan), status);
    assert_null(plan);
    assert_detail(text);
}

#endif
