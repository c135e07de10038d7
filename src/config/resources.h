/* The resources of a device that a config takes: vectors of a lane, registers, local memory. */
#ifndef CLN_RESOURCES_H
#define CLN_RESOURCES_H

#include "config/config.h"

/* Maximum bytes and elements of a lane in unrolled loops: more would make builds slow. */
enum { CLN_MOST_HELD_BYTES = 1024, CLN_MOST_ELEMENTS = 64 };

/* Whether vectors do not divide the rows' strides, so that segments begin anywhere within one. */
bool cln_leads(const struct cln_workload *work, const struct cln_config *c);

/* Maximum elements from the start of a segment's first vector to the segment's end. */
uint64_t cln_reach(const struct cln_workload *work, const struct cln_config *c);

/* Backward: the tiles of a segment. */
uint64_t cln_tiles(const struct cln_workload *work, const struct cln_config *c);

/* Backward: the columns of a tile if a segment is split evenly into the fewest tiles of at most so many columns. It is a
 * multiple of vec if most is one, and of whole cache lines of x likewise: two work-groups that write one line take longer.
 */
uint64_t cln_even_tile(const struct cln_workload *work, const struct cln_config *c, uint64_t most);

/* Bytes of x; UINT64_MAX beyond. */
uint64_t cln_x_bytes(const struct cln_workload *work);

/* The tensors of x's size that are read or written. */
unsigned cln_moved_tensors(const struct cln_workload *work);

/* Forward and softmax: the vectors of a segment, or of one of its chunks, that the lanes of a work-group share. */
uint64_t cln_shared_vectors(const struct cln_workload *work, const struct cln_config *c);

/* Forward and softmax: maximum vectors of a segment, or of one of its chunks, that one lane has, and their bytes while they
 * are held. */
uint64_t cln_vectors_per_lane(const struct cln_workload *work, const struct cln_config *c);
uint64_t cln_held_bytes(const struct cln_workload *work, const struct cln_config *c);

/* Softmax: whether work-groups exchange the totals of pieces of rows, and hold two pieces each; bytes of an element's
 * inputs, which are held as they were loaded. */
bool cln_holds_pieces(const struct cln_workload *work, const struct cln_config *c);
uint64_t cln_piece_element(const struct cln_workload *work);

/* Registers of so many bytes. */
uint64_t cln_registers_of(uint64_t bytes);

/* Registers that a work-item may have whose pieces take so many each, of which it holds two, so that several work-groups
 * run at once on a compute unit; 0: as many as the compiler takes. For softmax, where it holds pieces, else 0. */
enum { CLN_REGISTERS_OF_UNIT = 65536 }; /* of an NVIDIA GPU */
uint64_t cln_most_registers(const struct cln_config *c, uint64_t held);
uint64_t cln_softmax_most_registers(const struct cln_workload *work, const struct cln_config *c);

/* Forward and softmax: bytes of local memory for the sums over lanes. */
uint64_t cln_scratch_bytes(const struct cln_workload *work, const struct cln_config *c);

/* Backward: maximum columns of a tile that one lane has. */
uint64_t cln_elements_per_lane(const struct cln_workload *work, const struct cln_config *c);

/* Backward: whether each lane has the same columns of every row, known when the kernel is built. */
bool cln_unrolls_columns(const struct cln_config *c);

/* Backward: the vectors of a row. */
uint64_t cln_row_vectors(const struct cln_workload *work, const struct cln_config *c);

/* Backward: neighbouring lanes of a work-group that sums columns (cl/norm/norm_backward_columns.h). The other lanes form
 * further lines of so many, which take other rows. */
uint64_t cln_column_lanes(const struct cln_workload *work, const struct cln_config *c, uint64_t compute_units);

/* Backward: bytes of local memory. span: groups that a work-group takes one after the other. */
uint64_t cln_backward_local_bytes(const struct cln_workload *work, const struct cln_config *c, uint64_t span);

/* Backward: rows that a work-group takes at a time, with the segments of each that it has side by side. */
uint64_t cln_rows_at_once(const struct cln_workload *work, const struct cln_config *c);

/* Backward: work-groups that share a row. span: of cln_config_span. */
uint64_t cln_blocks(const struct cln_workload *work, const struct cln_config *c, uint64_t span);

/* Backward: parts of the rows of weights, where no work-group has rows of two parts. */
uint64_t cln_weight_blocks(const struct cln_workload *work, const struct cln_config *c);

/* Backward: work-groups for each class of rows, where no work-group has rows of two classes. Where one wave would leave
 * much of the device idle there are several. rows: of a class; at_once: work-groups of a wave; taken: rows that a
 * work-group takes at a time. */
uint64_t cln_groups_of_class(uint64_t at_once, uint64_t classes, uint64_t rows, uint64_t taken);

/* Registers of 4 bytes that a work-item needs without spills, estimated from the values that the kernel holds at once. */
uint64_t cln_forward_registers(const struct cln_workload *work, const struct cln_config *c);
uint64_t cln_backward_least_registers(const struct cln_workload *work, const struct cln_config *c);

/* The same of any operation; 0 of an elementwise one, whose work-items hold a vector. */
uint64_t cln_least_registers(const struct cln_workload *work, const struct cln_config *c);

/* Registers that a compiler uses for a work-item without a limit: they decide how many work-groups a compute unit holds. */
uint64_t cln_backward_registers(const struct cln_workload *work, const struct cln_config *c);

#endif
