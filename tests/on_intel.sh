#!/bin/sh
# Runs the quick tests on Intel's OpenCL runtime for CPUs, which PyPI has and any x86-64 processor runs.
#
#   tests/on_intel.sh FOLDER [CTEST OPTION …]     FOLDER keeps the runtime for later runs: 1 GiB
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
version=2026.2.0
runtime=$folder/intel-$version

if [ ! -e "$runtime/intel.icd" ]; then
    rm -rf "$runtime"
    python3 -m venv "$runtime"
    "$runtime/bin/pip" install --quiet "intel-opencl-rt==$version" "intel-cmplr-lib-rt==$version"
    echo "$runtime/lib/libintelocl.so" >"$runtime/intel.icd" # the wheel's own names a folder of whom made it
fi

cmake --preset dev -B build-intel "-DCLNORM_TEST_ICD=$runtime/intel.icd" >/dev/null
cmake --build build-intel
ctest --test-dir build-intel --output-on-failure -L '^quick$' -R '^test_' "$@"
