#!/bin/sh
# Compiles the device code strictly, every warning an error: as OpenCL C 1.2 without any extension, so that what passes
# uses nothing that some device lacks; and each thing beyond that with just the extension that it stands on.
#
#   lint_kernels.sh CLANG KERNEL_DIR
set -eu
clang=$1
kernels=$2
tests=$(dirname "$0")
failures=0
builds=0
built=" "

# strict FAMILY STANDARD TARGET EXTENSIONS MACRO=VALUE …     what no MACRO says is as in $defaults
strict() {
    family=$1 standard=$2 target=$3 extensions=$4
    shift 4
    options=""
    for macro in "$@"; do
        options="$options -D$macro"
    done
    for macro in $defaults; do
        case $options in
        *"-D${macro%%=*}="*) ;;
        *) options="$options -D$macro" ;;
        esac
    done
    builds=$((builds + 1))
    built="$built$family "
    # shellcheck disable=SC2086 # a list of words
    "$clang" -x cl "-cl-std=$standard" -target "$target" -Xclang "-cl-ext=$extensions" -Xclang -finclude-default-header \
        -include "$tests/lint_half.h" -fsyntax-only -Wall -Wextra -pedantic -Werror -Wno-unused-parameter $options \
        -I "$kernels" "$kernels"/*/"$family.cl" && return
    echo "^^^ $family, $standard for $target with $extensions:$options"
    failures=$((failures + 1))
}

# Where OpenCL C has a generic address space, to which a pointer without one points. later FAMILY MACRO=VALUE …
later() {
    family=$1
    shift
    fences=+__opencl_c_atomic_order_acq_rel,+__opencl_c_atomic_scope_device
    strict "$family" CL2.0 spir64 -all,+cl_khr_subgroups "$@"
    strict "$family" CL3.0 spir64 "-all,+__opencl_c_generic_address_space,+__opencl_c_subgroups,+cl_khr_subgroups,$fences" "$@"
}

portable() {
    strict norm_forward CL1.2 spir64 -all "$@"
}

defaults="NORM=LAYER_NORM GROUP_SIZE=1000 GROUPS=2 X_DTYPE=f32 Y_DTYPE=f32 Z_DTYPE=none WEIGHT_DTYPE=f32 BIAS_DTYPE=f32
    GATE=0 GATE_FIRST=0 SAVE_MEAN=1 SAVE_RSTD=1 VEC=4 LANES=64 SEGMENTS=2 KEEP=KEEP_REGISTERS UNROLL=1 REDUCE=REDUCE_TREE
    RESIDUAL_DTYPE=none RESIDUAL_OUT_DTYPE=none ROW_SCALE=0 DROPOUT=0 SAVE_MASK=0 ACTIVATION=0 WEIGHT_OFFSET=0 WEIGHTS=1
    LOOP=0 LOCAL_VECTORS=0 CHUNKS=1 DY_DTYPE=none DX_DTYPE=none DWEIGHT_DTYPE=none DBIAS_DTYPE=none HAS_SUMS=1 STORES=1 ISA=1 ELEMENT_ALIGNED=0 SCALING=0 Y_GROUP=0 FP8_ISA=1
    ROWS_AHEAD=0 X_SCALE_DTYPE=none X_SCALING=0 X_GROUP=0
    SCALE_DTYPE=none Y_SCALES=0 WRITES_Y=1 MEASURES=0 SAVE_Y_ROW_SCALE=0 COMPATIBLE=0"

for vec in 1 2 4 8 16; do
    portable VEC=$vec X_DTYPE=bf16 Y_DTYPE=f16
    portable VEC=$vec KEEP=KEEP_REREAD LANES=1 SEGMENTS=1 UNROLL=4 ELEMENT_ALIGNED=1
    portable VEC=$vec NORM=RMS_NORM SAVE_MEAN=0 KEEP=KEEP_REREAD X_DTYPE=f16 Y_DTYPE=bf16
    strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 VEC=$vec X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64
    strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 VEC=$vec X_DTYPE=bf16 WEIGHT_DTYPE=f64
    strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 VEC=$vec X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f32 BIAS_DTYPE=f64
    strict norm_forward CL1.2 nvptx64 -all VEC=$vec X_DTYPE=bf16 Y_DTYPE=bf16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
    strict norm_forward CL1.2 nvptx64 -all,+cl_khr_fp64 VEC=$vec WEIGHT_DTYPE=f64 BIAS_DTYPE=f64 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done
for gate in GATE_SILU GATE_SIGMOID; do
    portable GATE=$gate Z_DTYPE=bf16
    portable GATE=$gate GATE_FIRST=1 Z_DTYPE=f32 KEEP=KEEP_REREAD
    portable GATE=$gate NORM=RMS_NORM WEIGHT_DTYPE=none BIAS_DTYPE=none SAVE_MEAN=0 SAVE_RSTD=0 Z_DTYPE=f16 GROUP_SIZE=1
done
for vec in 1 2 4 8 16; do
    portable VEC=$vec DROPOUT=1 SAVE_MASK=1 KEEP=KEEP_REREAD UNROLL=2
    portable VEC=$vec DROPOUT=1 GROUP_SIZE=63 ROW_SCALE=1 RESIDUAL_DTYPE=bf16 RESIDUAL_OUT_DTYPE=f16
done
portable DROPOUT=1 KEEP=KEEP_REREAD LANES=8
for vec in 1 2 8; do
    portable VEC=$vec X_DTYPE=bf16 DROPOUT=1 KEEP=3 LANES=8 SEGMENTS=1 LOCAL_VECTORS=20
    strict norm_forward CL1.2 nvptx64 -all VEC=$vec X_DTYPE=f16 DROPOUT=1 KEEP=3 LOCAL_VECTORS=2 SEGMENTS=1 ISA=ISA_PTX
done
portable X_DTYPE=bf16 KEEP=3 SEGMENTS=1 LOCAL_VECTORS=2 RESIDUAL_DTYPE=f32 RESIDUAL_OUT_DTYPE=f32
for activation in ACTIVATION_GELU ACTIVATION_GELU_TANH ACTIVATION_SILU; do
    portable ACTIVATION=$activation
    portable ACTIVATION=$activation VEC=1 GATE=GATE_SILU Z_DTYPE=f32 KEEP=KEEP_REREAD
    portable ACTIVATION=$activation GATE=GATE_SILU Z_DTYPE=f32 SCALING=SCALING_ROW Y_DTYPE=f8e4m3 SCALE_DTYPE=f32 Y_SCALES=1
    strict norm_forward CL1.2 nvptx64 -all ACTIVATION=$activation X_DTYPE=bf16 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 ACTIVATION=$activation X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 \
        BIAS_DTYPE=f64
done
for norm in LAYER_NORM RMS_NORM; do
    chunks="NORM=$norm KEEP=KEEP_REREAD SEGMENTS=1 CHUNKS=7 UNROLL=4"
    for numbers in 1 7; do
        slices="NORM=$norm KEEP=KEEP_REREAD SEGMENTS=1 CHUNKS=$numbers UNROLL=4 SAVE_MEAN=0 SAVE_RSTD=0"
        strict norm_slices CL1.2 spir64 -all $slices VEC=1 X_DTYPE=bf16 Y_DTYPE=none WRITES_Y=0 WEIGHT_DTYPE=none BIAS_DTYPE=none
        strict norm_slices CL1.2 spir64 -all $slices VEC=16 LANES=1 ELEMENT_ALIGNED=1 Y_DTYPE=f16
        strict norm_slices CL1.2 spir64 -all,+cl_khr_fp64 $slices X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64
        strict norm_slices CL1.2 nvptx64 -all $slices X_DTYPE=bf16 VEC=8 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX WEIGHTS=WEIGHTS_KEPT
        later norm_slices $slices REDUCE=REDUCE_SUBGROUP X_DTYPE=f16 VEC=8
    done
    strict norm_slices CL1.2 spir64 -all NORM=$norm KEEP=KEEP_REREAD SEGMENTS=4 UNROLL=2 VEC=2 GROUP_SIZE=63
    strict norm_forward_chunks CL1.2 spir64 -all $chunks VEC=1 X_DTYPE=bf16 DROPOUT=1 SAVE_MASK=1 RESIDUAL_DTYPE=f32
    strict norm_forward_chunks CL1.2 spir64 -all $chunks VEC=16 LANES=1 ELEMENT_ALIGNED=1 GATE=GATE_SILU Z_DTYPE=f16
    strict norm_forward_chunks CL1.2 spir64 -all,+cl_khr_fp64 $chunks X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64
    strict norm_forward_chunks CL1.2 nvptx64 -all $chunks X_DTYPE=bf16 VEC=8 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done
for keep in KEEP_REGISTERS KEEP_REREAD; do
    ahead="ROWS_AHEAD=132 SEGMENTS=1 GROUPS=1 KEEP=$keep"
    # shellcheck disable=SC2086 # a list of words
    portable $ahead GATE=GATE_SILU Z_DTYPE=f32
    # shellcheck disable=SC2086
    strict norm_forward CL1.2 nvptx64 -all $ahead RESIDUAL_DTYPE=bf16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done
for keep in KEEP_REGISTERS KEEP_REREAD; do
    portable WEIGHT_MAP=1 KEEP=$keep X_DTYPE=bf16 VEC=8
    strict norm_forward CL1.2 nvptx64 -all WEIGHT_MAP=1 KEEP=$keep REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX WEIGHTS=WEIGHTS_EARLY
done
for form in ROPE_NEOX ROPE_INTERLEAVED; do
    for vec in 1 2 8 16; do
        rope="ROPE=$form GROUP_SIZE=72 ROPE_DIMS=64 ROPE_REPEAT=3 VEC=$vec"
        tables="ROPE_COS_DTYPE=f32 ROPE_SIN_DTYPE=bf16"
        # shellcheck disable=SC2086 # a list of words
        portable $rope $tables LANES=2 X_DTYPE=bf16 ROPE_POSITION=1 BIAS_DTYPE=none
        # shellcheck disable=SC2086
        portable $rope $tables KEEP=KEEP_REREAD LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 NORM=RMS_NORM DROPOUT=1 SAVE_MASK=1
        # shellcheck disable=SC2086
        portable $rope $tables KEEP=KEEP_REREAD LANES=2 UNROLL=4 Y_DTYPE=f8e4m3 SCALING=1 RESIDUAL_DTYPE=f32 RESIDUAL_OUT_DTYPE=f32
        # shellcheck disable=SC2086
        strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 LANES=2 $rope ROPE_COS_DTYPE=f64 ROPE_SIN_DTYPE=f64 \
            X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f32 BIAS_DTYPE=f64
        # shellcheck disable=SC2086
        strict norm_forward CL1.2 nvptx64 -all $rope $tables LANES=2 X_DTYPE=bf16 Y_DTYPE=bf16 SEGMENTS=16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX \
            WEIGHTS=WEIGHTS_EARLY ROPE_POSITION=1
    done
done
portable RESIDUAL_DTYPE=f32 X_DTYPE=bf16 KEEP=KEEP_REREAD
for row in uint ulong; do # rows with outer dimensions
    outer="ROW_T=$row OUTER_x=1 OUTER_y=2 RESIDUAL_DTYPE=bf16 OUTER_residual=2"
    portable $outer
    portable $outer RESIDUAL_OUT_DTYPE=f32 OUTER_residual_out=1 KEEP=KEEP_REREAD GATE=GATE_SILU Z_DTYPE=f32 OUTER_z=1
    # shellcheck disable=SC2086
    strict norm_forward CL1.2 nvptx64 -all $outer ROWS_AHEAD=132 SEGMENTS=1 GROUPS=1 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done
portable GROUP_SIZE=4294967296 KEEP=KEEP_REREAD
portable STORES=STORES_STREAMING Y_DTYPE=bf16
for lanes in 16 32 1024; do
    strict norm_forward CL1.2 nvptx64 -all LANES=$lanes REDUCE=REDUCE_SHUFFLE
    strict norm_forward CL3.0 spir64 -all,+cl_khr_subgroups,+__opencl_c_subgroups LANES=$lanes REDUCE=REDUCE_SUBGROUP
done
strict norm_forward CL1.2 nvptx64 -all,+cl_khr_fp64 X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64 \
    REDUCE=REDUCE_SHUFFLE
for vec in 1 2 8; do
    for keep in KEEP_REGISTERS KEEP_REREAD; do
        later norm_forward REDUCE=REDUCE_SUBGROUP VEC=$vec KEEP=$keep SEGMENTS=1 X_DTYPE=f16 Y_DTYPE=bf16 ACTIVATION=ACTIVATION_GELU
        later norm_forward REDUCE=REDUCE_SUBGROUP VEC=$vec KEEP=$keep SEGMENTS=1 DROPOUT=1 SAVE_MASK=1 RESIDUAL_DTYPE=bf16
    done
    later norm_forward REDUCE=REDUCE_SUBGROUP VEC=$vec SEGMENTS=1 SCALING=SCALING_ROW Y_DTYPE=f8e4m3 SCALE_DTYPE=f32 Y_SCALES=1 X_DTYPE=bf16
    later norm_forward_chunks REDUCE=REDUCE_SUBGROUP VEC=$vec SEGMENTS=1 KEEP=KEEP_REREAD CHUNKS=7
done

for vec in 1 4 16; do
    for scaling in SCALING_TENSOR SCALING_ROW SCALING_GROUP; do
        quantised="VEC=$vec SCALING=$scaling Y_SCALES=1 Y_GROUP=16 SCALE_DTYPE=bf16"
        # shellcheck disable=SC2086 # a list of words
        portable $quantised Y_DTYPE=f8e4m3 X_DTYPE=f16 GROUPS=1
        # shellcheck disable=SC2086
        portable $quantised Y_DTYPE=f8e5m2 KEEP=KEEP_REREAD LANES=1 SEGMENTS=1 UNROLL=3 ELEMENT_ALIGNED=1 GROUPS=1
        # shellcheck disable=SC2086
        strict norm_forward CL1.2 nvptx64 -all $quantised Y_DTYPE=f8e4m3 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX FP8_ISA=ISA_PTX \
            COMPATIBLE=1
    done
done
for vec in 1 2 4 16; do
    for scaling in SCALING_TENSOR SCALING_ROW SCALING_GROUP; do
        scaled="VEC=$vec X_SCALING=$scaling X_GROUP=32 GROUPS=1"
        # shellcheck disable=SC2086 # a list of words
        portable $scaled X_DTYPE=f8e4m3 X_SCALE_DTYPE=f32 DROPOUT=1 GATE=GATE_SILU Z_DTYPE=bf16
        # shellcheck disable=SC2086
        portable $scaled X_DTYPE=f8e5m2 X_SCALE_DTYPE=bf16 KEEP=3 SEGMENTS=1 LOCAL_VECTORS=2 RESIDUAL_DTYPE=f32
        # shellcheck disable=SC2086
        strict norm_forward CL1.2 nvptx64 -all $scaled X_DTYPE=f8e4m3 X_SCALE_DTYPE=f32 SCALING=$scaling Y_GROUP=16 \
            SCALE_DTYPE=f32 Y_SCALES=1 Y_DTYPE=f8e4m3 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX FP8_ISA=ISA_PTX
        # shellcheck disable=SC2086
        strict norm_forward_chunks CL1.2 spir64 -all $scaled X_DTYPE=f8e4m3 X_SCALE_DTYPE=f32 KEEP=KEEP_REREAD SEGMENTS=1 \
            CHUNKS=7
    done
done
strict norm_forward CL3.0 spir64 -all,+cl_khr_subgroups,+__opencl_c_subgroups REDUCE=REDUCE_SUBGROUP SEGMENTS=1 \
    SCALING=SCALING_GROUP Y_GROUP=128 Y_DTYPE=f8e4m3 SCALE_DTYPE=f32 Y_SCALES=1 KEEP=KEEP_REREAD
for keep in KEEP_REGISTERS KEEP_REREAD; do
    for measures in 0 1; do
        for vec in 1 2 16; do
            pass_of="VEC=$vec KEEP=$keep MEASURES=$measures WRITES_Y=$((1 - measures)) Y_SCALES=$((1 - measures)) SCALING=SCALING_TENSOR SCALE_DTYPE=bf16 Y_DTYPE=f8e4m3"
            # shellcheck disable=SC2086 # a list of words
            portable $pass_of SAVE_Y_ROW_SCALE=1
            # shellcheck disable=SC2086
            portable $pass_of LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 X_DTYPE=f8e5m2 X_SCALE_DTYPE=f32 X_SCALING=SCALING_ROW
            # shellcheck disable=SC2086
            strict norm_forward CL1.2 nvptx64 -all $pass_of REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX FP8_ISA=ISA_PTX
        done
        # shellcheck disable=SC2086
        later norm_forward $pass_of REDUCE=REDUCE_SUBGROUP SEGMENTS=1 SAVE_Y_ROW_SCALE=1
    done
done
for gelu in GELU_ERF GELU_TANH; do
    for vec in 1 4 16; do
        strict gelu CL1.2 spir64 -all GELU=$gelu VEC=$vec LANES=1 UNROLL=4 ELEMENT_ALIGNED=1 Y_DTYPE=bf16
        strict gelu CL1.2 spir64 -all GELU=$gelu VEC=$vec Y_DTYPE=none DY_DTYPE=f32 DX_DTYPE=f16 ROW_T=uint OUTER_x=1 OUTER_dy=2 OUTER_out=2
        strict gelu CL1.2 spir64 -all GELU=$gelu VEC=$vec X_DTYPE=bf16 Y_DTYPE=none DY_DTYPE=f32 DX_DTYPE=f16 STORES=STORES_STREAMING
        strict gelu CL1.2 spir64 -all,+cl_khr_fp64 GELU=$gelu VEC=$vec X_DTYPE=f64 Y_DTYPE=none DY_DTYPE=f64 DX_DTYPE=f64
    done
    strict gelu CL1.2 nvptx64 -all GELU=$gelu VEC=8 X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX
    strict gelu CL1.2 nvptx64 -all GELU=$gelu X_DTYPE=f32 Y_DTYPE=none DY_DTYPE=f32 DX_DTYPE=f32 ISA=ISA_PTX
done
for weight in none f32 bf16; do
    for vec in 1 4 16; do
        strict l2_norm CL1.2 spir64 -all VEC=$vec WEIGHT_DTYPE=$weight X_DTYPE=bf16 Y_DTYPE=f16
        strict l2_norm CL1.2 spir64 -all VEC=$vec WEIGHT_DTYPE=$weight LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 SAVE_RSTD=0
        strict l2_norm CL1.2 spir64 -all VEC=$vec WEIGHT_DTYPE=$weight DY_DTYPE=f16 DX_DTYPE=bf16 DWEIGHT_DTYPE=f32
    done
    strict l2_norm CL1.2 nvptx64 -all WEIGHT_DTYPE=$weight DY_DTYPE=f32 DX_DTYPE=f32 DWEIGHT_DTYPE=none ISA=ISA_PTX \
        REDUCE=REDUCE_SHUFFLE
done
for weight in none bf16; do
    strict l2_norm CL1.2 spir64 -all WEIGHT_MAP=1 WEIGHT_DTYPE=$weight X_DTYPE=bf16 Y_DTYPE=f16
    strict l2_norm CL1.2 spir64 -all WEIGHT_MAP=1 WEIGHT_DTYPE=$weight VEC=1 DY_DTYPE=f16 DX_DTYPE=bf16 DWEIGHT_DTYPE=f32
done
strict l2_norm CL1.2 spir64 -all,+cl_khr_fp64 X_DTYPE=f64 WEIGHT_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64 DWEIGHT_DTYPE=f64 VEC=1
for vec in 1 4; do
    strict l2_norm CL1.2 spir64 -all VEC=$vec ROW_T=uint OUTER_x=1 OUTER_y=2
    strict l2_norm CL1.2 spir64 -all VEC=$vec ROW_T=ulong OUTER_x=2 OUTER_dy=1 OUTER_dx=2 DY_DTYPE=f32 DX_DTYPE=f16 DWEIGHT_DTYPE=f32
done
later l2_norm REDUCE=REDUCE_SUBGROUP SEGMENTS=1 DY_DTYPE=f32 DX_DTYPE=f32 DWEIGHT_DTYPE=f32
for layout in LAYOUT_FIRST LAYOUT_LAST; do
    group="LAYOUT=$layout CHANNELS=12 SPATIAL=1000 GROUPS=4 GROUP_SIZE=3000"
    for vec in 1 4 16; do
        for family in group_norm group_norm_parts group_norm_reduce; do
            [ "$family $layout" = "group_norm LAYOUT_LAST" ] && continue
            # shellcheck disable=SC2086 # a list of words
            strict $family CL1.2 spir64 -all $group VEC=$vec X_DTYPE=bf16 Y_DTYPE=f16 CHUNKS=7 RESIDUAL_DTYPE=f32 \
                RESIDUAL_OUT_DTYPE=f16 ACTIVATION=ACTIVATION_SILU
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all $group VEC=$vec LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all,+cl_khr_fp64 $group VEC=$vec X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 \
                BIAS_DTYPE=f64 SAVE_MEAN=0
            # shellcheck disable=SC2086
            strict $family CL1.2 nvptx64 -all $group VEC=$vec X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
            # shellcheck disable=SC2086
            later $family $group VEC=$vec REDUCE=REDUCE_SUBGROUP SEGMENTS=1 X_DTYPE=f16 CHUNKS=3
            codes="Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16 RESIDUAL_DTYPE=bf16"
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all $group VEC=$vec $codes X_DTYPE=f8e5m2 X_SCALING=SCALING_ROW X_SCALE_DTYPE=f32
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all $group VEC=$vec $codes MEASURES=1 CHUNKS=7
            # shellcheck disable=SC2086
            strict $family CL1.2 nvptx64 -all $group VEC=$vec $codes MEASURES=1 ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all $group VEC=$vec LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 Y_DTYPE=f8e5m2 SCALING=1
        done
        [ "$layout" = LAYOUT_LAST ] || for measures in 0 1; do
            # shellcheck disable=SC2086
            strict group_norm_parts CL1.2 spir64 -all $group VEC=$vec MERGES=1 CHUNKS=7 Y_DTYPE=f8e4m3 SCALING=SCALING_ROW \
                SCALE_DTYPE=bf16 MEASURES=$measures RESIDUAL_DTYPE=bf16
            # shellcheck disable=SC2086
            strict group_norm_parts CL1.2 nvptx64 -all $group VEC=$vec MERGES=1 X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=$measures
        done
        [ "$layout" = LAYOUT_FIRST ] || for span in 2 4; do
            slice="LAYOUT=$layout CHANNELS=64 SPATIAL=50 GROUPS=4 GROUP_SIZE=800 SPAN=$span SEGMENTS=1 LANES=64"
            # shellcheck disable=SC2086
            strict group_norm_last CL1.2 spir64 -all $slice VEC=$vec X_DTYPE=bf16 Y_DTYPE=f16 RESIDUAL_DTYPE=f32 \
                RESIDUAL_OUT_DTYPE=f16 ACTIVATION=ACTIVATION_SILU
            # shellcheck disable=SC2086
            strict group_norm_last CL1.2 nvptx64 -all $slice VEC=$vec X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=0
            # shellcheck disable=SC2086
            strict group_norm_last CL1.2 spir64 -all,+cl_khr_fp64 $slice VEC=$vec X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 \
                BIAS_DTYPE=f64 SAVE_MEAN=0
            # shellcheck disable=SC2086
            strict group_norm_last CL1.2 spir64 -all $slice VEC=$vec Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16 \
                MEASURES=1 ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none
            # shellcheck disable=SC2086
            later group_norm_last $slice VEC=$vec REDUCE=REDUCE_SUBGROUP X_DTYPE=f8e5m2 X_SCALING=SCALING_ROW X_SCALE_DTYPE=f32
        done
        for family in group_norm_parts group_norm_reduce group_norm_backward_parts; do
            strict $family CL1.2 spir64 -all LAYOUT=$layout CHANNELS=65536 SPATIAL=4294967296 GROUPS=4 \
                GROUP_SIZE=70368744177664 CHUNKS=65536 VEC=$vec DY_DTYPE=f32 DX_DTYPE=f32 DWEIGHT_DTYPE=f32
        done
        for family in group_norm_backward group_norm_backward_parts group_norm_reduce; do
            [ "$family $layout" = "group_norm_backward LAYOUT_LAST" ] && continue
            for activation in 0 ACTIVATION_GELU; do
                # shellcheck disable=SC2086
                strict $family CL1.2 spir64 -all $group VEC=$vec X_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=bf16 CHUNKS=7 \
                    ACTIVATION=$activation DWEIGHT_DTYPE=f32 DBIAS_DTYPE=bf16
                # shellcheck disable=SC2086
                strict $family CL1.2 spir64 -all $group VEC=$vec LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 DY_DTYPE=f32 \
                    DX_DTYPE=f32 ACTIVATION=$activation WEIGHT_DTYPE=none BIAS_DTYPE=none HAS_SUMS=0
                # shellcheck disable=SC2086
                strict $family CL1.2 spir64 -all,+cl_khr_fp64 $group VEC=$vec X_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64 \
                    WEIGHT_DTYPE=f64 BIAS_DTYPE=f64 ACTIVATION=$activation DWEIGHT_DTYPE=f64
            done
            # shellcheck disable=SC2086
            strict $family CL1.2 nvptx64 -all $group VEC=$vec X_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE DWEIGHT_DTYPE=f32
            # shellcheck disable=SC2086
            later $family $group VEC=$vec REDUCE=REDUCE_SUBGROUP SEGMENTS=1 DY_DTYPE=f32 DX_DTYPE=f16 CHUNKS=3
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all $group VEC=$vec X_DTYPE=f8e4m3 X_SCALING=SCALING_ROW X_SCALE_DTYPE=bf16 \
                DY_DTYPE=f16 DX_DTYPE=bf16 DRESIDUAL_OUT_DTYPE=f32 DRESIDUAL_DTYPE=f16 ACCUMULATE=1 DWEIGHT_DTYPE=f32
        done
    done
done
for keep in KEEP_REGISTERS KEEP_REREAD; do
    for family in softmax softmax_backward; do
        later $family KEEP=$keep REDUCE=REDUCE_SUBGROUP SEGMENTS=1 X_DTYPE=bf16 Y_DTYPE=f16 DY_DTYPE=f16 DX_DTYPE=bf16
        for vec in 1 4 16; do
            strict $family CL1.2 spir64 -all KEEP=$keep VEC=$vec X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=f32 UNROLL=4
            strict $family CL1.2 spir64 -all KEEP=$keep VEC=$vec LANES=1 SEGMENTS=1 UNROLL=4 ELEMENT_ALIGNED=1 \
                DY_DTYPE=f32 DX_DTYPE=f32
            strict $family CL1.2 spir64 -all KEEP=$keep VEC=$vec LANES=1 UNROLL=2 Y_DTYPE=f16 DY_DTYPE=f16 DX_DTYPE=f16
        done
        strict $family CL1.2 spir64 -all,+cl_khr_fp64 KEEP=$keep X_DTYPE=f64 Y_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64
        strict $family CL1.2 nvptx64 -all KEEP=$keep VEC=8 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 \
            REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
        strict $family CL3.0 spir64 -all,+cl_khr_subgroups,+__opencl_c_subgroups KEEP=$keep REDUCE=REDUCE_SUBGROUP \
            DY_DTYPE=f32 DX_DTYPE=f32
        strict $family CL1.2 spir64 -all KEEP=$keep ROW_T=uint OUTER_x=1 OUTER_y=2 OUTER_dy=1 OUTER_dx=2 DY_DTYPE=f32 DX_DTYPE=f32
    done
done
for family in softmax_chunks softmax_backward_chunks; do
    chunks="KEEP=KEEP_REREAD SEGMENTS=1 CHUNKS=7 UNROLL=4"
    strict $family CL1.2 spir64 -all $chunks VEC=1 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=f32
    strict $family CL1.2 spir64 -all $chunks VEC=16 LANES=1 ELEMENT_ALIGNED=1 DY_DTYPE=f32 DX_DTYPE=f32
    strict $family CL1.2 spir64 -all,+cl_khr_fp64 $chunks X_DTYPE=f64 Y_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64
    strict $family CL1.2 nvptx64 -all $chunks VEC=8 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 \
        REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done

defaults="X_DTYPE=f32 Q_DTYPE=f8e4m3 SCALE_DTYPE=f32 SCALING=3 GROUP_SIZE=32 GROUPS=4 AMAX=1 WRITE_Q=1 TRANSPOSED=1
    STOCHASTIC=0 TILE_ROWS=64 TILE_COLS=64 ROW_VEC=4 VEC=4 LANES=64 SEGMENTS=1 UNROLL=4 REDUCE=REDUCE_TREE STORES=1 ISA=1
    FP8_ISA=1 ELEMENT_ALIGNED=0 X_SCALE_DTYPE=f32 WEIGHT_DTYPE=f32 COMPATIBLE=0 ROWS=2"
for family in quantize_segments quantize_tile quantize_largest dequantize; do
    for vec in 1 2 4 8 16; do
        strict $family CL1.2 spir64 -all VEC=$vec X_DTYPE=bf16 ROW_VEC=$vec
        strict $family CL1.2 nvptx64 -all VEC=$vec Q_DTYPE=f8e5m2 ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    done
    later $family REDUCE=REDUCE_SUBGROUP X_DTYPE=bf16 VEC=2 ROW_VEC=2
    strict $family CL1.2 spir64 -all SCALING=1 STOCHASTIC=1 X_DTYPE=f16 LANES=1 VEC=16 ELEMENT_ALIGNED=1
    strict $family CL1.2 spir64 -all SCALING=2 SCALE_DTYPE=bf16 TRANSPOSED=0 AMAX=0 LANES=1
    strict $family CL1.2 spir64 -all SCALING=1 SCALE_DTYPE=bf16
done
for vec in 1 2 16; do
    strict transpose CL1.2 spir64 -all X_DTYPE=f8e4m3 WRITE_Q=0 VEC=$vec ROW_VEC=$vec
    strict transpose CL1.2 spir64 -all X_DTYPE=f8e4m3 WRITE_Q=0 VEC=$vec LANES=1 ELEMENT_ALIGNED=1
    strict transpose CL1.2 nvptx64 -all X_DTYPE=f8e5m2 WRITE_Q=0 VEC=$vec ISA=ISA_PTX FP8_ISA=ISA_PTX
done
for family in fp8_rms_norm_rows fp8_rms_norm_tile; do
    for vec in 1 2 4 8 16; do
        strict $family CL1.2 spir64 -all VEC=$vec X_DTYPE=f8e5m2 X_SCALE_DTYPE=bf16 WEIGHT_DTYPE=f16 ROW_VEC=$vec
        strict $family CL1.2 nvptx64 -all VEC=$vec X_DTYPE=f8e4m3 ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE \
            COMPATIBLE=1
    done
    later $family REDUCE=REDUCE_SUBGROUP X_DTYPE=f8e4m3
    strict $family CL1.2 spir64 -all X_DTYPE=f8e4m3 WEIGHT_DTYPE=none TRANSPOSED=0 LANES=1 VEC=16 ELEMENT_ALIGNED=1 \
        ROWS=1
done

defaults="NORM=RMS_NORM GROUP_SIZE=1024 GROUPS=1 X_DTYPE=f8e4m3 X_SCALE_DTYPE=f32 X_SCALING=SCALING_GROUP X_GROUP=16 Z_DTYPE=none DY_DTYPE=bf16 WEIGHT_DTYPE=f32
    BIAS_DTYPE=none DX_DTYPE=bf16 DZ_DTYPE=none Y_DTYPE=none DWEIGHT_DTYPE=f32 DBIAS_DTYPE=none GATE=0 GATE_FIRST=0
    WEIGHT_OFFSET=0 READS_MEAN=0 HAS_SUMS=0 HAS_SLOTS=1 HAS_LOCKS=0 LOCKED=0 ACCUMULATE=0
    VEC=8 LANES=64 SEGMENTS=1 KEEP=KEEP_REREAD UNROLL=2 REDUCE=REDUCE_TREE STORES=1 WEIGHTS=1 ISA=1 FP8_ISA=1 TILE=1024
    ACCUMULATOR=ACCUMULATOR_MEMORY COLUMN_LANES=8 PIPELINE=1 PREFETCH=1 RUN_LENGTH=0 SPAN=1 CHUNKS=1 ROW_SPLIT=1 ELEMENT_ALIGNED=0 RESIDUAL_DTYPE=none
    DRESIDUAL_OUT_DTYPE=none DRESIDUAL_DTYPE=none S_GIVEN=0 Y_GIVEN=0 ROW_SCALE=0 DROPOUT=0 ACTIVATION=0"
for family in norm_backward norm_backward_sums; do
    strict $family CL1.2 spir64 -all X_DTYPE=f8e5m2 X_SCALE_DTYPE=bf16 VEC=16 LANES=1 ELEMENT_ALIGNED=1
    for scaling in SCALING_TENSOR SCALING_ROW SCALING_GROUP; do
        strict $family CL1.2 spir64 -all X_SCALING=$scaling NORM=LAYER_NORM GATE=GATE_SILU Z_DTYPE=bf16 DZ_DTYPE=f32 DROPOUT=1 \
            RESIDUAL_DTYPE=f32
        strict $family CL1.2 nvptx64 -all X_SCALING=$scaling GATE=GATE_SILU GATE_FIRST=1 Z_DTYPE=f32 DZ_DTYPE=f32 \
            KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE \
            PREFETCH=PREFETCH_NEXT
    done
    strict $family CL1.2 nvptx64 -all KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS ISA=ISA_PTX FP8_ISA=ISA_PTX \
        REDUCE=REDUCE_SHUFFLE
    for form in ROPE_NEOX ROPE_INTERLEAVED; do
        for vec in 1 2 16; do
            rope="ROPE=$form ROPE_DIMS=64 ROPE_REPEAT=3 ROPE_COS_DTYPE=f32 ROPE_SIN_DTYPE=bf16 VEC=$vec"
            # shellcheck disable=SC2086 # a list of words
            strict $family CL1.2 spir64 -all $rope ROPE_POSITION=1 X_DTYPE=bf16 NORM=LAYER_NORM
            # shellcheck disable=SC2086
            strict $family CL1.2 spir64 -all $rope KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_COLUMNS DBIAS_DTYPE=f32
            # shellcheck disable=SC2086
            strict $family CL1.2 nvptx64 -all $rope KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE PIPELINE=2 FP8_ISA=ISA_PTX
        done
    done
    for accumulator in ACCUMULATOR_MEMORY ACCUMULATOR_COLUMNS; do
        strict $family CL1.2 spir64 -all,+cl_khr_fp64 ACCUMULATOR=$accumulator KEEP=KEEP_REGISTERS X_DTYPE=f32 DY_DTYPE=f32 \
            WEIGHT_DTYPE=f64 DWEIGHT_DTYPE=f64 DBIAS_DTYPE=f32 ACCUMULATE=1
        strict $family CL1.2 nvptx64 -all,+cl_khr_fp64 ACCUMULATOR=$accumulator KEEP=KEEP_REGISTERS X_DTYPE=f32 DY_DTYPE=f32 \
            WEIGHT_DTYPE=f64 DWEIGHT_DTYPE=f64 DBIAS_DTYPE=f32 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX ROPE=ROPE_NEOX ROPE_DIMS=64 \
            ROPE_REPEAT=1 ROPE_COS_DTYPE=f32 ROPE_SIN_DTYPE=f32
    done
    for run_length in 1 3; do
        strict $family CL1.2 spir64 -all RUN_LENGTH=$run_length
        strict $family CL1.2 spir64 -all RUN_LENGTH=$run_length KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS SEGMENTS=2 \
            PREFETCH=PREFETCH_NEXT
    done
    for pipeline in 1 2 3; do
        strict $family CL1.2 nvptx64 -all NORM=LAYER_NORM X_DTYPE=bf16 X_GROUP=0 BIAS_DTYPE=bf16 DBIAS_DTYPE=f32 KEEP=KEEP_REGISTERS \
            ACCUMULATOR=ACCUMULATOR_SPLIT ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE TILE=512 ROW_SPLIT=ROW_SPLIT_EXCHANGE PIPELINE=$pipeline LOCKED=1 RUN_LENGTH=1 \
            PREFETCH=PREFETCH_NEXT
    done
    for split in ROW_SPLIT_EXCHANGE ROW_SPLIT_NO_WAIT; do
        strict $family CL1.2 spir64 -all NORM=RMS_NORM X_DTYPE=f16 KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS \
            TILE=256 ROW_SPLIT=$split PIPELINE=2
    done
    outer="ROW_T=uint OUTER_x=1 OUTER_dy=2 OUTER_dx=2 OUTER_z=1 OUTER_residual=1 OUTER_dresidual_out=1 OUTER_dresidual=2"
    strided="$outer OUTER_dz=1 DZ_DTYPE=f32 X_DTYPE=f16 X_GROUP=0 Z_DTYPE=f32 GATE=GATE_SILU RESIDUAL_DTYPE=f32 DRESIDUAL_OUT_DTYPE=f32 DRESIDUAL_DTYPE=f32"
    strict $family CL1.2 spir64 -all $strided
    strict $family CL1.2 spir64 -all $strided KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_COLUMNS
    strict $family CL1.2 nvptx64 -all $strided KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE \
        PREFETCH=PREFETCH_NEXT PIPELINE=3
    for keep in KEEP_REGISTERS KEEP_REREAD; do
        for accumulator in ACCUMULATOR_REGISTERS ACCUMULATOR_LOCAL ACCUMULATOR_MEMORY ACCUMULATOR_SPLIT; do
            fused="NORM=LAYER_NORM KEEP=$keep ACCUMULATOR=$accumulator X_DTYPE=f16 X_GROUP=0 Z_DTYPE=none DBIAS_DTYPE=f32"
            later $family $fused LOCKED=1 VEC=1 DROPOUT=1
            later $family $fused LOCKED=1 VEC=2 RESIDUAL_DTYPE=bf16 DRESIDUAL_DTYPE=bf16 WEIGHTS=WEIGHTS_EARLY
            later $family $fused REDUCE=REDUCE_SUBGROUP Y_DTYPE=f16 ACTIVATION=ACTIVATION_SILU
        done
        later $family KEEP=$keep ACCUMULATOR=ACCUMULATOR_REGISTERS LOCKED=1 SEGMENTS=2 PIPELINE=2 GATE=GATE_SILU Z_DTYPE=f32 \
            DZ_DTYPE=f32 X_DTYPE=bf16 X_GROUP=0
    done
    later $family KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_COLUMNS REDUCE=REDUCE_SUBGROUP DBIAS_DTYPE=f32
    for sum in none f32 f16 bf16; do
        columns="X_DTYPE=bf16 X_GROUP=0 ACCUMULATOR=ACCUMULATOR_COLUMNS DWEIGHT_DTYPE=$sum DBIAS_DTYPE=f32 ACCUMULATE=1"
        strict $family CL1.2 spir64 -all $columns GROUPS=3 LANES=8 SEGMENTS=2 KEEP=KEEP_REGISTERS
        strict $family CL1.2 nvptx64 -all $columns KEEP=KEEP_REGISTERS ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE GATE=GATE_SILU \
            Z_DTYPE=bf16 DZ_DTYPE=bf16
    done
    strict $family CL1.2 spir64 -all $columns GROUPS=65536 GROUP_SIZE=65536 TILE=64 VEC=1 HAS_SUMS=1
    for keep in KEEP_REGISTERS KEEP_REREAD; do
        strict $family CL1.2 spir64 -all HAS_SUMS=1 KEEP=$keep ACCUMULATOR=ACCUMULATOR_REGISTERS PIPELINE=1
        strict $family CL1.2 spir64 -all HAS_SUMS=1 NORM=LAYER_NORM READS_MEAN=1 TILE=256 KEEP=$keep ACCUMULATOR=ACCUMULATOR_LOCAL
    done
    strict $family CL1.2 spir64 -all HAS_SUMS=1 NORM=LAYER_NORM READS_MEAN=1
    for accumulator in ACCUMULATOR_REGISTERS ACCUMULATOR_MEMORY; do
        map="WEIGHT_MAP=1 X_DTYPE=bf16 X_GROUP=0 BIAS_DTYPE=f32 DBIAS_DTYPE=f32 ACCUMULATOR=$accumulator"
        strict $family CL1.2 spir64 -all $map NORM=LAYER_NORM SEGMENTS=1 LANES=1 VEC=8 Y_DTYPE=f16
        strict $family CL1.2 nvptx64 -all $map LOCKED=1 PREFETCH=PREFETCH_NEXT RUN_LENGTH=1 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    done
    for norm in LAYER_NORM RMS_NORM; do
        from_y="NORM=$norm Y_GIVEN=1"
        strict $family CL1.2 spir64 -all $from_y X_DTYPE=bf16 VEC=1 BIAS_DTYPE=f32
        strict $family CL1.2 spir64 -all $from_y X_DTYPE=f16 BIAS_DTYPE=f32 VEC=16 LANES=1 WEIGHT_OFFSET=1 ELEMENT_ALIGNED=1
        strict $family CL1.2 spir64 -all,+cl_khr_fp64 $from_y X_DTYPE=f64 DY_DTYPE=f64 WEIGHT_DTYPE=none BIAS_DTYPE=f64 \
            DX_DTYPE=none DWEIGHT_DTYPE=f64
        strict $family CL1.2 nvptx64 -all $from_y X_DTYPE=bf16 BIAS_DTYPE=f32 KEEP=KEEP_REGISTERS ACCUMULATOR=ACCUMULATOR_REGISTERS \
            ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    done
done
for sums in 0 1; do
    strict norm_slices_backward CL1.2 spir64 -all X_DTYPE=bf16 VEC=1 HAS_SUMS=$sums READS_MEAN=$sums CHUNKS=3
    strict norm_slices_backward CL1.2 spir64 -all,+cl_khr_fp64 NORM=LAYER_NORM X_DTYPE=f64 VEC=1 HAS_SUMS=$sums READS_MEAN=1
done
for vec in 1 4 16; do
    sums="VEC=$vec DWEIGHT_DTYPE=bf16 DBIAS_DTYPE=f16 ACCUMULATE=1"
    strict norm_backward_reduce CL1.2 spir64 -all $sums X_DTYPE=f32 LANES=8 SEGMENTS=32
    strict norm_backward_reduce CL1.2 spir64 -all $sums X_DTYPE=f32 WEIGHT_MAP=1 LANES=64 SEGMENTS=1
    strict norm_backward_reduce CL1.2 nvptx64 -all $sums X_DTYPE=f32 ISA=ISA_PTX GROUP_SIZE=4097
    strict norm_backward_reduce CL1.2 spir64 -all,+cl_khr_fp64 VEC=$vec X_DTYPE=f64 DWEIGHT_DTYPE=f64 LANES=1 ELEMENT_ALIGNED=1
    strict norm_backward_reduce CL1.2 spir64 -all,+cl_khr_fp64 VEC=$vec X_DTYPE=f32 DWEIGHT_DTYPE=f64 DBIAS_DTYPE=bf16 ACCUMULATE=1
    strict norm_backward_reduce CL1.2 spir64 -all,+cl_khr_fp64 VEC=$vec X_DTYPE=f64 DWEIGHT_DTYPE=f32 DBIAS_DTYPE=f64 ACCUMULATE=1
done
for weight in none f32 bf16; do
    strict norm_backward_check CL1.2 spir64 -all X_DTYPE=f32 WEIGHT_DTYPE=$weight BIAS_DTYPE=f16 VEC=1
done
strict norm_backward_check CL1.2 spir64 -all,+cl_khr_fp64 X_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=none VEC=1

for source in "$kernels"/*/*.cl; do
    family=$(basename "$source" .cl)
    case $built in
    *" $family "*) ;;
    *)
        echo "$source: no build of it here"
        failures=$((failures + 1))
        ;;
    esac
done
echo "$builds builds, $failures of them with complaints"
[ "$failures" -eq 0 ]
