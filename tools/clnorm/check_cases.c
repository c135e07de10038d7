#include "check_cases.h"

static int count_lines(void) {
    int count = 0;
    while (check_lines[count])
        count++;
    return count;
}

int check_case_count(void) {
    return check_norm_count() + check_rows_count() + count_lines();
}

struct check_case check_case_of(int i) {
    if (i < check_norm_count())
        return check_norm_case(i);
    i -= check_norm_count();
    return i < check_rows_count() ? check_rows_case(i) : check_case_read(check_lines[i - check_rows_count()]);
}
