#include "program/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* OPTION, OPTION_DTYPE: left out of the options where it is 0. */
enum kind { NUMBER, DTYPE, OPTION, OPTION_DTYPE };

enum { FORWARD = CLN_NORM_FORWARD, BACKWARD = CLN_NORM_BACKWARD, REDUCTION = CLN_NORM_BACKWARD_REDUCE };
enum { GELU = CLN_GELU, SOFTMAX_BACKWARD = CLN_SOFTMAX_BACKWARD, SOFTMAX = CLN_SOFTMAX | SOFTMAX_BACKWARD };
enum { QUANTIZE = CLN_QUANTIZE, NORMS = FORWARD | BACKWARD, SEGMENTED = NORMS | REDUCTION | SOFTMAX | QUANTIZE };
enum { CHECK = CLN_NORM_BACKWARD_CHECK, GROUP = CLN_GROUP_NORM, ALL = SEGMENTED | GELU | CHECK | GROUP };

static const struct field {
    const char *macro;
    size_t offset;
    enum kind kind;
    int families; /* kernels that have the macro */
} fields[] = {
    {"NORM", offsetof(struct cln_spec, norm), NUMBER, NORMS},
    {"FLOORED", offsetof(struct cln_spec, floored), NUMBER, NORMS},
    {"GROUP_SIZE", offsetof(struct cln_spec, group_size), NUMBER, SEGMENTED | GROUP},
    {"GROUPS", offsetof(struct cln_spec, groups), NUMBER, NORMS | QUANTIZE | GROUP},
    {"CHANNELS", offsetof(struct cln_spec, channels), NUMBER, GROUP},
    {"SPATIAL", offsetof(struct cln_spec, spatial), NUMBER, GROUP},
    {"LAYOUT", offsetof(struct cln_spec, layout), NUMBER, GROUP},
    {"X_DTYPE", offsetof(struct cln_spec, x_dtype), DTYPE, ALL},
    {"Y_DTYPE", offsetof(struct cln_spec, y_dtype), DTYPE, NORMS | GELU | SOFTMAX | GROUP},
    {"Z_DTYPE", offsetof(struct cln_spec, z_dtype), DTYPE, NORMS},
    {"WEIGHT_DTYPE", offsetof(struct cln_spec, weight_dtype), DTYPE, NORMS | QUANTIZE | CHECK | GROUP},
    {"BIAS_DTYPE", offsetof(struct cln_spec, bias_dtype), DTYPE, NORMS | CHECK | GROUP},
    {"DY_DTYPE", offsetof(struct cln_spec, dy_dtype), DTYPE, BACKWARD | GELU | SOFTMAX_BACKWARD | GROUP},
    {"DX_DTYPE", offsetof(struct cln_spec, dx_dtype), DTYPE, BACKWARD | GELU | SOFTMAX_BACKWARD | GROUP},
    {"DZ_DTYPE", offsetof(struct cln_spec, dz_dtype), DTYPE, BACKWARD},
    {"DWEIGHT_DTYPE", offsetof(struct cln_spec, dweight_dtype), DTYPE, BACKWARD | REDUCTION | GROUP},
    {"DBIAS_DTYPE", offsetof(struct cln_spec, dbias_dtype), DTYPE, BACKWARD | REDUCTION | GROUP},
    {"GATE", offsetof(struct cln_spec, gate), NUMBER, NORMS},
    {"GATE_FIRST", offsetof(struct cln_spec, gate_first), NUMBER, NORMS},
    {"WEIGHT_OFFSET", offsetof(struct cln_spec, weight_offset), NUMBER, NORMS},
    {"SAVE_MEAN", offsetof(struct cln_spec, save_mean), NUMBER, FORWARD | GROUP},
    {"SAVE_RSTD", offsetof(struct cln_spec, save_rstd), NUMBER, FORWARD | GROUP},
    {"Y_SCALES", offsetof(struct cln_spec, y_scales), NUMBER, FORWARD},
    {"READS_MEAN", offsetof(struct cln_spec, reads_mean), NUMBER, BACKWARD},
    {"HAS_SUMS", offsetof(struct cln_spec, has_sums), NUMBER, BACKWARD | GROUP},
    {"HAS_SLOTS", offsetof(struct cln_spec, has_slots), NUMBER, BACKWARD},
    {"EXCHANGES", offsetof(struct cln_spec, exchanges), NUMBER, BACKWARD},
    {"LOCKED", offsetof(struct cln_spec, locked), NUMBER, BACKWARD},
    {"ACCUMULATE", offsetof(struct cln_spec, accumulate), NUMBER, BACKWARD | REDUCTION},
    {"RESIDUAL_DTYPE", offsetof(struct cln_spec, residual_dtype), DTYPE, NORMS | GROUP},
    {"RESIDUAL_OUT_DTYPE", offsetof(struct cln_spec, residual_out_dtype), DTYPE, FORWARD | GROUP},
    {"DRESIDUAL_OUT_DTYPE", offsetof(struct cln_spec, dresidual_out_dtype), DTYPE, BACKWARD},
    {"DRESIDUAL_DTYPE", offsetof(struct cln_spec, dresidual_dtype), DTYPE, BACKWARD},
    {"S_GIVEN", offsetof(struct cln_spec, s_given), NUMBER, BACKWARD},
    {"Y_GIVEN", offsetof(struct cln_spec, y_given), NUMBER, BACKWARD},
    {"ROW_SCALE", offsetof(struct cln_spec, row_scale), NUMBER, NORMS},
    {"DROPOUT", offsetof(struct cln_spec, dropout), NUMBER, NORMS},
    {"SAVE_MASK", offsetof(struct cln_spec, save_mask), NUMBER, FORWARD},
    {"ACTIVATION", offsetof(struct cln_spec, activation), NUMBER, NORMS | GROUP},
    {"VEC", offsetof(struct cln_spec, vec), NUMBER, ALL},
    {"LANES", offsetof(struct cln_spec, lanes), NUMBER, ALL},
    {"SEGMENTS", offsetof(struct cln_spec, segments), NUMBER, SEGMENTED | GROUP},
    {"KEEP", offsetof(struct cln_spec, keep), NUMBER, NORMS | SOFTMAX},
    {"UNROLL", offsetof(struct cln_spec, unroll), NUMBER, NORMS | REDUCTION | SOFTMAX | GELU},
    {"REDUCE", offsetof(struct cln_spec, reduce), NUMBER, NORMS | SOFTMAX | QUANTIZE | GROUP},
    {"STORES", offsetof(struct cln_spec, stores), NUMBER, ALL},
    {"WEIGHTS", offsetof(struct cln_spec, weights), NUMBER, NORMS},
    {"ISA", offsetof(struct cln_spec, isa), NUMBER, ALL},
    {"TILE", offsetof(struct cln_spec, tile), NUMBER, BACKWARD},
    {"ACCUMULATOR", offsetof(struct cln_spec, accumulator), NUMBER, BACKWARD},
    {"COLUMN_LANES", offsetof(struct cln_spec, column_lanes), NUMBER, BACKWARD},
    {"PIPELINE", offsetof(struct cln_spec, pipeline), NUMBER, BACKWARD},
    {"PREFETCH", offsetof(struct cln_spec, prefetch), NUMBER, BACKWARD},
    {"RUN_LENGTH", offsetof(struct cln_spec, run_length), NUMBER, BACKWARD},
    {"SPAN", offsetof(struct cln_spec, span), NUMBER, BACKWARD},
    {"ABREAST", offsetof(struct cln_spec, abreast), NUMBER, BACKWARD},
    {"CHUNKS", offsetof(struct cln_spec, chunks), NUMBER, NORMS | SOFTMAX | GROUP},
    {"ROW_SPLIT", offsetof(struct cln_spec, row_split), NUMBER, BACKWARD},
    {"LOCAL_VECTORS", offsetof(struct cln_spec, local_vectors), NUMBER, FORWARD},
    {"LOOP", offsetof(struct cln_spec, loop), NUMBER, FORWARD},
    {"GELU", offsetof(struct cln_spec, gelu), NUMBER, GELU},
    {"Q_DTYPE", offsetof(struct cln_spec, q_dtype), DTYPE, QUANTIZE},
    {"SCALE_DTYPE", offsetof(struct cln_spec, scale_dtype), DTYPE, FORWARD | QUANTIZE},
    {"X_GROUP", offsetof(struct cln_spec, x_group), NUMBER, NORMS},
    {"X_SCALING", offsetof(struct cln_spec, x_scaling), NUMBER, NORMS},
    {"X_SCALE_DTYPE", offsetof(struct cln_spec, x_scale_dtype), DTYPE, NORMS | QUANTIZE},
    {"COMPATIBLE", offsetof(struct cln_spec, compatible), NUMBER, FORWARD | QUANTIZE},
    {"SCALING", offsetof(struct cln_spec, scaling), NUMBER, FORWARD | QUANTIZE},
    {"Y_GROUP", offsetof(struct cln_spec, y_group), NUMBER, FORWARD},
    {"WRITES_Y", offsetof(struct cln_spec, writes_y), NUMBER, FORWARD},
    {"MEASURES", offsetof(struct cln_spec, measures), NUMBER, FORWARD},
    {"SAVE_Y_ROW_SCALE", offsetof(struct cln_spec, save_y_row_scale), NUMBER, FORWARD},
    {"AMAX", offsetof(struct cln_spec, amax), NUMBER, QUANTIZE},
    {"WRITE_Q", offsetof(struct cln_spec, write_q), NUMBER, QUANTIZE},
    {"TRANSPOSED", offsetof(struct cln_spec, transposed), NUMBER, QUANTIZE},
    {"STOCHASTIC", offsetof(struct cln_spec, stochastic), NUMBER, QUANTIZE},
    {"ROWS", offsetof(struct cln_spec, rows), NUMBER, QUANTIZE},
    {"TILE_ROWS", offsetof(struct cln_spec, tile_rows), NUMBER, QUANTIZE},
    {"TILE_COLS", offsetof(struct cln_spec, tile_cols), NUMBER, QUANTIZE},
    {"ROW_VEC", offsetof(struct cln_spec, row_vec), NUMBER, QUANTIZE},
    {"FP8_ISA", offsetof(struct cln_spec, fp8_isa), NUMBER, NORMS | QUANTIZE},
    {"ROPE", offsetof(struct cln_spec, rope), OPTION, NORMS},
    {"ROPE_DIMS", offsetof(struct cln_spec, rope_dims), OPTION, NORMS},
    {"ROPE_REPEAT", offsetof(struct cln_spec, rope_repeat), OPTION, NORMS},
    {"ROPE_POSITION", offsetof(struct cln_spec, rope_position), OPTION, NORMS},
    {"ROPE_COS_DTYPE", offsetof(struct cln_spec, rope_cos_dtype), OPTION_DTYPE, NORMS},
    {"ROPE_SIN_DTYPE", offsetof(struct cln_spec, rope_sin_dtype), OPTION_DTYPE, NORMS},
    {"ELEMENT_ALIGNED", offsetof(struct cln_spec, element_aligned), NUMBER, ALL},
    {"LEADS", offsetof(struct cln_spec, leads), OPTION, NORMS | SOFTMAX | QUANTIZE},
    {"TAILS", offsetof(struct cln_spec, tails), OPTION, QUANTIZE},
    {"WEIGHT_MAP", offsetof(struct cln_spec, weight_map), OPTION, NORMS | REDUCTION},
    {"COLUMNS_OF_WEIGHT", offsetof(struct cln_spec, columns_of_weight), OPTION, NORMS | REDUCTION},
    {"DRESIDUAL_OUT_DTYPE", offsetof(struct cln_spec, dresidual_out_dtype), OPTION_DTYPE, GROUP},
    {"DRESIDUAL_DTYPE", offsetof(struct cln_spec, dresidual_dtype), OPTION_DTYPE, GROUP},
    {"ACCUMULATE", offsetof(struct cln_spec, accumulate), OPTION, GROUP},
    {"X_SCALING", offsetof(struct cln_spec, x_scaling), OPTION, GROUP},
    {"X_SCALE_DTYPE", offsetof(struct cln_spec, x_scale_dtype), OPTION_DTYPE, GROUP},
    {"SCALING", offsetof(struct cln_spec, scaling), OPTION, GROUP},
    {"SCALE_DTYPE", offsetof(struct cln_spec, scale_dtype), OPTION_DTYPE, GROUP},
    {"MEASURES", offsetof(struct cln_spec, measures), OPTION, GROUP},
    {"SPAN", offsetof(struct cln_spec, span), OPTION, GROUP},
    {"CHANNEL_LANES", offsetof(struct cln_spec, channel_lanes), OPTION, GROUP},
    {"PIECE_CHANNELS", offsetof(struct cln_spec, piece_channels), OPTION, GROUP},
    {"MERGES", offsetof(struct cln_spec, merges), OPTION, GROUP},
    {"BLOCK", offsetof(struct cln_spec, block), OPTION, GROUP},
    {"ROW_SPLIT", offsetof(struct cln_spec, row_split), OPTION, GROUP | SOFTMAX},
    {"MOST_REGISTERS", offsetof(struct cln_spec, most_registers), OPTION, GROUP | SOFTMAX},
    {"ROW_POSITIONS", offsetof(struct cln_spec, row_positions), NUMBER, GROUP},
    {"FP8_ISA", offsetof(struct cln_spec, fp8_isa), OPTION, GROUP},
};

enum { FIELDS = sizeof fields / sizeof fields[0], LONGEST_FIELD = 48 };

/* " -D COLUMNS_OF_WEIGHT=18446744073709551615" is the longest: no list of fields, with -cl-std and the bound of registers,
 * can exceed the capacity. */
_Static_assert((FIELDS + 2) * LONGEST_FIELD <= CLN_OPTIONS_CAPACITY - CLN_OUTER_OPTIONS, "options must fit");

/* The newest OpenCL C that the kernels are written for. A compiler for a later version accepts it too. */
enum { NEWEST_OPENCL_C = 300 };

static uint64_t value_of(const struct cln_spec *spec, const struct field *field) {
    return *(const uint64_t *)((const char *)spec + field->offset);
}

bool cln_spec_macro(const struct cln_spec *spec, const char *macro, uint64_t *value) {
    size_t i = 0;
    while (i < FIELDS && (strcmp(fields[i].macro, macro) != 0 || !(fields[i].families & (int)spec->family)))
        i++;
    if (i == FIELDS)
        return false;
    *value = value_of(spec, &fields[i]);
    return true;
}

void cln_spec_options(const struct cln_spec *spec, char options[CLN_OPTIONS_CAPACITY]) {
    const uint64_t opencl_c = spec->opencl_c < NEWEST_OPENCL_C ? spec->opencl_c : NEWEST_OPENCL_C;
    size_t length = (size_t)snprintf(options, CLN_OPTIONS_CAPACITY, "-cl-std=CL%" PRIu64 ".%" PRIu64, opencl_c / 100,
                                     opencl_c % 100 / 10);
    for (size_t i = 0; i < FIELDS && length < CLN_OPTIONS_CAPACITY; i++) {
        const uint64_t value = value_of(spec, &fields[i]);
        if (!(fields[i].families & (int)spec->family) || (fields[i].kind >= OPTION && !value))
            continue;
        char *const end = options + length;
        const size_t room = CLN_OPTIONS_CAPACITY - length;
        const bool is_dtype = fields[i].kind == DTYPE || fields[i].kind == OPTION_DTYPE;
        const int written = is_dtype
                                ? snprintf(end, room, " -D %s=%s", fields[i].macro, clnorm_dtype_name((clnorm_dtype)value))
                                : snprintf(end, room, " -D %s=%" PRIu64, fields[i].macro, value);
        length += (size_t)written;
    }
    if (spec->most_registers && length < CLN_OPTIONS_CAPACITY) /* NVIDIA's driver 580 takes it in this form only */
        (void)snprintf(options + length, CLN_OPTIONS_CAPACITY - length, " -cl-nv-maxrregcount=%" PRIu64,
                       spec->most_registers);
}
