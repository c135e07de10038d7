/* All cases of `clnorm check`, by index. */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "check_case.h"

int check_case_count(void);

/* i: less than check_case_count() */
struct check_case check_case_of(int i);

#endif
