/* What `clnorm tune` found out about a device, from a text file of the user's:
 *
 *     # any line like this one is skipped
 *     clnorm tuning 1
 *     device NVIDIA H200
 *     driver 580.95.05
 *     rms_norm bf16 4096: vec=8,lanes=256,keep=reread # and so is the rest of a row from here on
 *
 * A row is an operation, a dtype, and group_size or cols; then the knobs, as clnorm_config_parse reads them. The dtype is
 * that of the first input, or f8e4m3/bf16: also the widest one of the matrices, where its elements have more bytes. A row
 * with both comes first, one without the second is for any. Operations are softmax and gelu, each with _backward too, and
 * layer_norm or rms_norm with what it has besides: add_dropout_rms_norm_gated_activated_rope_backward has everything, and
 * so has _quantized a forward. The device and its driver must be the ones at hand. A file that is not understood, all of
 * it, is not used at all.
 */
#ifndef CLN_TUNING_H
#define CLN_TUNING_H

#include "config/config.h"
#include "plan/plan.h"

struct cln_tuning;

/* Reads the device's file. NULL where there is none, or no memory for it. One that is no regular file is not used. */
struct cln_tuning *cln_tuning_read(const clnorm_device_info *device);

/* NULL is allowed. */
void cln_tuning_destroy(struct cln_tuning *tuning);

/* What a row is looked up by. */
struct cln_tuning_key {
    const char *name; /* of an operation that is no norm; else NULL, and the next two lines count */
    clnorm_norm norm;
    bool residual, dropout, gated, activated, rope, quantized, backward;
    clnorm_dtype dtype;  /* of the first input */
    clnorm_dtype widest; /* of the matrices, where it has more bytes than dtype; else none */
    uint64_t group_size;
};

/* Chooses the plan's config: by the row that the key has, where nothing is forced and the row suits the work. What became
 * of the file is noted in the plan. */
clnorm_status cln_tuning_choose(clnorm_plan *plan, const struct cln_tuning_key *key, cln_choose_fn choose,
                                const struct cln_workload *work, const clnorm_config *desc_config);

#endif
