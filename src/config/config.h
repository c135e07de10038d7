/* The choice of a config for a problem and a device. */
#ifndef CLN_CONFIG_H
#define CLN_CONFIG_H

#include "config/knobs.h"

/* The kinds of forward work that the model distinguishes. */
enum cln_kind {
    CLN_KIND_NORM,
    CLN_KIND_GATED,     /* a norm with a gate */
    CLN_KIND_ADD,       /* a norm of a sum with a residual */
    CLN_KIND_DROPOUT,   /* a norm after dropout */
    CLN_KIND_CHAIN,     /* a norm after dropout and the sum */
    CLN_KIND_QUANTIZED, /* a norm with an 8-bit output, whose scales are measured */
    CLN_KIND_SOFTMAX,
    CLN_KIND_SOFTMAX_BACKWARD,
};

/* The properties of a problem on which the choice depends. */
struct cln_workload {
    uint64_t rows, groups, group_size;
    uint64_t whole;     /* elements that vec must divide on every device; 0: it may be any */
    uint64_t alignment; /* elements: the largest power of two that divides group_size and every row stride */
    /* Elements: the widest vector within which segments may begin anywhere (cl/common/lead.h); 0: none. */
    uint64_t lead_vec;
    bool any_address;   /* vectors are accessed at any address, except by streaming stores */
    uint64_t x_size;    /* bytes of an element of x, the tensor that is read most */
    uint64_t held_size; /* bytes of an element of all that a lane holds while statistics or sums are computed */
    clnorm_norm norm;
    enum cln_knob_users users;
    uint64_t real_size;     /* bytes of the arithmetic type: 4, or 8 for f64 */
    enum cln_kind kind;     /* forward, and softmax's backward */
    uint64_t local_size;    /* forward: bytes of an element kept in local memory; 0: no element can be */
    bool y_scaled;          /* norms' forward: y is 8-bit with scales */
    bool locked;            /* backward: CLNORM_REDUCTION_LOCKED */
    uint64_t slots;         /* backward: of locks */
    bool gated;             /* backward: there is a gate */
    uint64_t more_inputs;   /* backward: tensors of x's shape that are read besides x and dy: z, a residual, its gradient */
    bool both_sums;         /* backward: dweight and dbias */
    bool sums_rows;         /* backward: dweight or dbias */
    bool sums_given;        /* backward: the sums over a row are arguments */
    uint64_t weight_rows;   /* backward: of weight, dweight and so on; 0: one */
    uint64_t weight_repeat; /* backward: neighbouring rows that use the same one; 0: 1 */
    uint64_t columns_of_weight; /* norms: neighbouring columns that use one weight; 0: 1 */
    clnorm_rope rope;           /* norms */
    uint64_t rope_dims;         /* columns of a segment that are rotated */
    /* Group norm, whose segments are group_size elements of channels_of_group channels: */
    uint64_t channels, channels_of_group, spatial;
    bool channels_last;
    bool channel_sums; /* backward: each channel has sums */
    bool y_measured;   /* the scales of an 8-bit y are measured */
};

/* Fills in every knob that the operation has: a forced one is checked against device and shape, the others are chosen by a
 * model of the device. In elementwise work a segment is a row. Its alignment is that of the row strides alone, since
 * kernels treat the end of a row separately. */
clnorm_status cln_config_choose(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *forced, struct cln_config *config);

/* The same for kernels that read a segment once, or again from memory. */
clnorm_status cln_config_choose_reread(const clnorm_device_info *device, const struct cln_workload *work,
                                       const struct cln_config *forced, struct cln_config *config);

/* The same for group norm, by rules instead of estimates. Only the rules for stores and row_split depend on the number of
 * samples. */
clnorm_status cln_config_choose_group(const clnorm_device_info *device, const struct cln_workload *work,
                                      const struct cln_config *forced, struct cln_config *config);

/* The model's estimate of a complete config, in nanoseconds, as if no register were spilled; 0 where it has none. */
double cln_config_cost(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *config);

/* Work with a rotation: the widest vector that is rotated as a whole or not at all, and in the forward the most lanes with
 * which each lane has both columns of its pairs. 0: any number. */
uint64_t cln_config_rope_vec(const struct cln_workload *work);
uint64_t cln_config_rope_lanes(const struct cln_workload *work, const struct cln_config *c);

/* Group norm with channels last: the groups of a slice, which a segment of a work-group holds in registers; 0: it holds
 * none. */
uint64_t cln_config_slice_groups(const struct cln_workload *work, const struct cln_config *c);

/* Group norm with channels last: the neighbouring positions that make a row, so that few channels fill vectors; 1 in a
 * slice. */
uint64_t cln_config_row_positions(const struct cln_workload *work, const struct cln_config *c);

/* Group norm: the chunks of a channel's positions; 0 where a work-group has a whole segment or slice, or holds pieces. */
uint64_t cln_config_channel_chunks(const struct cln_workload *work, const struct cln_config *c);

typedef clnorm_status (*cln_choose_fn)(const clnorm_device_info *device, const struct cln_workload *work,
                                       const struct cln_config *forced, struct cln_config *config);

/* The same work with enough rows to keep any device busy: the config chosen for it does not depend on the number of rows.
 */
struct cln_workload cln_config_many_rows(const struct cln_workload *work);

/* In a config that was chosen for many rows, chooses the stores and the knobs that share out the rows again, for the actual
 * rows. The order of a row's sums does not depend on these knobs. */
clnorm_status cln_config_share_out(cln_choose_fn choose, const clnorm_device_info *device, const struct cln_workload *work,
                                   const clnorm_config *desc_config, struct cln_config *config);

/* Writes the configs that the model estimates to be the fastest, best first; few of them share out their work alike.
 * Returns their number. capacity: at most CLN_MOST_RANKED. */
enum { CLN_MOST_RANKED = 32 };
size_t cln_config_rank(const clnorm_device_info *device, const struct cln_workload *work, struct cln_config *configs,
                       size_t capacity);

/* Maximum work-groups that exchange the sums of a segment's tiles, each of which receives those of all others. */
enum { CLN_MOST_TEAM = 64 };

/* Whether work-groups post sums of tiles to each other. */
static inline bool cln_exchanges(const struct cln_config *c) {
    return c->row_split > CLN_ROW_SPLIT_TWO_PASSES;
}

/* Whether kernels can order accesses for the whole device: see cl/common/device_fence.h. */
static inline bool cln_fences_device(const clnorm_device_info *device) {
    return device->family == CLNORM_PLATFORM_NVIDIA || device->device_fences;
}

/* Whether these fences are those of an OpenCL C after 1.2, for which a program with them is then built. */
static inline bool cln_fences_by_language(const clnorm_device_info *device, const struct cln_config *c) {
    return c->isa == CLN_ISA_PORTABLE && device->family != CLNORM_PLATFORM_NVIDIA && device->device_fences;
}

/* Whether an exchange of the sums of this many tiles can gain time: all work-groups of a team should run at once. */
bool cln_config_gains_by_exchange(const clnorm_device_info *device, uint64_t tiles);

/* Groups that a work-group of the backward takes one after the other. */
uint64_t cln_config_span(const clnorm_device_info *device, const struct cln_workload *work,
                         const struct cln_config *config);

/* Segments that a work-group of the backward takes side by side, each with weights of its own: see ABREAST in
 * cl/norm/norm_backward_share.h. Narrow ones would else be apart in memory, as a work-group sums the same columns of every
 * row. */
uint64_t cln_config_abreast(const struct cln_workload *work, const struct cln_config *config);

/* Work-groups that share the rows of the backward. blocks: work-groups that share a row. */
uint64_t cln_config_row_groups(const clnorm_device_info *device, const struct cln_config *config, uint64_t blocks);

/* Vectors of each lane that CLN_KEEP_LOCAL keeps in local memory. */
uint64_t cln_config_local_vectors(const clnorm_device_info *device, const struct cln_workload *work,
                                  const struct cln_config *config);

/* Whether vectors are accessed at any element's address, which costs nothing on CPUs. Otherwise they are accessed at the
 * alignment of their own size, where the addresses allow it. */
bool cln_config_element_aligned(const clnorm_device_info *device, const struct cln_config *config);

/* Whether kernels may contain inline PTX. */
bool cln_config_runs_ptx(const clnorm_device_info *device);

#endif
