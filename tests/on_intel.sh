#!/bin/sh
# Runs the quick tests on Intel's OpenCL runtime for CPUs, which PyPI has and any x86-64 processor runs.
#
#   tests/on_intel.sh FOLDER [CTEST OPTION …]     FOLDER keeps the runtime for later runs: 1 GiB
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
runtime=$folder/intel

tests/fetch_intel.sh "$runtime"
cmake --preset dev -B build-intel "-DCLNORM_TEST_ICD=$runtime/intel.icd" >/dev/null
cmake --build build-intel
ctest --test-dir build-intel --output-on-failure -L '^quick$' -R '^test_' "$@"
