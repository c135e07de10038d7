#!/bin/sh
# Installs what is missing, then builds and runs every test twice: with gcc as it is, and with clang under the address and
# undefined-behaviour sanitizers. Ends with one count over both; the exit status is 0 only when every test passed.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

# shellcheck disable=SC2086 # a list of words
install_packages $build_packages g++ libcmocka-dev clang libclang-rt-14-dev clang-format-14 clang-tidy cppcheck python3 \
    mesa-opencl-icd oclgrind

passed=0
total=0
for preset in dev asan; do
    say "Building into build-$preset/"
    quietly cmake --preset $preset
    quietly cmake --build --preset $preset

    say "Testing build-$preset/"
    log=build-$preset/ctest.log
    ctest --preset $preset -j2 2>&1 | tee "$log" # the exit status is tee's: the counts below decide
    count=$(sed -n 's/^[0-9]*% tests passed, [0-9]* tests failed out of \([0-9]*\)$/\1/p' "$log")
    [ -n "$count" ] || die "ctest did not finish in build-$preset/"
    total=$((total + count))
    passed=$((passed + $(grep -c '^ *[0-9]*/[0-9]* Test .*   Passed ' "$log"))) # what was skipped has not passed
done

echo
echo "$((passed * 100 / total))% tests passed, $((total - passed)) tests failed out of $total"
[ "$passed" -eq "$total" ]
