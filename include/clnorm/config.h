/* Configs: how a kernel runs on its device. Most callers leave all of it to the library. */
#ifndef CLNORM_CONFIG_H
#define CLNORM_CONFIG_H

#include "clnorm/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a kernel runs on its device. A value of fixed size, which can be copied and compared with memcmp, and is made from
 * and shown as text. All zero: the library chooses everything. In a descriptor: forced knobs; a knob that the device, the
 * operation or the shape does not allow is refused. From clnorm_plan_config: what was chosen. The same config gives the
 * same bits, from run to run and for any number of rows.
 *
 * The library's choice depends on the number of rows: few wide rows are split among work-groups, which changes the order of
 * a row's sums. With batch_invariant in a descriptor, the knobs that this order depends on are those for many rows. A row
 * then has the same bits whatever other rows are in the call, on the same device with the same tuning file. That is slower
 * where rows are few: a single row of 262144 columns is read by one work-group.
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

/* Reads "vec=8,lanes=128,keep=registers": knobs that are not named are 0, "" is automatic. CLNORM_INVALID_VALUE where a
 * knob or value is unknown; config is then as it was.
 *
 *   vec=N               elements per memory access: 1, 2, 4, 8, 16
 *   lanes=N             work-items that share one segment: a power of two
 *   segments=N          segments that a work-group holds at once: a power of two
 *   iterations=N        minimum iterations per work-group, each over its segments; not the norms' backward
 *   keep=               where a segment is kept between its statistics and its result: registers, reread, local (memory)
 *   unroll=N            keep=reread: vectors that a lane loads at once, 1 to 16
 *   reduce=             how lanes add up: tree (local memory), shuffle (NVIDIA), subgroup
 *   stores=             cached, streaming (past the caches)
 *   weights=            when weight and bias are read: late, early (with x), kept (late, with a hint that caches keep them)
 *   isa=                portable (OpenCL C 1.2), ptx (NVIDIA from compute capability 8.0)
 *   chunks=N            pieces of a segment, a work-group each; of group norm with channels last pieces of a sample's
 *                       positions
 *   prefetch=           of the norms into the L2 cache: none, next (row)
 *   local_vectors=N     keep=local: maximum vectors per lane kept in local memory
 *
 * Of the norms' backward alone:
 *   tile=N              columns of a segment that a work-group has
 *   accumulator=        where dweight and dbias are added up: registers, local, memory, split, columns
 *   pipeline=N          rows in registers at once, 1 to 3
 *   row_split=          how work-groups with a tile each get a row's sums: two_passes, exchange
 *   groups_per_cu=N     work-groups per compute unit, approximate maximum
 *   run_length=N        neighbouring rows that a work-group takes before it skips the other work-groups' rows */
CLNORM_API clnorm_status clnorm_config_parse(const char *text, clnorm_config *config);

/* Writes the knobs that are not 0, at most capacity bytes, and returns the whole text's length, as snprintf does. */
CLNORM_API size_t clnorm_config_text(const clnorm_config *config, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
