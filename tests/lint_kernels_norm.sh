# shellcheck shell=sh disable=SC2034,SC2086,SC2154 # variables of lint_kernels.sh; lists of words
# Strict builds of the forward norms. Read by lint_kernels.sh.

defaults=$forward

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
for vec in 2 4 8 16; do
    for keep in KEEP_REGISTERS KEEP_REREAD; do
        leads="LEADS=1 GROUP_SIZE=1001 VEC=$vec KEEP=$keep"
        portable $leads X_DTYPE=bf16 Y_DTYPE=bf16
        strict norm_forward CL1.2 spir64 -all $leads LANES=1 SEGMENTS=1 POCL_DEVICE_ADDRESS_BITS=64 RESIDUAL_DTYPE=f32 \
            RESIDUAL_OUT_DTYPE=f32
        portable $leads NORM=RMS_NORM SAVE_MEAN=0 X_DTYPE=f16 RESIDUAL_DTYPE=f32 RESIDUAL_OUT_DTYPE=f32 GATE=GATE_SILU Z_DTYPE=f16
        strict norm_forward CL1.2 nvptx64 -all $leads X_DTYPE=bf16 Y_DTYPE=bf16 WEIGHT_DTYPE=bf16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
        strict norm_forward CL1.2 nvptx64 -all $leads REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
        portable $leads Y_DTYPE=f8e4m3 SCALING=SCALING_ROW SCALE_DTYPE=f32 Y_SCALES=1 GROUPS=1
    done
done
for floored in 0 1; do
    length="NORM=L2_NORM FLOORED=$floored SAVE_MEAN=0 BIAS_DTYPE=none"
    portable $length X_DTYPE=bf16 Y_DTYPE=f16
    portable $length KEEP=KEEP_REREAD LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 WEIGHT_DTYPE=none
    strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 $length X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64
    strict norm_forward CL1.2 nvptx64 -all $length VEC=8 X_DTYPE=bf16 Y_DTYPE=bf16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
    strict norm_forward_chunks CL1.2 spir64 -all $length KEEP=KEEP_REREAD SEGMENTS=1 CHUNKS=7 UNROLL=4
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
        strict norm_slices CL1.2 nvptx64 -all $slices LEADS=1 GROUP_SIZE=1001 X_DTYPE=bf16 VEC=8 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
        later norm_slices $slices REDUCE=REDUCE_SUBGROUP X_DTYPE=f16 VEC=8
    done
    for size in 63 2147483647; do
        strict norm_slices CL1.2 spir64 -all NORM=$norm KEEP=KEEP_REREAD SEGMENTS=4 UNROLL=2 VEC=2 GROUP_SIZE=$size
    done
    strict norm_forward_chunks CL1.2 spir64 -all $chunks VEC=1 X_DTYPE=bf16 DROPOUT=1 SAVE_MASK=1 RESIDUAL_DTYPE=f32
    strict norm_forward_chunks CL1.2 spir64 -all $chunks VEC=16 LANES=1 ELEMENT_ALIGNED=1 GATE=GATE_SILU Z_DTYPE=f16
    strict norm_forward_chunks CL1.2 spir64 -all,+cl_khr_fp64 $chunks X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f64 BIAS_DTYPE=f64
    strict norm_forward_chunks CL1.2 nvptx64 -all $chunks X_DTYPE=bf16 VEC=8 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
    strict norm_forward_chunks CL1.2 spir64 -all $chunks LEADS=1 GROUP_SIZE=1001 VEC=4 LANES=1
    strict norm_forward_chunks CL1.2 nvptx64 -all $chunks LEADS=1 GROUP_SIZE=1001 VEC=8 X_DTYPE=bf16 ISA=ISA_PTX
done
for keep in KEEP_REGISTERS KEEP_REREAD; do
    whole="SEGMENTS=1 GROUPS=1 KEEP=$keep"
    portable $whole GATE=GATE_SILU Z_DTYPE=f32
    strict norm_forward CL1.2 nvptx64 -all $whole GATE=GATE_SILU Z_DTYPE=f32 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
    strict norm_forward CL1.2 nvptx64 -all $whole RESIDUAL_DTYPE=bf16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done
for keep in KEEP_REGISTERS KEEP_REREAD; do
    portable WEIGHT_MAP=1 KEEP=$keep X_DTYPE=bf16 VEC=8
    strict norm_forward CL1.2 nvptx64 -all WEIGHT_MAP=1 KEEP=$keep REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX WEIGHTS=WEIGHTS_EARLY
done
for form in ROPE_NEOX ROPE_INTERLEAVED; do
    for vec in 1 2 8 16; do
        rope="ROPE=$form GROUP_SIZE=72 ROPE_DIMS=64 ROPE_REPEAT=3 VEC=$vec"
        tables="ROPE_COS_DTYPE=f32 ROPE_SIN_DTYPE=bf16"
        portable $rope $tables LANES=2 X_DTYPE=bf16 ROPE_POSITION=1 BIAS_DTYPE=none
        portable $rope $tables KEEP=KEEP_REREAD LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 NORM=RMS_NORM DROPOUT=1 SAVE_MASK=1
        portable $rope $tables KEEP=KEEP_REREAD LANES=2 UNROLL=4 Y_DTYPE=f8e4m3 SCALING=1 RESIDUAL_DTYPE=f32 RESIDUAL_OUT_DTYPE=f32
        strict norm_forward CL1.2 spir64 -all,+cl_khr_fp64 LANES=2 $rope ROPE_COS_DTYPE=f64 ROPE_SIN_DTYPE=f64 \
            X_DTYPE=f64 Y_DTYPE=f64 WEIGHT_DTYPE=f32 BIAS_DTYPE=f64
        strict norm_forward CL1.2 nvptx64 -all $rope $tables LANES=2 X_DTYPE=bf16 Y_DTYPE=bf16 SEGMENTS=16 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX \
            WEIGHTS=WEIGHTS_EARLY ROPE_POSITION=1
    done
done
portable RESIDUAL_DTYPE=f32 X_DTYPE=bf16 KEEP=KEEP_REREAD
for row in uint ulong; do # rows with outer dimensions
    outer="ROW_T=$row OUTER_x=1 OUTER_y=2 RESIDUAL_DTYPE=bf16 OUTER_residual=2"
    portable $outer
    portable $outer RESIDUAL_OUT_DTYPE=f32 OUTER_residual_out=1 KEEP=KEEP_REREAD GATE=GATE_SILU Z_DTYPE=f32 OUTER_z=1
    strict norm_forward CL1.2 nvptx64 -all $outer SEGMENTS=1 GROUPS=1 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
done
for size in 2147483647 4294967296; do
    portable GROUP_SIZE=$size KEEP=KEEP_REREAD VEC=8
    strict norm_forward CL1.2 nvptx64 -all LEADS=1 GROUP_SIZE=$size VEC=8 KEEP=KEEP_REREAD X_DTYPE=bf16 Y_DTYPE=bf16 ISA=ISA_PTX
done
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
        portable $quantised Y_DTYPE=f8e4m3 X_DTYPE=f16 GROUPS=1
        portable $quantised Y_DTYPE=f8e5m2 KEEP=KEEP_REREAD LANES=1 SEGMENTS=1 UNROLL=3 ELEMENT_ALIGNED=1 GROUPS=1
        strict norm_forward CL1.2 nvptx64 -all $quantised Y_DTYPE=f8e4m3 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX FP8_ISA=ISA_PTX \
            COMPATIBLE=1
    done
done
for vec in 1 2 4 16; do
    for scaling in SCALING_TENSOR SCALING_ROW SCALING_GROUP; do
        scaled="VEC=$vec X_SCALING=$scaling X_GROUP=32 GROUPS=1"
        portable $scaled X_DTYPE=f8e4m3 X_SCALE_DTYPE=f32 DROPOUT=1 GATE=GATE_SILU Z_DTYPE=bf16
        portable $scaled X_DTYPE=f8e5m2 X_SCALE_DTYPE=bf16 KEEP=3 SEGMENTS=1 LOCAL_VECTORS=2 RESIDUAL_DTYPE=f32
        strict norm_forward CL1.2 nvptx64 -all $scaled X_DTYPE=f8e4m3 X_SCALE_DTYPE=f32 SCALING=$scaling Y_GROUP=16 \
            SCALE_DTYPE=f32 Y_SCALES=1 Y_DTYPE=f8e4m3 REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX FP8_ISA=ISA_PTX
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
            portable $pass_of SAVE_Y_ROW_SCALE=1
            portable $pass_of LANES=1 SEGMENTS=1 ELEMENT_ALIGNED=1 X_DTYPE=f8e5m2 X_SCALE_DTYPE=f32 X_SCALING=SCALING_ROW
            strict norm_forward CL1.2 nvptx64 -all $pass_of REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX FP8_ISA=ISA_PTX
        done
        later norm_forward $pass_of REDUCE=REDUCE_SUBGROUP SEGMENTS=1 SAVE_Y_ROW_SCALE=1
    done
done
