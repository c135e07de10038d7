#!/bin/sh
# Compiles the device code with every warning an error. Portable kernels are built as OpenCL C 1.2 without extensions, so that
# they use nothing that a device may lack. Other kernels are built with the extensions that they need and no others. The
# builds are in lint_kernels_*.sh.
#
#   lint_kernels.sh CLANG KERNEL_DIR
set -eu
clang=$1
kernels=$2
tests=$(dirname "$0")
failures=0
builds=0
built=" "

# strict FAMILY STANDARD TARGET EXTENSIONS MACRO=VALUE …     $defaults has the values of the other macros
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

# Later languages, in which a pointer without an address space points to the generic one. later FAMILY MACRO=VALUE …
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

# Macros of the forward norms, and of the operations that share them.
forward="NORM=LAYER_NORM FLOORED=0 GROUP_SIZE=1000 GROUPS=2 X_DTYPE=f32 Y_DTYPE=f32 Z_DTYPE=none WEIGHT_DTYPE=f32 BIAS_DTYPE=f32
    GATE=0 GATE_FIRST=0 SAVE_MEAN=1 SAVE_RSTD=1 VEC=4 LANES=64 SEGMENTS=2 KEEP=KEEP_REGISTERS UNROLL=1
    REDUCE=REDUCE_TREE RESIDUAL_DTYPE=none RESIDUAL_OUT_DTYPE=none ROW_SCALE=0 DROPOUT=0 SAVE_MASK=0 ACTIVATION=0
    WEIGHT_OFFSET=0 WEIGHTS=1 LOOP=0 LOCAL_VECTORS=0 CHUNKS=1 DY_DTYPE=none DX_DTYPE=none DWEIGHT_DTYPE=none
    DBIAS_DTYPE=none HAS_SUMS=1 STORES=1 ISA=1 ELEMENT_ALIGNED=0 SCALING=0 Y_GROUP=0 FP8_ISA=1
    X_SCALE_DTYPE=none X_SCALING=0 X_GROUP=0 SCALE_DTYPE=none Y_SCALES=0 WRITES_Y=1 MEASURES=0 SAVE_Y_ROW_SCALE=0
    COMPATIBLE=0"

for part in norm group_norm rows backward; do
    # shellcheck source=tests/lint_kernels_norm.sh
    . "$tests/lint_kernels_$part.sh"
done

# A new kernel has no build until a part names it.
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
