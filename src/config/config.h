/* From a problem and a device to a config: the one place that decides how kernels run. */
#ifndef CLN_CONFIG_H
#define CLN_CONFIG_H

#include "config/knobs.h"

/* What rows are read for, as far as that makes a difference. */
enum cln_work {
    CLN_WORK_NORM,
    CLN_WORK_GATED,     /* a norm beside a gate */
    CLN_WORK_ADD,       /* a norm of a sum with a residual */
    CLN_WORK_DROPOUT,   /* a norm of what dropout leaves */
    CLN_WORK_CHAIN,     /* of both */
    CLN_WORK_QUANTIZED, /* a norm whose output has 8 bits, with scales to be found */
    CLN_WORK_SOFTMAX,
    CLN_WORK_SOFTMAX_BACKWARD,
};

/* What the choice depends on. */
struct cln_workload {
    uint64_t rows, groups, group_size;
    uint64_t whole;     /* of 8-bit operations: elements that vec divides whatever the strides are; else 0 */
    uint64_t alignment; /* elements: the largest power of two that divides group_size and every row stride */
    uint64_t x_size;    /* bytes of an element of x, the tensor that is read most */
    uint64_t held_size; /* bytes of an element of what is read while statistics or sums are taken */
    clnorm_norm norm;
    enum cln_knob_users users;
    uint64_t real_size;   /* bytes of the arithmetic type: 4, or 8 for f64 */
    enum cln_work work;   /* forward */
    uint64_t local_size;  /* forward: bytes of an element that is kept in local memory; 0: none can be */
    bool y_scaled;        /* forward: y has 8 bits and scales */
    bool locked;          /* backward: by locked slots */
    bool gated;           /* backward: z is read too */
    bool both_sums;       /* backward: dweight and dbias */
    bool of_8_bits;       /* backward: x has 8 bits, and x_size is that of dy */
    bool sums_rows;       /* backward: dweight or dbias */
    bool sums_given;      /* backward: the sums over a row are arguments */
    uint64_t weight_rows; /* backward: of weight, dweight and so on; a work-group's rows all take one of them; 0: one */
    clnorm_rope rope;     /* norms */
    uint64_t rope_dims;   /* columns of a segment that are rotated */
    /* Of group norm, whose segments are group_size elements of channels_of_group channels: */
    uint64_t channels, channels_of_group, spatial;
    bool channels_last;
    bool channel_sums; /* backward: each channel has sums */
};

/* Fills in every knob that the operation has: a forced one is checked against device and shape, the others are chosen by a
 * model of the device. Of work element by element a segment is a row, and alignment that of the row strides alone, as the
 * end of a row is taken apart. */
clnorm_status cln_config_choose(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *forced, struct cln_config *config);

/* The same for group norm, by rules rather than estimates: none of them depends on the number of samples. */
clnorm_status cln_config_choose_group(const clnorm_device_info *device, const struct cln_workload *work,
                                      const struct cln_config *forced, struct cln_config *config);

/* Of a work with a rotation: the widest vector that is rotated as a whole or not at all, and in the forward the most lanes
 * of which each has both columns of a pair. 0: any. */
uint64_t cln_config_rope_vec(const struct cln_workload *work);
uint64_t cln_config_rope_lanes(const struct cln_workload *work, const struct cln_config *c);

/* Of group norm with channels last: the groups of a slice, where a work-group holds one in registers; 0: it does not. */
uint64_t cln_config_slice_groups(const struct cln_workload *work, const struct cln_config *c);

/* Of group norm: the chunks that a channel's positions are taken in; 0 where a work-group has a whole segment or slice. */
uint64_t cln_config_channel_chunks(const struct cln_workload *work, const struct cln_config *c);

typedef clnorm_status (*cln_choose_fn)(const clnorm_device_info *device, const struct cln_workload *work,
                                       const struct cln_config *forced, struct cln_config *config);

/* The same work with as many rows as keep any device busy: the config that is chosen for it depends on no number of rows.
 */
struct cln_workload cln_config_many_rows(const struct cln_workload *work);

/* Of a config that was chosen for many rows, chooses the knobs again that say how the rows are shared out, for the rows
 * that there are. The order of a row's sums depends on none of them. */
clnorm_status cln_config_share_out(cln_choose_fn choose, const clnorm_device_info *device, const struct cln_workload *work,
                                   const clnorm_config *desc_config, struct cln_config *config);

/* Writes the configs that the model takes for the fastest, of which few share out their work alike, best first. Returns how
 * many there are; capacity: CLN_MOST_RANKED at most. */
enum { CLN_MOST_RANKED = 32 };
size_t cln_config_rank(const clnorm_device_info *device, const struct cln_workload *work, struct cln_config *configs,
                       size_t capacity);

/* Work-groups that exchange the sums of a segment's tiles, at most: a bit each in cl/norm/team.h. */
enum { CLN_MOST_TEAM = 16 };

/* Whether work-groups post sums of tiles to each other. */
static inline bool cln_exchanges(const struct cln_config *c) {
    return c->row_split > CLN_ROW_SPLIT_TWO_PASSES;
}

/* Whether an exchange of the sums of so many tiles is worth a try: all work-groups of a team should run at once. */
bool cln_config_gains_by_exchange(const clnorm_device_info *device, uint64_t tiles);

/* Whether a work-group of the norms' forward has one row, and the next one on its compute unit is known. A y of 8 bits is
 * written in other ways, of which nothing was measured. */
bool cln_config_can_prefetch(const struct cln_workload *work, const struct cln_config *c);

/* Groups whose columns a work-group of the backward works on in turn. */
uint64_t cln_config_span(const clnorm_device_info *device, const struct cln_workload *work,
                         const struct cln_config *config);

/* Work-groups that share the rows of the backward, where a row takes so many blocks. */
uint64_t cln_config_row_groups(const clnorm_device_info *device, const struct cln_config *config, uint64_t blocks);

/* Vectors of each lane that CLN_KEEP_LOCAL has room for in local memory. */
uint64_t cln_config_local_vectors(const clnorm_device_info *device, const struct cln_workload *work,
                                  const struct cln_config *config);

/* Whether vectors are accessed at any element's address (CPUs, which lose nothing by it) rather than, wherever the
 * addresses allow it, at their own size's alignment. */
bool cln_config_element_aligned(const clnorm_device_info *device, const struct cln_config *config);

bool cln_config_runs_ptx(const clnorm_device_info *device);

#endif
