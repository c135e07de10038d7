/* What operations on 8-bit elements have in common. */
#ifndef CLN_FP8_H
#define CLN_FP8_H

#include "config.h"
#include "plan.h"

/* Chooses a config for kernels whose work-groups go through segments of work->group_size elements. cols: vec has to divide
 * it too, so that a row is made of whole vectors. */
clnorm_status cln_fp8_config(const clnorm_device_info *device, const struct cln_workload *work, uint64_t cols,
                             const clnorm_config *forced, clnorm_config *config);

/* The clnorm_isa of the conversions. */
uint32_t cln_fp8_isa(const clnorm_device_info *device, const clnorm_config *config);

/* A spec with what the config says. */
struct cln_spec cln_fp8_spec(const clnorm_device_info *device, const clnorm_config *config);

/* Work-groups that go through segments, SEGMENTS at a time. */
struct cln_fp8_share {
    cl_ulong rounds;
    size_t groups, items;
};

struct cln_fp8_share cln_fp8_share_of(const clnorm_config *config, uint64_t segments);

/* Where each work-group has a largest magnitude, which others will look through: no more of them than run at once. */
struct cln_fp8_share cln_fp8_share_of_largest(const clnorm_device_info *device, const clnorm_config *config,
                                              uint64_t segments);

/* Work-groups that write tiles (cl/tile.h). */
struct cln_fp8_tile {
    uint64_t rows, cols, lanes;
    uint64_t row_vec; /* elements of an access of the transpose */
    uint64_t count;   /* tiles */
};

struct cln_fp8_tile cln_fp8_tile_of(const clnorm_device_info *device, const clnorm_config *config, uint64_t rows,
                                    uint64_t cols, bool transposed, uint64_t transposed_stride);

/* What a spec says of them. */
void cln_fp8_spec_tile(struct cln_spec *spec, const struct cln_fp8_tile *tile);

/* Whether each work-group looks through so many magnitudes for the largest, rather than a stage of its own. */
bool cln_fp8_tiles_search(const struct cln_fp8_tile *tile, uint64_t magnitudes);

/* Adds the stage that takes the largest of count magnitudes (f32, a part of the workspace), and writes amax and the scale
 * of a tensor of q_dtype. scale_dtype none: no scale. */
struct cln_fp8_largest {
    struct cln_binding magnitudes;
    uint64_t count;
    clnorm_dtype q_dtype, scale_dtype;
    enum cln_role scale;
    bool amax;
};

clnorm_status cln_fp8_add_largest(clnorm_plan *plan, const struct cln_fp8_largest *largest);

/* What descriptors have in common. field: its name, for a failure. */
clnorm_status cln_fp8_check_scale_dtype(const char *field, clnorm_dtype dtype);
clnorm_status cln_fp8_check_group(const char *field, uint64_t cols, uint64_t group_size);
clnorm_status cln_fp8_check_stride(const char *field, uint64_t stride, const char *least_name, uint64_t least);

#endif
