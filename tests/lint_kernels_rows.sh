# shellcheck shell=sh disable=SC2034,SC2086,SC2154 # variables of lint_kernels.sh; lists of words
# Strict builds of GELU, softmax, quantisation and RMS norm by tiles. Read by lint_kernels.sh.

defaults=$forward

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
for family in softmax softmax_backward; do
    for keep in KEEP_REGISTERS KEEP_REREAD; do
        strict $family CL1.2 spir64 -all LEADS=1 GROUP_SIZE=1001 VEC=4 KEEP=$keep DY_DTYPE=f32 DX_DTYPE=f32
        strict $family CL1.2 nvptx64 -all LEADS=1 GROUP_SIZE=1001 VEC=8 KEEP=$keep DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    done
done
for family in softmax softmax_backward; do
    for leads in 0 1; do
        strict $family CL1.2 spir64 -all LEADS=$leads GROUP_SIZE=2147483647 VEC=8 KEEP=KEEP_REREAD DY_DTYPE=f32 DX_DTYPE=f32
    done
done
for family in softmax_chunks softmax_backward_chunks; do
    chunks="KEEP=KEEP_REREAD SEGMENTS=1 CHUNKS=7 UNROLL=4"
    strict $family CL1.2 spir64 -all $chunks VEC=1 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=f32
    strict $family CL1.2 spir64 -all $chunks VEC=16 LANES=1 ELEMENT_ALIGNED=1 DY_DTYPE=f32 DX_DTYPE=f32
    strict $family CL1.2 spir64 -all,+cl_khr_fp64 $chunks X_DTYPE=f64 Y_DTYPE=f64 DY_DTYPE=f64 DX_DTYPE=f64
    strict $family CL1.2 nvptx64 -all $chunks VEC=8 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 \
        REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
    strict $family CL1.2 nvptx64 -all $chunks LEADS=1 GROUP_SIZE=1001 VEC=8 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX
done
for family in softmax_exchange softmax_backward_exchange; do
    for row_split in ROW_SPLIT_EXCHANGE ROW_SPLIT_NO_WAIT; do
        exchange="ROW_SPLIT=$row_split KEEP=KEEP_REGISTERS SEGMENTS=1 CHUNKS=7"
        strict $family CL1.2 spir64 -all $exchange VEC=1 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=f16 DX_DTYPE=f32
        strict $family CL1.2 spir64 -all $exchange VEC=16 LANES=1 ELEMENT_ALIGNED=1 DY_DTYPE=f32 DX_DTYPE=f32
        strict $family CL1.2 nvptx64 -all $exchange VEC=8 X_DTYPE=bf16 Y_DTYPE=bf16 DY_DTYPE=bf16 DX_DTYPE=bf16 \
            REDUCE=REDUCE_SHUFFLE ISA=ISA_PTX
        strict $family CL1.2 nvptx64 -all $exchange LEADS=1 GROUP_SIZE=1001 VEC=8 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX \
            MOST_REGISTERS=168
        strict $family CL1.2 nvptx64 -all $exchange VEC=8 LANES=256 DY_DTYPE=bf16 DX_DTYPE=bf16 ISA=ISA_PTX MOST_REGISTERS=128
        later $family $exchange REDUCE=REDUCE_SUBGROUP DY_DTYPE=f32 DX_DTYPE=f32
    done
done

defaults="X_DTYPE=f32 Q_DTYPE=f8e4m3 SCALE_DTYPE=f32 SCALING=3 GROUP_SIZE=32 GROUPS=4 AMAX=1 WRITE_Q=1 TRANSPOSED=1
    STOCHASTIC=0 TILE_ROWS=64 TILE_COLS=64 ROW_VEC=4 VEC=4 LANES=64 SEGMENTS=1 REDUCE=REDUCE_TREE STORES=1
    ISA=1 FP8_ISA=1 ELEMENT_ALIGNED=0 X_SCALE_DTYPE=f32 WEIGHT_DTYPE=f32 COMPATIBLE=0 ROWS=2"
for family in quantize_segments quantize_tile quantize_largest dequantize; do
    for vec in 1 2 4 8 16; do
        strict $family CL1.2 spir64 -all VEC=$vec X_DTYPE=bf16 ROW_VEC=$vec
        strict $family CL1.2 nvptx64 -all VEC=$vec Q_DTYPE=f8e5m2 ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    done
    later $family REDUCE=REDUCE_SUBGROUP X_DTYPE=bf16 VEC=2 ROW_VEC=2
    strict $family CL1.2 spir64 -all SCALING=1 STOCHASTIC=1 X_DTYPE=f16 LANES=1 VEC=16 ELEMENT_ALIGNED=1
    strict $family CL1.2 spir64 -all SCALING=2 SCALE_DTYPE=bf16 TRANSPOSED=0 AMAX=0 LANES=1
    strict $family CL1.2 spir64 -all SCALING=1 SCALE_DTYPE=bf16
    for leads in 0 1; do
        tails="TAILS=1 LEADS=$leads TRANSPOSED=0"
        strict $family CL1.2 spir64 -all $tails SCALING=2 X_DTYPE=f16 VEC=8
        strict $family CL1.2 spir64 -all $tails SCALING=1 STOCHASTIC=1 LANES=1 VEC=16 ELEMENT_ALIGNED=1
        strict $family CL1.2 nvptx64 -all $tails SCALING=2 X_DTYPE=bf16 VEC=8 ISA=ISA_PTX FP8_ISA=ISA_PTX \
            REDUCE=REDUCE_SHUFFLE
    done
    for vec in 4 8 16; do
        windows="LEADS=1 TAILS=1 TRANSPOSED=0 VEC=$vec LANES=8 SEGMENTS=8 GROUP_SIZE=$((8 * vec))"
        strict $family CL1.2 spir64 -all $windows X_DTYPE=f16
        strict $family CL1.2 spir64 -all $windows WRITE_Q=0
        strict $family CL1.2 nvptx64 -all $windows X_DTYPE=bf16 ISA=ISA_PTX FP8_ISA=ISA_PTX REDUCE=REDUCE_SHUFFLE
    done
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
