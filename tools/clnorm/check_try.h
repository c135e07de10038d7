/* One case of `clnorm check`, run on a device. */
#ifndef CHECK_TRY_H
#define CHECK_TRY_H

#include "check_case.h"

/* ABSENT: the device lacks a dtype or a knob of the case. */
enum outcome { OUTCOME_RIGHT, OUTCOME_WRONG, OUTCOME_ABSENT };

/* Runs a case and compares it with the reference. fault: the reason of OUTCOME_WRONG. */
enum outcome check_case_try(const struct session *session, const struct check_case *check_case, uint64_t seed,
                            struct fault *fault);

#endif
