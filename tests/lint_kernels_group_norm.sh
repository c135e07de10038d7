# shellcheck shell=sh disable=SC2034,SC2086,SC2154 # variables of lint_kernels.sh; lists of words
# Strict builds of group norm, forward and backward. Read by lint_kernels.sh.

defaults=$forward

for layout in LAYOUT_FIRST LAYOUT_LAST; do
    group="LAYOUT=$layout CHANNELS=12 SPATIAL=1000 GROUPS=4 GROUP_SIZE=3000"
    for vec in 1 4 16; do
        for family in group_norm group_norm_parts group_norm_reduce; do
            [ "$family $layout" = "group_norm LAYOUT_LAST" ] && continue
            strict $family CL1.2 spir64 -all $group VEC=$vec X_DTYPE=bf16 Y_DTYPE=f16 CHUNKS=7 RESIDUAL_DTYPE=f32 \
                RESIDUAL_OUT_DTYPE=f16 ACTIVATION=ACTIVATION_SILU
            strict $family CL1.2 spir64 -all $group VEC=$vec LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none
            strict $family CL1.2 spir64 -all,+cl_khr_fp64 $group VEC=$vec X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 \
                BIAS_DTYPE=f64 SAVE_MEAN=0
            strict $family CL1.2 nvptx64 -all $group VEC=$vec X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
            later $family $group VEC=$vec REDUCE=REDUCE_SUBGROUP SEGMENTS=1 X_DTYPE=f16 CHUNKS=3
            codes="Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16 RESIDUAL_DTYPE=bf16"
            strict $family CL1.2 spir64 -all $group VEC=$vec $codes X_DTYPE=f8e5m2 X_SCALING=SCALING_ROW X_SCALE_DTYPE=f32
            strict $family CL1.2 spir64 -all $group VEC=$vec $codes MEASURES=1 CHUNKS=7
            strict $family CL1.2 nvptx64 -all $group VEC=$vec $codes MEASURES=1 ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
            strict $family CL1.2 spir64 -all $group VEC=$vec LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 Y_DTYPE=f8e5m2 SCALING=1
        done
        [ "$layout" = LAYOUT_LAST ] || for measures in 0 1; do
            strict group_norm_parts CL1.2 spir64 -all $group VEC=$vec MERGES=1 CHUNKS=7 Y_DTYPE=f8e4m3 SCALING=SCALING_ROW \
                SCALE_DTYPE=bf16 MEASURES=$measures RESIDUAL_DTYPE=bf16
            strict group_norm_parts CL1.2 nvptx64 -all $group VEC=$vec MERGES=1 X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=$measures
        done
        [ "$layout" = LAYOUT_LAST ] || for row_split in ROW_SPLIT_EXCHANGE ROW_SPLIT_NO_WAIT; do
            exchange="$group VEC=$vec MERGES=1 ROW_SPLIT=$row_split CHUNKS=7"
            strict group_norm_exchange CL1.2 spir64 -all $exchange Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16 \
                RESIDUAL_DTYPE=bf16 RESIDUAL_OUT_DTYPE=f16
            strict group_norm_exchange CL1.2 spir64 -all $exchange ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none X_DTYPE=f16
            strict group_norm_exchange CL1.2 nvptx64 -all $exchange X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=0 ACTIVATION=ACTIVATION_SILU
            later group_norm_exchange $exchange REDUCE=REDUCE_SUBGROUP SEGMENTS=1 X_DTYPE=f16
            pieces="$group VEC=$vec ROW_SPLIT=$row_split CHUNKS=7 SEGMENTS=1 LANES=64"
            strict group_norm_pieces CL1.2 spir64 -all $pieces X_DTYPE=bf16 Y_DTYPE=f8e4m3 SCALING=SCALING_ROW \
                RESIDUAL_DTYPE=f32 RESIDUAL_OUT_DTYPE=f16 WEIGHT_DTYPE=none
            strict group_norm_pieces CL1.2 spir64 -all $pieces ELEMENT_ALIGNED=1 X_DTYPE=f16 Y_DTYPE=f32
            strict group_norm_pieces CL1.2 nvptx64 -all $pieces X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                MOST_REGISTERS=128 REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=0 ACTIVATION=ACTIVATION_SILU
            later group_norm_pieces $pieces REDUCE=REDUCE_SUBGROUP X_DTYPE=f16 Y_DTYPE=f16
            pieces="LAYOUT=$layout CHANNELS=24 SPATIAL=48 GROUPS=4 GROUP_SIZE=288 VEC=$vec LANES=16 CHANNEL_LANES=4 SEGMENTS=1"
            pieces="$pieces ROW_SPLIT=$row_split CHUNKS=1 PIECE_CHANNELS=3"
            family=group_norm_backward_pieces
            strict $family CL1.2 spir64 -all $pieces X_DTYPE=f8e4m3 X_SCALING=SCALING_ROW X_SCALE_DTYPE=bf16 DY_DTYPE=f16 \
                DX_DTYPE=bf16 DRESIDUAL_OUT_DTYPE=f32 DRESIDUAL_DTYPE=f16 DWEIGHT_DTYPE=f32 ACTIVATION=ACTIVATION_GELU HAS_SUMS=1
            strict $family CL1.2 spir64 -all $pieces ELEMENT_ALIGNED=1 DY_DTYPE=f32 DX_DTYPE=f32 WEIGHT_DTYPE=none \
                BIAS_DTYPE=none HAS_SUMS=0 ACTIVATION=ACTIVATION_SILU
            strict $family CL1.2 nvptx64 -all $pieces X_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 DWEIGHT_DTYPE=bf16 ISA=ISA_PTX \
                MOST_REGISTERS=128 REDUCE=REDUCE_SHUFFLE HAS_SUMS=1
            pieces="${pieces% CHUNKS=*} CHUNKS=2 PIECE_CHANNELS=1"
            strict $family CL1.2 spir64 -all $pieces DY_DTYPE=bf16 DX_DTYPE=f32 DRESIDUAL_OUT_DTYPE=bf16 DWEIGHT_DTYPE=f32 \
                HAS_SUMS=1 ACTIVATION=ACTIVATION_SILU
            family=group_norm_backward_exchange
            strict $family CL1.2 spir64 -all $exchange X_DTYPE=f8e4m3 X_SCALING=SCALING_ROW X_SCALE_DTYPE=bf16 DY_DTYPE=f16 \
                DX_DTYPE=bf16 DRESIDUAL_OUT_DTYPE=f32 DRESIDUAL_DTYPE=f16 DWEIGHT_DTYPE=f32 ACTIVATION=ACTIVATION_GELU
            strict $family CL1.2 spir64 -all $exchange ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none DY_DTYPE=f32 DX_DTYPE=f32
            strict $family CL1.2 nvptx64 -all $exchange X_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE
            later $family $exchange REDUCE=REDUCE_SUBGROUP SEGMENTS=1 DY_DTYPE=f32 DX_DTYPE=f16
            strict group_norm_reduce CL1.2 spir64 -all $exchange DY_DTYPE=f32 DX_DTYPE=f32 DWEIGHT_DTYPE=f32
        done
        [ "$layout" = LAYOUT_FIRST ] || for merges in 0 1; do
            for family in group_norm_parts group_norm_reduce; do
                strict $family CL1.2 spir64 -all $group VEC=$vec MERGES=$merges CHUNKS=7 LANES=2 BLOCK=$((2 * vec)) \
                    Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16 RESIDUAL_DTYPE=bf16
                strict $family CL1.2 spir64 -all,+cl_khr_fp64 $group VEC=$vec MERGES=$merges LANES=64 BLOCK=$((64 * vec)) \
                    X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64 SAVE_MEAN=0
                strict $family CL1.2 nvptx64 -all $group VEC=$vec MERGES=$merges LANES=8 BLOCK=$((8 * vec)) X_DTYPE=bf16 \
                    Y_DTYPE=bf16 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=0 CHUNKS=4
            done
        done
        [ "$layout" = LAYOUT_FIRST ] || for positions in 5 16; do # a row of few channels
            rows="LAYOUT=$layout SPATIAL=400 GROUPS=3 ROW_POSITIONS=$positions VEC=$vec"
            few="$rows CHANNELS=3 GROUP_SIZE=400"
            sums="X_DTYPE=f16 DY_DTYPE=f16 DX_DTYPE=f16 DWEIGHT_DTYPE=f32 DBIAS_DTYPE=f32"
            for family in group_norm_parts group_norm_reduce; do
                strict $family CL1.2 spir64 -all $few LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 CHUNKS=7 X_DTYPE=bf16
                strict $family CL1.2 nvptx64 -all $few LANES=8 SEGMENTS=16 BLOCK=$((8 * vec)) ISA=ISA_PTX \
                    REDUCE=REDUCE_SHUFFLE X_DTYPE=bf16 Y_DTYPE=bf16 CHUNKS=4 WEIGHT_DTYPE=bf16
                strict $family CL1.2 spir64 -all,+cl_khr_fp64 $rows CHANNELS=6 GROUP_SIZE=800 LANES=1 SEGMENTS=1 X_DTYPE=f64 \
                    Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64 CHUNKS=3
                strict $family CL1.2 spir64 -all $few MEASURES=1 LANES=8 SEGMENTS=4 BLOCK=$((8 * vec)) CHUNKS=3 \
                    Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16
            done
            for family in group_norm_backward_parts group_norm_reduce; do
                strict $family CL1.2 spir64 -all $few $sums LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 CHUNKS=7
                strict $family CL1.2 nvptx64 -all $few $sums LANES=8 SEGMENTS=16 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE CHUNKS=4
            done
        done
        [ "$layout" = LAYOUT_FIRST ] || for span in 2 4; do
            slice="LAYOUT=$layout CHANNELS=64 SPATIAL=50 GROUPS=4 GROUP_SIZE=800 SPAN=$span LANES=64"
            strict group_norm_last CL1.2 spir64 -all $slice VEC=$vec X_DTYPE=bf16 Y_DTYPE=f16 RESIDUAL_DTYPE=f32 \
                RESIDUAL_OUT_DTYPE=f16 ACTIVATION=ACTIVATION_SILU
            strict group_norm_last CL1.2 nvptx64 -all $slice VEC=$vec X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=0
            strict group_norm_last CL1.2 spir64 -all,+cl_khr_fp64 $slice VEC=$vec X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 \
                BIAS_DTYPE=f64 SAVE_MEAN=0
            strict group_norm_last CL1.2 spir64 -all $slice VEC=$vec Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=bf16 \
                MEASURES=1 ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none
            later group_norm_last $slice VEC=$vec REDUCE=REDUCE_SUBGROUP SEGMENTS=1 X_DTYPE=f8e5m2 \
                X_SCALING=SCALING_ROW X_SCALE_DTYPE=f32
            for row_split in ROW_SPLIT_EXCHANGE ROW_SPLIT_NO_WAIT; do
                pieces="$slice VEC=$vec ROW_SPLIT=$row_split SEGMENTS=1 CHUNKS=7"
                strict group_norm_last_exchange CL1.2 spir64 -all $pieces X_DTYPE=bf16 Y_DTYPE=f8e4m3 SCALING=SCALING_ROW \
                    RESIDUAL_DTYPE=f32 RESIDUAL_OUT_DTYPE=f16 WEIGHT_DTYPE=none
                strict group_norm_last_exchange CL1.2 spir64 -all $pieces ELEMENT_ALIGNED=1 X_DTYPE=f16
                strict group_norm_last_exchange CL1.2 nvptx64 -all $pieces X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX \
                    MOST_REGISTERS=128 REDUCE=REDUCE_SHUFFLE SAVE_MEAN=0 SAVE_RSTD=0 ACTIVATION=ACTIVATION_SILU
                later group_norm_last_exchange $pieces REDUCE=REDUCE_SUBGROUP X_DTYPE=f16
                strict group_norm_last_backward_exchange CL1.2 spir64 -all $pieces $sums DRESIDUAL_OUT_DTYPE=f32 \
                    DRESIDUAL_DTYPE=f16 ACTIVATION=ACTIVATION_GELU
                strict group_norm_last_backward_exchange CL1.2 spir64 -all $pieces ELEMENT_ALIGNED=1 DY_DTYPE=f32 \
                    DX_DTYPE=f32 WEIGHT_DTYPE=none BIAS_DTYPE=none HAS_SUMS=0 ACTIVATION=ACTIVATION_SILU
                strict group_norm_last_backward_exchange CL1.2 nvptx64 -all $pieces X_DTYPE=bf16 DY_DTYPE=bf16 \
                    DX_DTYPE=bf16 DWEIGHT_DTYPE=bf16 ISA=ISA_PTX MOST_REGISTERS=128 REDUCE=REDUCE_SHUFFLE \
                    ACTIVATION=ACTIVATION_SILU
                later group_norm_last_backward_exchange $pieces $sums REDUCE=REDUCE_SUBGROUP
            done
        done
        if [ "$layout" = LAYOUT_FIRST ]; then
            held_family=group_norm_backward_held
            held="LAYOUT=$layout CHANNELS=20 SPATIAL=48 GROUPS=4 GROUP_SIZE=240 LANES=64 CHANNEL_LANES=16 PIECE_CHANNELS=5"
        else
            held_family=group_norm_last_backward
            held="LAYOUT=$layout CHANNELS=64 SPATIAL=50 GROUPS=4 GROUP_SIZE=800 SPAN=2 LANES=64"
        fi
        for activation in 0 ACTIVATION_SILU; do
            strict $held_family CL1.2 spir64 -all $held VEC=$vec X_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=bf16 DWEIGHT_DTYPE=f32 \
                ACTIVATION=$activation
            strict $held_family CL1.2 spir64 -all,+cl_khr_fp64 $held VEC=$vec X_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64 \
                WEIGHT_DTYPE=none BIAS_DTYPE=none HAS_SUMS=0 ACTIVATION=$activation
            strict $held_family CL1.2 nvptx64 -all $held VEC=$vec X_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE DBIAS_DTYPE=f32 ACTIVATION=$activation
            strict $held_family CL1.2 spir64 -all $held VEC=$vec X_DTYPE=f8e4m3 X_SCALING=SCALING_ROW X_SCALE_DTYPE=bf16 \
                DY_DTYPE=f16 DX_DTYPE=bf16 DRESIDUAL_OUT_DTYPE=f32 DRESIDUAL_DTYPE=f16 ACTIVATION=$activation
        done
        later $held_family $held VEC=$vec REDUCE=REDUCE_SUBGROUP SEGMENTS=1 DY_DTYPE=f32 DX_DTYPE=f16
        for family in group_norm_parts group_norm_reduce group_norm_backward_parts; do
            strict $family CL1.2 spir64 -all LAYOUT=$layout CHANNELS=65536 SPATIAL=4294967296 GROUPS=4 \
                GROUP_SIZE=70368744177664 CHUNKS=65536 VEC=$vec DY_DTYPE=f32 DX_DTYPE=f32 DWEIGHT_DTYPE=f32
        done
        for family in group_norm_backward group_norm_backward_parts group_norm_reduce; do
            [ "$family $layout" = "group_norm_backward LAYOUT_LAST" ] && continue
            for activation in 0 ACTIVATION_GELU; do
                strict $family CL1.2 spir64 -all $group VEC=$vec X_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=bf16 CHUNKS=7 \
                    ACTIVATION=$activation DWEIGHT_DTYPE=f32 DBIAS_DTYPE=bf16
                strict $family CL1.2 spir64 -all $group VEC=$vec LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 DY_DTYPE=f32 \
                    DX_DTYPE=f32 ACTIVATION=$activation WEIGHT_DTYPE=none BIAS_DTYPE=none HAS_SUMS=0
                strict $family CL1.2 spir64 -all,+cl_khr_fp64 $group VEC=$vec X_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64 \
                    WEIGHT_DTYPE=f64 BIAS_DTYPE=f64 ACTIVATION=$activation DWEIGHT_DTYPE=f64
            done
            strict $family CL1.2 nvptx64 -all $group VEC=$vec X_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX \
                REDUCE=REDUCE_SHUFFLE DWEIGHT_DTYPE=f32
            later $family $group VEC=$vec REDUCE=REDUCE_SUBGROUP SEGMENTS=1 DY_DTYPE=f32 DX_DTYPE=f16 CHUNKS=3
            strict $family CL1.2 spir64 -all $group VEC=$vec X_DTYPE=f8e4m3 X_SCALING=SCALING_ROW X_SCALE_DTYPE=bf16 \
                DY_DTYPE=f16 DX_DTYPE=bf16 DRESIDUAL_OUT_DTYPE=f32 DRESIDUAL_DTYPE=f16 ACCUMULATE=1 DWEIGHT_DTYPE=f32
        done
    done
done
