/* The configs whose time is estimated for a problem: the product of a few values for each knob. The values may depend on
 * the knobs before. */
#ifndef CLN_CANDIDATES_H
#define CLN_CANDIDATES_H

#include "config/config.h"
#include "config/facts.h"

struct cln_choice {
    const clnorm_device_info *device;
    struct cln_facts facts;
    const struct cln_workload *work;
    const struct cln_config *forced; /* a knob that is not 0 has this value alone */
};

/* Values that a knob may have. */
struct cln_values {
    uint32_t count;
    uint32_t value[12];
};

/* The values of one knob, from the knobs decided before. */
struct cln_axis {
    size_t knob; /* offset in struct cln_config */
    struct cln_values (*values)(const struct cln_choice *choice, const struct cln_config *c);
};

/* In the order in which the knobs are decided; ended by NULL functions. */
extern const struct cln_axis cln_forward_axes[]; /* also of softmax, quantisation and norms of slices */
extern const struct cln_axis cln_backward_axes[];
extern const struct cln_axis cln_element_axes[];

typedef void (*cln_visit_fn)(const struct cln_config *candidate, void *user);

/* Visits every candidate. */
void cln_candidates(const struct cln_choice *choice, const struct cln_axis *axes, cln_visit_fn visit, void *user);

/* Axes that several operations share. */
struct cln_values cln_one_value(uint64_t value);
struct cln_values cln_isa_values(const struct cln_choice *choice, const struct cln_config *c);
struct cln_values cln_stores_values(const struct cln_choice *choice, const struct cln_config *c);
struct cln_values cln_reduce_values(const struct cln_choice *choice, const struct cln_config *c);

/* Whether a GPU's lanes find the weight of each element (cl/common/shared_columns.h), which takes them much longer than to
 * load it. */
bool cln_finds_weights(const struct cln_facts *facts, const struct cln_workload *work);

/* A vector within which rows may begin anywhere, if it is wider than most elements; then the widest of at most so many, and
 * narrower ones if they are wished, or where a work-item has few registers. */
struct cln_values cln_vec_values(const struct cln_choice *choice, const struct cln_config *c, uint64_t most, bool narrower);

/* The fewest lanes that share a segment, given vec: neighbouring lanes read whole sectors of memory, unless contiguous
 * segments are so narrow that a sector or two have several. */
uint64_t cln_least_lanes(const struct cln_choice *choice, const struct cln_config *c);

/* Elements of a memory access that fills the device's vectors. */
uint64_t cln_widest_vector(const struct cln_choice *choice, const struct cln_config *c);

/* Elements of a vector of a row at any address: no more than the row has, but a CPU is faster with a narrow row in one
 * vector that the row does not fill. */
uint64_t cln_vec_of_row(const struct cln_choice *choice);

/* The most elements of a vector, up to most, that a rotation allows. */
uint64_t cln_vec_of_rope(const struct cln_choice *choice, uint64_t most);

/* Adds a value unless it is there already. */
void cln_add_value(struct cln_values *values, uint64_t value);

#endif
