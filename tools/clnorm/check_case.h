/* A case of `clnorm check`, and the sets of them that check_cases.c puts in one row. */
#ifndef CHECK_CASE_H
#define CHECK_CASE_H

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
    uint64_t spatial; /* of group norm: positions of a channel */
    struct {
        const char *role;
        clnorm_dtype dtype;
    } inputs[ROLES]; /* ended by a role of NULL */
    enum pattern pattern;
    clnorm_tensor x;                  /* of norms: what the scales of an 8-bit x are of */
    struct operation_options options; /* its strings are constants */
};

void check_case_add_input(struct check_case *check_case, const char *role, clnorm_dtype dtype);

enum { CASE_TEXT = 256 };

/* "layer_norm 3x96 in groups of 8, x=f16 weight=f16, y=f16, gate silu first". Returns text. */
char *check_case_text(const struct check_case *check_case, char text[CASE_TEXT]);

/* check_norm.c: forward norms: shapes, mixed dtypes, configs */
int check_norm_count(void);
struct check_case check_norm_case(int i);

/* check_backward.c: their gradients */
int check_backward_count(void);
struct check_case check_backward_case(int i);

/* check_fused.c: norms with a residual, dropout, an activation */
int check_fused_count(void);
struct check_case check_fused_case(int i);

/* check_rows.c: operations that are a record */
int check_rows_count(void);
struct check_case check_rows_case(int i);

/* check_group.c: group norm */
int check_group_count(void);
struct check_case check_group_case(int i);

/* check_outer.c: rows with outer dimensions */
int check_outer_count(void);
struct check_case check_outer_case(int i);

/* check_fp8.c: 8-bit tensors */
int check_fp8_count(void);
struct check_case check_fp8_case(int i);

#endif
