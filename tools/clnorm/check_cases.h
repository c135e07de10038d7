/* What `clnorm check` tries. */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "session.h"

/* What inputs look like. */
enum pattern {
    PATTERN_CENTRED, /* about 0 */
    PATTERN_FAR,     /* about 50, in f32 and f64 about 10,000 */
    PATTERN_APART,   /* about 0, but weights at least 1/2 from it */
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
    clnorm_tensor x;                  /* of norms: what the scales of an 8-bit x are of */
    struct operation_options options; /* its strings are constants */
};

/* Whether the device has what a case asks for, and what came out. */
enum outcome { OUTCOME_RIGHT, OUTCOME_WRONG, OUTCOME_ABSENT };

/* Runs a case and compares it with a double reference. On OUTCOME_WRONG fault says what was. check.c */
enum outcome check_case_try(const struct session *session, const struct check_case *check_case, uint64_t seed,
                            struct fault *fault);

int check_case_count(void);
struct check_case check_case_of(int i);

/* check_fp8.c: those of 8-bit tensors */
int check_fp8_count(void);
struct check_case check_fp8_case(int i);

void check_case_add_input(struct check_case *check_case, const char *role, clnorm_dtype dtype);

/* check_backward.c: those of them that go backward */
int check_backward_count(void);
struct check_case check_backward_case(int i);

/* check_fused.c: those that do more than the norm */
int check_fused_count(void);
struct check_case check_fused_case(int i);

/* check_rows.c: those that are a record */
int check_rows_count(void);
struct check_case check_rows_case(int i);

#endif
