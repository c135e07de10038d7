#!/bin/sh
# Installs what is missing, builds, and runs tests. Ends with one count over all builds; the exit status is 0 only when every
# test passed.
#
#   tools/test.sh          the quick tests, on PoCL, and the Python wheel's smoke test: about 5 minutes on 2 cores
#   tools/test.sh --all    every test, the checks of the sources, Oclgrind, rusticl, Intel's runtime and PoCL 6; again under the
#                          address and undefined-behaviour sanitizers; threads under the thread sanitizer; what depends on the
#                          loader with that of Khronos; the Python package with PyTorch: about an hour on 2 cores
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

case "$#:${1-}" in
0:) all=false ;;
1:--all) all=true ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' tools/test.sh
    [ "$#:${1-}" = 1:--help ] && exit 0
    exit 2
    ;;
esac

test_packages="$build_packages g++ libcmocka-dev opencl-clhpp-headers groff-base python3-dev python3-venv"
if $all; then
    test_packages="$test_packages clang libclang-rt-14-dev clang-format-14 clang-tidy cppcheck mesa-opencl-icd oclgrind
        shellcheck zsh fish libopenmpi-dev openmpi-bin"
fi
# shellcheck disable=SC2086 # a list of words
install_packages $test_packages

passed=0
total=0

build() {
    say "Building into build-$1/"
    quietly cmake --preset "$1"
    quietly cmake --build --preset "$1"
}

# run_tests PRESET WHAT: adds the preset's tests to the counts. The numbers come from CTest's report, because a test's output
# may look like CTest's own lines.
run_tests() {
    say "Testing: $2"
    report=$PWD/build-dev/ctest.xml
    rm -f "$report"
    ctest --preset "$1" -j2 --output-junit "$report" 2>&1 || : # the counts decide
    [ -s "$report" ] || die "ctest did not finish: $2"
    total=$((total + $(grep -c '^[[:space:]]*<testcase ' "$report" || :)))
    passed=$((passed + $(grep -c '^[[:space:]]*<testcase .* status="run"' "$report" || :))) # a skipped test has not passed
}

# What the tests need from elsewhere. Most of this waits for servers.
fetch_drivers() {
    tests/fetch_intel.sh build-dev/drivers/intel && tests/fetch_trixie.sh build-dev/drivers/trixie &&
        tests/khronos_loader.sh build-dev/khronos
}

# run_python WHAT: runs the tests of the Python package, which shows its own counts; here they count as one test. Its kernels
# are built by the driver of the other tests, which saves a fifth of the time.
run_python() {
    say "Testing: the Python package ($1)"
    total=$((total + 1))
    if (
        driver=$PWD/build-dev/tests/driver/icd # none where the tests run on whatever is installed
        [ ! -d "$driver" ] || export OCL_ICD_VENDORS="$driver"
        tests/python.sh build-dev/python "$1"
    ); then
        passed=$((passed + 1))
    else
        echo "The Python package failed its tests" >&2
    fi
}

if $all; then
    say "Fetching Intel's OpenCL runtime, PoCL of Debian 13 and the loader of Khronos, beside the builds"
    quietly fetch_drivers &
    fetching=$!
    build dev
    build asan
    build tsan
    wait "$fetching" # a failure ends the script
    say "Building the wheel and fetching PyTorch, beside the tests"
    quietly tests/python.sh build-dev/python prepare &
    preparing=$!
    run_tests dev "everything"
    run_tests asan "everything under the address and undefined-behaviour sanitizers"
    run_tests tsan "threads under the thread sanitizer"
    LD_LIBRARY_PATH=$PWD/build-dev/khronos
    export LD_LIBRARY_PATH
    ldd build-dev/tests/test_plan | grep -q "$LD_LIBRARY_PATH/libOpenCL" || die "the loader of Khronos is not used"
    run_tests loader "what depends on the loader, with that of Khronos"
    unset LD_LIBRARY_PATH
    wait "$preparing"
    run_python test
else
    build dev
    run_tests quick "quick tests"
    run_python smoke
fi

echo
echo "$((passed * 100 / total))% tests passed, $((total - passed)) tests failed out of $total"
[ "$passed" -eq "$total" ]
