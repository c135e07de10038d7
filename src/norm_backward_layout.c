/* How the backward's work is shared out, and what its workspace has. */
#include "norm_backward.h"

#include <inttypes.h>

#include "arithmetic.h"
#include "status.h"

typedef cln_backward_problem problem;

/* An 8-bit x is worked on in vectors that suit dy. */
static uint64_t x_size_of(const problem *p) {
    return clnorm_dtype_size(p->x_scale_dtype ? p->dy_dtype : p->x_dtype);
}

struct cln_workload cln_backward_workload(const problem *p) {
    const uint64_t strides = p->x_stride | p->z_stride | p->dy_stride | p->dx_stride | p->dz_stride | p->y_stride |
                             p->residual_stride | p->dresidual_out_stride | p->dresidual_stride;
    return (struct cln_workload){
        .rows = p->rows,
        .groups = p->cols / p->group_size,
        .group_size = p->group_size,
        .alignment = cln_lowest_bit(p->group_size | strides),
        .x_size = x_size_of(p),
        .held_size = x_size_of(p),
        .norm = p->norm,
        .real_size = cln_backward_real_size(p),
        .gated = p->gate != CLNORM_GATE_NONE || p->residual_dtype,
        .both_sums = p->dweight_dtype && p->dbias_dtype,
        .of_8_bits = p->x_scale_dtype != CLNORM_DTYPE_NONE,
        .locked = p->reduction == CLNORM_REDUCTION_LOCKED && (p->dweight_dtype || p->dbias_dtype),
        .sums_rows = p->dweight_dtype || p->dbias_dtype,
    };
}

/* Appends a part. An element of 0 in its binding: it is not there. */
static clnorm_status add_part(struct cln_backward_layout *layout, struct cln_binding *part, uint64_t elements,
                              uint64_t element) {
    uint64_t bytes;
    if (__builtin_mul_overflow(elements, element, &bytes) || bytes > INT64_MAX - CLN_WORKSPACE_ALIGNMENT ||
        __builtin_add_overflow(layout->size,
                               (bytes + CLN_WORKSPACE_ALIGNMENT - 1) / CLN_WORKSPACE_ALIGNMENT * CLN_WORKSPACE_ALIGNMENT,
                               &bytes) ||
        bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW,
                        "the workspace has a part of %" PRIu64 " elements of %" PRIu64
                        " bytes: expected less than 2^63 bytes in all",
                        elements, element);
    *part = (struct cln_binding){CLN_WORKSPACE, element, layout->size, elements * element};
    layout->size = bytes;
    return CLNORM_SUCCESS;
}

/* Outputs that c1 and c2 of the header's formulas matter to. */
static bool needs_means(const problem *p) {
    return p->dx_dtype || p->dresidual_dtype || (p->gate_first && p->dz_dtype);
}

/* Of cl/team.h and norm_backward.cl: words in a cache line, words of the locks before the letters. */
enum { LINE_WORDS = 16 };

static uint64_t lock_words(uint64_t locks) {
    return cln_divide_up(locks, LINE_WORDS) * LINE_WORDS;
}

/* The ticket's line, and of each work-group four sets of letters, of two words each. */
static uint64_t letter_words(uint64_t work_groups, clnorm_norm norm) {
    const uint64_t posted = norm == CLNORM_LAYER_NORM ? 2 : 1;
    return LINE_WORDS + work_groups * 4 * posted * 2;
}

/* Vectors of a row. */
static uint64_t row_vectors(const problem *p, const clnorm_config *c) {
    return p->cols / p->group_size * cln_divide_up(p->group_size, c->vec);
}

/* Lanes beside each other of a work-group that has columns: few where there are few vectors, for more work-groups. */
static uint64_t column_lanes(const problem *p, const clnorm_config *c) {
    const uint64_t vectors = row_vectors(p, c);
    const uint64_t most = vectors < 256 ? 2 : vectors < 512 ? 4 : 8;
    return cln_smaller((uint64_t)c->lanes * c->segments, most);
}

/* Where one run of rounds is enough for a work-group, all its rows are neighbours, and fewer in the last round where that
 * makes all shares alike. */
static void share_rows(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *c,
                       struct cln_backward_layout *layout) {
    const uint64_t run = (uint64_t)c->rounds * c->segments;
    const uint64_t most = cln_config_walkers(device, c, layout->blocks);
    const uint64_t even = cln_divide_up(work->rows, most);
    if (even > run) {
        layout->rounds = c->rounds;
        layout->share = most * run;
        layout->walkers = most;
    } else {
        layout->rounds = 0;
        layout->share = even > run - c->segments ? even : run;
        layout->walkers = cln_divide_up(work->rows, layout->share);
    }
}

clnorm_status cln_backward_lay_out(const clnorm_device_info *device, const problem *p, const clnorm_config *c,
                                   struct cln_backward_layout *layout) {
    const struct cln_workload work = cln_backward_workload(p);
    const bool gathers = p->dweight_dtype || p->dbias_dtype, mean = p->norm == CLNORM_LAYER_NORM;
    const uint64_t groups = work.groups, real = work.real_size, segments = p->rows * groups;
    const bool means = needs_means(p), exchanged = means && c->sums == CLNORM_SUMS_EXCHANGED;
    const struct cln_binding absent = {.role = CLN_WORKSPACE};
    *layout = (struct cln_backward_layout){.split = means && c->tile < p->group_size && !exchanged,
                                           .exchanged = exchanged,
                                           .locked = work.locked,
                                           .mean = absent,
                                           .rstd = absent,
                                           .sums = absent,
                                           .dweight = absent,
                                           .dbias = absent,
                                           .locks = absent};
    layout->span = cln_config_span(device, &work, c);
    layout->blocks = groups / layout->span * cln_divide_up(p->group_size, c->tile);
    layout->reduce_vec =
        cln_config_element_aligned(device, c) ? 16 : cln_smaller(cln_lowest_bit(p->cols), 16 / work.real_size);
    share_rows(device, &work, c, layout);
    layout->column_lanes = column_lanes(p, c);
    layout->columns = gathers && p->rows && c->gather == CLNORM_GATHER_COLUMNS
                          ? cln_divide_up(row_vectors(p, c), layout->column_lanes)
                          : 0;
    layout->slots = !gathers || layout->columns ? 0
                    : layout->locked            ? cln_smaller(p->slots, layout->walkers)
                                                : layout->walkers;
    const uint64_t work_groups = layout->columns + layout->blocks * layout->walkers;
    if (work_groups > CLN_MOST_GROUPS)
        return cln_config_refuse("walkers", c->walkers, "fewer, or larger tiles, for at most 2^30 work-groups");
    layout->lock_words = (layout->locked ? lock_words(layout->blocks * layout->slots) : 0) +
                         (exchanged ? letter_words(work_groups, p->norm) : 0);
    clnorm_status status = CLNORM_SUCCESS;
    if (!p->rstd_given && mean)
        status = add_part(layout, &layout->mean, segments, real);
    if (!status && !p->rstd_given)
        status = add_part(layout, &layout->rstd, segments, real);
    if (!status && layout->split)
        status = add_part(layout, &layout->sums, 2 * (uint64_t)c->chunks * segments, real);
    if (!status && p->dweight_dtype)
        status = add_part(layout, &layout->dweight, layout->slots * p->cols, real);
    if (!status && p->dbias_dtype)
        status = add_part(layout, &layout->dbias, layout->slots * p->cols, real);
    if (!status && layout->lock_words)
        status = add_part(layout, &layout->locks, layout->lock_words, sizeof(cl_uint));
    return status;
}
