#include "spec.h"

#include <inttypes.h>
#include <stdio.h>

enum kind { NUMBER, DTYPE };

static const struct field {
    const char *macro;
    size_t offset;
    enum kind kind;
} fields[] = {
    {"NORM", offsetof(struct cln_spec, norm), NUMBER},
    {"GROUP_SIZE", offsetof(struct cln_spec, group_size), NUMBER},
    {"GROUPS", offsetof(struct cln_spec, groups), NUMBER},
    {"X_DTYPE", offsetof(struct cln_spec, x_dtype), DTYPE},
    {"Y_DTYPE", offsetof(struct cln_spec, y_dtype), DTYPE},
    {"Z_DTYPE", offsetof(struct cln_spec, z_dtype), DTYPE},
    {"WEIGHT_DTYPE", offsetof(struct cln_spec, weight_dtype), DTYPE},
    {"BIAS_DTYPE", offsetof(struct cln_spec, bias_dtype), DTYPE},
    {"GATE", offsetof(struct cln_spec, gate), NUMBER},
    {"GATE_FIRST", offsetof(struct cln_spec, gate_first), NUMBER},
    {"WEIGHT_OFFSET", offsetof(struct cln_spec, weight_offset), NUMBER},
    {"SAVE_MEAN", offsetof(struct cln_spec, save_mean), NUMBER},
    {"SAVE_RSTD", offsetof(struct cln_spec, save_rstd), NUMBER},
    {"VEC", offsetof(struct cln_spec, vec), NUMBER},
    {"LANES", offsetof(struct cln_spec, lanes), NUMBER},
    {"SEGMENTS", offsetof(struct cln_spec, segments), NUMBER},
    {"KEEP", offsetof(struct cln_spec, keep), NUMBER},
    {"UNROLL", offsetof(struct cln_spec, unroll), NUMBER},
    {"REDUCE", offsetof(struct cln_spec, reduce), NUMBER},
    {"STORES", offsetof(struct cln_spec, stores), NUMBER},
    {"WEIGHTS", offsetof(struct cln_spec, weights), NUMBER},
    {"ISA", offsetof(struct cln_spec, isa), NUMBER},
    {"LOOP", offsetof(struct cln_spec, loop), NUMBER},
    {"ELEMENT_ALIGNED", offsetof(struct cln_spec, element_aligned), NUMBER},
};

enum { FIELDS = sizeof fields / sizeof fields[0], LONGEST_FIELD = 48 };

/* " -D ELEMENT_ALIGNED=18446744073709551615" and the like: no list of fields can outgrow the capacity. */
_Static_assert((FIELDS + 1) * LONGEST_FIELD <= CLN_OPTIONS_CAPACITY, "options must fit");

void cln_spec_options(const struct cln_spec *spec, char options[CLN_OPTIONS_CAPACITY]) {
    size_t length = (size_t)snprintf(options, CLN_OPTIONS_CAPACITY, "-cl-std=CL%" PRIu64 ".%" PRIu64, spec->opencl_c / 100,
                                     spec->opencl_c % 100 / 10);
    for (size_t i = 0; i < FIELDS && length < CLN_OPTIONS_CAPACITY; i++) {
        const uint64_t value = *(const uint64_t *)((const char *)spec + fields[i].offset);
        char *const end = options + length;
        const size_t room = CLN_OPTIONS_CAPACITY - length;
        const int written = fields[i].kind == DTYPE
                                ? snprintf(end, room, " -D %s=%s", fields[i].macro, clnorm_dtype_name((clnorm_dtype)value))
                                : snprintf(end, room, " -D %s=%" PRIu64, fields[i].macro, value);
        length += (size_t)written;
    }
}
