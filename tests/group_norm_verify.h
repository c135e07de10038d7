/* The results of a group norm in host memory, compared with the reference in double. */
#ifndef TEST_GROUP_NORM_VERIFY_H
#define TEST_GROUP_NORM_VERIFY_H

#include "group_norm_case.h"

/* Gives a run the mean and rstd of the reference. */
void group_statistics_fill(struct group_run *run);

/* Whether every result lies within its tolerance; prints the first one that does not. */
bool group_forward_is_right(const struct group_run *run);

/* Runs each case with both layouts, or with the one that it names, where the device takes it. Fails where a result is
 * wrong. Returns the number of runs. */
unsigned group_forward_check_cases(const struct fixture *fixture, const struct group_case *cases, size_t count);

/* statistics_given: the backward read mean and rstd of the run. */
bool group_backward_is_right(const struct group_run *run, bool statistics_given);

#endif
