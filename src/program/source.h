/* The embedded device code: sources with their includes expanded, defined in files that the build makes from cl/
 * (tools/embed.cmake). */
#ifndef CLN_SOURCE_H
#define CLN_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct cln_source {
    const char *name; /* of the file, "norm_forward.cl" */
    const char *text; /* length bytes and a NUL */
    size_t length;
    uint64_t digest; /* hash of the text, by which programs are looked up */
};

extern const struct cln_source cln_source_dequantize;
extern const struct cln_source cln_source_fp8_rms_norm_rows;
extern const struct cln_source cln_source_fp8_rms_norm_tile;
extern const struct cln_source cln_source_norm_forward;
extern const struct cln_source cln_source_norm_forward_chunks;
extern const struct cln_source cln_source_norm_backward;
extern const struct cln_source cln_source_norm_backward_check;
extern const struct cln_source cln_source_norm_backward_reduce;
extern const struct cln_source cln_source_norm_backward_sums;
extern const struct cln_source cln_source_norm_slices;
extern const struct cln_source cln_source_norm_slices_backward;
extern const struct cln_source cln_source_gelu;
extern const struct cln_source cln_source_group_norm;
extern const struct cln_source cln_source_group_norm_backward;
extern const struct cln_source cln_source_group_norm_backward_held;
extern const struct cln_source cln_source_group_norm_backward_parts;
extern const struct cln_source cln_source_group_norm_backward_pieces;
extern const struct cln_source cln_source_group_norm_last;
extern const struct cln_source cln_source_group_norm_last_backward;
extern const struct cln_source cln_source_group_norm_last_backward_exchange;
extern const struct cln_source cln_source_group_norm_last_exchange;
extern const struct cln_source cln_source_group_norm_backward_exchange;
extern const struct cln_source cln_source_group_norm_exchange;
extern const struct cln_source cln_source_group_norm_parts;
extern const struct cln_source cln_source_group_norm_pieces;
extern const struct cln_source cln_source_group_norm_reduce;
extern const struct cln_source cln_source_softmax;
extern const struct cln_source cln_source_softmax_chunks;
extern const struct cln_source cln_source_softmax_exchange;
extern const struct cln_source cln_source_softmax_backward;
extern const struct cln_source cln_source_softmax_backward_chunks;
extern const struct cln_source cln_source_softmax_backward_exchange;
extern const struct cln_source cln_source_quantize_largest;
extern const struct cln_source cln_source_quantize_segments;
extern const struct cln_source cln_source_quantize_tile;
extern const struct cln_source cln_source_transpose;

#endif
