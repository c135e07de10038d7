/* What `clnorm check` tries. */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "operation.h"

/* What inputs look like. */
enum pattern {
    PATTERN_CENTRED, /* about 0 */
    PATTERN_FAR,     /* about 50, in f32 and f64 about 10,000 */
    PATTERN_SPECIAL  /* about 0, but a NaN in the first row, an infinity in the second, and only zeros in the third */
};

struct check_case {
    const char *operation;
    uint64_t rows, cols;
    struct {
        const char *role;
        clnorm_dtype dtype;
    } inputs[ROLES]; /* ended by a role of NULL */
    enum pattern pattern;
    struct operation_options options; /* its strings are constants */
};

int check_case_count(void);
struct check_case check_case_of(int i);

/* check_fp8.c: those of 8-bit tensors */
int check_fp8_count(void);
struct check_case check_fp8_case(int i);

void check_case_add_input(struct check_case *check_case, const char *role, clnorm_dtype dtype);

/* check_backward.c: those of them that go backward */
int check_backward_count(void);
struct check_case check_backward_case(int i);

#endif
