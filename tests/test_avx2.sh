#!/bin/sh
# Runs a test program on this machine's PoCL 3.1 as on a CPU with AVX2 and without AVX-512. Exits with 77, skipped, where
# PoCL has no library of functions for such a CPU, or the machine cannot run it.
#
#   test_avx2.sh [--cold] PROGRAM [ARGUMENT …]      --cold: compiles every kernel, and keeps none
set -u

library=/usr/share/pocl/kernel-x86_64-pc-linux-gnu-avx2.bc
if [ ! -e "$library" ]; then
    echo "$library is not installed" >&2
    exit 77
fi
if ! grep -qw avx2 /proc/cpuinfo; then
    echo "this machine has no AVX2" >&2
    exit 77
fi

export POCL_KERNELLIB_NAME=avx2 POCL_LLVM_CPU_NAME=haswell
if [ "$1" = --cold ]; then
    shift
    kernels=$(mktemp -d)
    trap 'rm -rf "$kernels"' EXIT
    export POCL_CACHE_DIR="$kernels" CLNORM_CACHE=0
fi
"$@"
