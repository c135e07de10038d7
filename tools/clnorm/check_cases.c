#include "check_cases.h"

static const struct {
    int (*count)(void);
    struct check_case (*at)(int i);
} sets[] = {
    {check_norm_count, check_norm_case},   {check_backward_count, check_backward_case},
    {check_fused_count, check_fused_case}, {check_rows_count, check_rows_case},
    {check_group_count, check_group_case}, {check_fp8_count, check_fp8_case},
    {check_outer_count, check_outer_case},
};
enum { SETS = sizeof sets / sizeof *sets };

int check_case_count(void) {
    int count = 0;
    for (int set = 0; set < SETS; set++)
        count += sets[set].count();
    return count;
}

struct check_case check_case_of(int i) {
    int set = 0;
    for (; set < SETS - 1 && i >= sets[set].count(); set++)
        i -= sets[set].count();
    return sets[set].at(i);
}
