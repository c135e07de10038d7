/* A case of `clnorm check`, and the sets of them that check_cases.c joins. */
#ifndef CHECK_CASE_H
#define CHECK_CASE_H

#include "session.h"

/* The values of inputs. */
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
    clnorm_tensor x; /* of norms: its dtype, and the scaling of 8 bits */
    struct operation_options options;
};

void check_case_add_input(struct check_case *check_case, const char *role, clnorm_dtype dtype);

enum { CASE_TEXT = 256 };

/* "layer_norm 3x96 in groups of 8, x=f16 weight=f16, y=f16, gate silu first". Returns text. */
char *check_case_text(const struct check_case *check_case, char text[CASE_TEXT]);

/* check_norm.c: forward norms: shapes, mixed dtypes, configs */
int check_norm_count(void);
struct check_case check_norm_case(int i);

/* check_rows.c: row-wise operations */
int check_rows_count(void);
struct check_case check_rows_case(int i);

/* check_lines.c: the others, a line each; ended by NULL */
extern const char *const check_lines[];

/* A case from its line: the operation, ROWSxCOLS[xPOSITIONS], inputs, options. Inputs are ROLE[,ROLE...]=DTYPE; options are
 * those of `clnorm run` without their dashes, weight-rows=N, x-scaling=tensor|row|group and x-scale-group=N of an 8-bit x,
 * and pattern=far|apart|special. The strings of the case last until the next one is read. A malformed line is a bug, and
 * aborts the program. */
struct check_case check_case_read(const char *line);

#endif
