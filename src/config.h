/* From a problem and a device to a config: the one place that decides how kernels run. */
#ifndef CLN_CONFIG_H
#define CLN_CONFIG_H

#include "clnorm/clnorm.h"

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
    uint64_t alignment; /* elements: the largest power of two that divides group_size and every row stride */
    uint64_t x_size;    /* bytes of an element of x, the tensor that is read most */
    uint64_t held_size; /* bytes of an element of what is read while statistics or sums are taken */
    clnorm_norm norm;
    uint64_t real_size;  /* bytes of the arithmetic type: 4, or 8 for f64 */
    enum cln_work work;  /* forward */
    bool splits;         /* forward: a segment can be shared out to several work-groups */
    uint64_t shelf_size; /* forward: bytes of an element that is kept in local memory; 0: none can be */
    bool y_scaled;       /* forward: y has 8 bits and scales */
    bool locked;         /* backward: by locked slots */
    bool gated;          /* backward: z is read too */
    bool both_sums;      /* backward: dweight and dbias */
    bool of_8_bits;      /* backward: x has 8 bits, and x_size is that of dy */
    bool sums_rows;      /* backward: dweight or dbias */
};

/* Fills every field of config that the forward has: a forced one is checked against device and shape, the others are
 * chosen. */
clnorm_status cln_config_choose(const clnorm_device_info *device, const struct cln_workload *work,
                                const clnorm_config *forced, clnorm_config *config);

/* config_tuned.c: what measurements on NVIDIA GPUs say of this work, or else of plain norms, in the fields keep, lanes,
 * segments, unroll, weights, registers, shelved, prefetch and asked. false: nothing. */
bool cln_config_tuned(const struct cln_workload *work, clnorm_config *config);

/* config_backward.c: as cln_config_choose, for the backward. */
clnorm_status cln_config_choose_backward(const clnorm_device_info *device, const struct cln_workload *work,
                                         const clnorm_config *forced, clnorm_config *config);

/* config_backward_tuned.c: fills in what measurements on NVIDIA GPUs say, where nothing is forced that they were not made
 * with; rounds of 0: all rows that a work-group has are neighbours. false: nothing. */
bool cln_config_backward_tuned(const clnorm_device_info *device, const struct cln_workload *work, clnorm_config *config);

/* Whether work-groups that have so many tiles of a segment can wait for each other: all of a team have to run at once. A
 * single one has nobody to wait for, on any device. */
bool cln_config_can_exchange(const clnorm_device_info *device, uint64_t tiles);

/* config_elements.c: as cln_config_choose, for work element by element. A segment is a row; alignment is that of the row
 * strides alone, as the end of a row is taken apart. */
clnorm_status cln_config_choose_elements(const clnorm_device_info *device, const struct cln_workload *work,
                                         const clnorm_config *forced, clnorm_config *config);

/* Groups whose columns a work-group of the backward works on in turn. */
uint64_t cln_config_span(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *config);

/* Work-groups that share the rows of the backward, where a row takes so many blocks. */
uint64_t cln_config_walkers(const clnorm_device_info *device, const clnorm_config *config, uint64_t blocks);

/* Vectors of each lane that CLNORM_KEEP_LOCAL has room for in local memory. */
uint64_t cln_config_shelved(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *config);

/* Whether vectors are accessed at any element's address (CPUs, which lose nothing by it) rather than, wherever the
 * addresses allow it, at their own size's alignment. */
bool cln_config_element_aligned(const clnorm_device_info *device, const clnorm_config *config);

/* What both choices need: what can be said of each knob by itself, and the words for one that cannot be had. */
clnorm_status cln_config_check_ranges(const clnorm_config *config);
clnorm_status cln_config_refuse(const char *knob, uint32_t value, const char *expected);

/* Knobs that an operation does not have: the first one that is set is refused. The list ends with a name that is NULL. */
struct cln_config_foreign {
    const char *name;
    uint32_t value;
};
clnorm_status cln_config_refuse_foreign(const struct cln_config_foreign *knobs);
bool cln_config_runs_ptx(const clnorm_device_info *device);

#endif
