/* The configs that `clnorm tune` measured on the user's device, in a text file:
 *
 *     # a comment
 *     clnorm tuning 1
 *     device NVIDIA H200
 *     driver 580.95.05
 *     rms_norm bf16 4096: vec=8,lanes=256,keep=reread # a comment too
 *
 * A row is an operation, a dtype, and group_size, quantize's scale_group, or cols; then the knobs, as clnorm_config_parse
 * reads them. The dtype is that of the first input. f8e4m3/bf16 adds the widest dtype of the matrices, where its elements
 * have more bytes. A row with both dtypes goes before one without the second, which applies to any. Operations have the
 * names of their records, such as softmax_backward. The fused norms are layer_norm or rms_norm with the parts that they
 * have, all of which are in add_dropout_rms_norm_gated_activated_rope_quantized_backward; only a forward has _quantized.
 * Group norm's columns are CHANNELSxPOSITIONS/GROUPS, and " last" where channels come last. The file's device and driver
 * must be the ones in use. A file with an error in any line is not used at all.
 */
#ifndef CLN_TUNING_H
#define CLN_TUNING_H

#include "config/config.h"
#include "plan/plan.h"

struct cln_tuning;

/* Reads the device's file. NULL: there is none, or no memory for it. A file that is not regular is refused. */
struct cln_tuning *cln_tuning_read(const clnorm_device_info *device);

/* NULL is allowed. */
void cln_tuning_destroy(struct cln_tuning *tuning);

/* The key of a row. */
struct cln_tuning_key {
    const char *name; /* of the operation's record; NULL: a fused norm, which the next two lines describe */
    const char *like; /* whose rows of the database count; NULL: the key's own */
    clnorm_norm norm;
    bool residual, dropout, gated, activated, rope, quantized, backward;
    clnorm_dtype dtype;  /* of the first input */
    clnorm_dtype widest; /* of the matrices, where it has more bytes than dtype; else none */
    uint64_t group_size;
    /* Group norm, whose group_size is cols: positions, groups, and whether channels come last. Others have 0 positions. */
    uint64_t spatial, groups;
    bool channels_last;
};

/* Chooses the plan's config: by the row of the key where no knob is forced and the row suits the work, else by the model.
 * The plan's note says whether the file was used. */
clnorm_status cln_tuning_choose(clnorm_plan *plan, const struct cln_tuning_key *key, cln_choose_fn choose,
                                const struct cln_workload *work, const clnorm_config *desc_config);

#endif
