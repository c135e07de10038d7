/* Configs: how a kernel runs on its device. Most callers leave all of it to the library. */
#ifndef CLNORM_CONFIG_H
#define CLNORM_CONFIG_H

#include "clnorm/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a kernel runs on its device, as the values of knobs. A config has a fixed size, and can be copied and compared with
 * memcmp. Text is the form for people: clnorm_config_parse reads it, clnorm_config_text writes it.
 *
 * The config of a descriptor forces knobs; the library chooses those that are 0. A forced knob that the device, the
 * operation or the shape does not allow is an error. clnorm_plan_config returns the chosen config. With the same config, a
 * row's results have the same bits from run to run, for any number of rows and wherever its tensors lie, but for a measured
 * scale of a whole tensor, which depends on every row. Where vec does not divide the strides of the rows, they also depend
 * on the row's number modulo vec: its first element decides how its elements form vectors.
 *
 * The library's choice depends on the number of rows: it splits few wide rows among work-groups, which changes the order of
 * a row's sums. With batch_invariant in a descriptor, it chooses the knobs that this order depends on as for many rows, and
 * a vec that divides the strides. A row's results then have the same bits whatever other rows are in the call, on the same
 * device with the same tuning file. That is slower for few wide rows, as a single work-group reads a whole row, and for
 * rows whose length no vector divides.
 *
 * A plan takes its config from the first of these that has one: the descriptor's knobs, the user's tuning file
 * (clnorm_tuning_path), the library's database of measured configs, a model of the device. */
typedef struct clnorm_config {
    uint32_t words[32];
} clnorm_config;

/* The library chooses everything. */
#define CLNORM_CONFIG_AUTOMATIC \
    {                           \
        { 0 }                   \
    }

/* Reads a config from text such as "vec=8,lanes=128,keep=registers". Knobs that are not named are 0; "" is automatic.
 * CLNORM_INVALID_ARGUMENT: text or config is NULL. CLNORM_INVALID_VALUE: a knob or value is unknown, or a number is out of
 * the knob's range. The last value of a knob counts. Whether knobs suit an operation, a shape and a device is checked with
 * its plan.
 *
 *   vec=N               elements per memory access: 1, 2, 4, 8, 16
 *   lanes=N             work-items that share one segment: a power of two
 *   segments=N          segments that a work-group holds at once: a power of two. In group norm with channels last a
 *                       segment is all positions of neighbouring groups, where registers hold them; elsewhere a
 *                       work-group takes so many rows of a chunk side by side
 *   iterations=N        minimum iterations per work-group, each over its segments; not in the norms' backward, nor with
 *                       row_split=exchange
 *   keep=               where a segment is kept between its statistics and its result: registers, local (memory),
 *                       reread (nowhere: it is read again)
 *   unroll=N            vectors that a lane loads at once, 1 to 16; of GELU, and with keep=reread
 *   reduce=             how the lanes of a segment add up their sums: tree (local memory), shuffle (NVIDIA), subgroup
 *   stores=             cached, streaming (past the caches)
 *   weights=            when weight and bias are read: late, early (with x), kept (late, with a hint that caches keep them)
 *   isa=                portable (OpenCL C 1.2, but for sub-groups and memory fences), ptx (NVIDIA from compute
 *                       capability 8.0)
 *   chunks=N            pieces of a segment, one per work-group; in group norm with channels last, pieces of a sample's
 *                       positions, of which neighbouring ones stay together where there are few channels; with
 *                       row_split=exchange, pieces of the positions of one or a few groups, held in registers. With
 *                       channels first and such a row_split, registers hold pieces of an f32 x, if segments is 1, the
 *                       pieces are equally large and fit; else it is read again from a cache
 *   local_vectors=N     keep=local: maximum vectors per lane kept in local memory
 *   row_split=          how work-groups that share a row of the norms' backward or of softmax, or a group of group norm,
 *                       get its sums: two_passes (a kernel before takes them), exchange (they exchange the sums of their
 *                       parts; softmax then has keep=registers; softmax and group norm then have chunks of 2 or more,
 *                       and where registers hold these, it is not on a CPU), no_wait (exchange that never waits, for
 *                       tests). The last two need NVIDIA or clnorm_device_info.device_fences on a GPU
 *
 * In the backward of layer and RMS norm alone:
 *   tile=N              columns of a segment per work-group
 *   accumulator=        where a work-group adds up dweight and dbias: registers, local (memory), memory (its part of the
 *                       workspace), split (dweight in registers, dbias in local memory); or columns: separate work-groups
 *                       add up some columns of all rows, without a workspace for the sums
 *   pipeline=N          rows in registers at once, 1 to 3
 *   prefetch=           the row prefetched into the L2 cache: none, next (after those in registers)
 *   groups_per_cu=N     work-groups per compute unit, approximate maximum
 *   run_length=N        neighbouring rows that a work-group takes before it skips the other work-groups' rows
 *
 * Group norm has two sets of kernels. Those of layer norm, with its knobs, need contiguous samples, no 8-bit tensor, and at
 * most 65536 groups. They run group norm of one position. They also run images with channels first that have at most 32
 * positions (15 in the backward) or, in the forward, at most 512 elements in a group where 8 does not divide the positions;
 * a group then has at most 32768 elements, and the config is automatic or sets keep, as a chosen one does. All else runs
 * with the kernels of images. */
CLNORM_API clnorm_status clnorm_config_parse(const char *text, clnorm_config *config);

/* Writes the knobs that are not 0 as text, at most capacity bytes with the terminating NUL, and returns the length of the
 * whole text, as snprintf does. Of NULL that is "". */
CLNORM_API size_t clnorm_config_text(const clnorm_config *config, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
