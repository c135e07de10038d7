/* Shared by operations on 8-bit elements. */
#ifndef CLN_FP8_H
#define CLN_FP8_H

#include "operation/launch.h"
#include "operation/operation.h"

/* The workload of an operation whose work-groups take whole rows of x. Vectors divide scale_group columns, which share a
 * scale; 0: all columns do. */
struct cln_workload cln_fp8_workload(const struct cln_operation *operation, const void *desc, clnorm_dtype x_dtype,
                                     uint64_t scale_group);

/* The rows in which kernels take x and its codes. Contiguous tensors with one scale are cut into rows of another length, of
 * which the last one may be shorter. */
struct cln_fp8_rows {
    uint64_t rows, cols, x_stride, q_stride;
    uint64_t elements; /* of x */
    bool cut;
};

/* whole: neither more than one scale nor a transposed copy depends on the rows. */
struct cln_fp8_rows cln_fp8_rows_of(const struct cln_desc_head *head, const clnorm_tensor *x, const clnorm_tensor *q,
                                    bool whole);

/* Their workload. divisor: vectors divide it; 0: they may be of any size. leads: rows may begin anywhere within a vector.
 */
struct cln_workload cln_fp8_rows_workload(const struct cln_fp8_rows *rows, clnorm_dtype x_dtype, uint64_t divisor,
                                          bool leads);

/* Columns from the start of a row's first vector to the end of its last one, at most. */
uint64_t cln_fp8_reach(const clnorm_plan *plan, const struct cln_fp8_rows *rows);

/* Sets the macros of cl/quantize/leads.h. */
void cln_fp8_spec_rows(const clnorm_plan *plan, const struct cln_fp8_rows *rows, struct cln_spec *spec);

/* A cln_choose_fn for kernels whose work-groups loop over segments of work->group_size elements. vec divides
 * work->whole, where that is not 0. */
clnorm_status cln_fp8_config(const clnorm_device_info *device, const struct cln_workload *work,
                             const struct cln_config *forced, struct cln_config *config);

/* The enum cln_isa of the conversions. */
uint32_t cln_fp8_isa(const clnorm_device_info *device, const struct cln_config *config);

/* A spec with the config's macros. */
struct cln_spec cln_fp8_spec(const clnorm_device_info *device, const struct cln_config *config);

/* The launch of work-groups that each write a largest magnitude. Later kernels search these: there are at most 8 of them
 * for each compute unit, except of single work-items. */
struct cln_launch cln_fp8_launch_of_largest(const clnorm_device_info *device, const struct cln_config *config,
                                            uint64_t segments);

/* Work-groups that write tiles (cl/quantize/tile.h). */
struct cln_fp8_tile {
    uint64_t rows, cols, lanes;
    uint64_t row_vec; /* elements of an access of the transpose */
    uint64_t count;   /* tiles */
};

struct cln_fp8_tile cln_fp8_tile_of(const clnorm_device_info *device, const struct cln_config *config, uint64_t rows,
                                    uint64_t cols, bool transposed, uint64_t transposed_stride);

/* Sets the macros of tiles. */
void cln_fp8_spec_tile(struct cln_spec *spec, const struct cln_fp8_tile *tile);

/* Whether each work-group of the tiles searches the magnitudes for the largest, instead of a separate stage. */
bool cln_fp8_tiles_search(const struct cln_fp8_tile *tile, uint64_t magnitudes);

/* Adds the stage that finds the largest of count magnitudes (f32, a part of the workspace), and writes amax and the scale
 * of a tensor of q_dtype. scale_dtype none: no scale is written. */
struct cln_fp8_largest {
    struct cln_binding magnitudes;
    uint64_t count;
    clnorm_dtype q_dtype, scale_dtype;
    enum cln_role scale;
    bool amax;
};

clnorm_status cln_fp8_add_largest(clnorm_plan *plan, const struct cln_fp8_largest *largest);

/* Adds the stage that writes the transposed copy of codes. y: where they are. */
clnorm_status cln_fp8_add_transpose(clnorm_plan *plan, const clnorm_tensor *codes, struct cln_binding y,
                                    const clnorm_tensor *y_t, uint64_t rows, uint64_t cols);

/* Refuses scales of groups other than 16, 32, 64 or 128 columns, and groups that cross two segments of group_size columns.
 * name: the tensor's. */
clnorm_status cln_fp8_check_segments(const char *name, const clnorm_tensor *tensor, uint64_t group_size, uint64_t cols);

#endif
