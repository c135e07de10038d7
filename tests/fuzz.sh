#!/bin/sh
# Runs every fuzz target for some time. New inputs are kept in build-asan/fuzz/NAME, and later runs begin with them. An input
# that breaks a parser is written to build-asan/fuzz, and the exit status is 1: add the input to tests/fuzz/seeds/NAME.
#
#   tests/fuzz.sh SECONDS [NAME ...]     SECONDS for each target; NAME: as in tests/fuzz/fuzz_NAME.c, default: all
set -eu
cd "$(dirname "$0")/.."

case ${1-} in
'' | *[!0-9]*)
    sed -n '2,5s/^# \{0,1\}//p' tests/fuzz.sh >&2
    exit 2
    ;;
esac
seconds=$1
shift
if [ $# -eq 0 ]; then
    for folder in tests/fuzz/seeds/*; do
        set -- "$@" "${folder##*/}"
    done
fi
for name in "$@"; do
    [ -f "tests/fuzz/fuzz_$name.c" ] || {
        echo "tests/fuzz.sh: no fuzz target '$name': expected one of $(ls tests/fuzz/seeds | tr '\n' ' ')" >&2
        exit 2
    }
done

cmake --preset asan >/dev/null
cmake --build --preset asan --target fuzz_targets
broken=
for name in "$@"; do
    mkdir -p "build-asan/fuzz/$name"
    ASAN_OPTIONS=intercept_tls_get_addr=0 "build-asan/tests/fuzz/fuzz_$name" "-max_total_time=$seconds" -max_len=4096 \
        -print_final_stats=1 "-artifact_prefix=build-asan/fuzz/$name-" "build-asan/fuzz/$name" "tests/fuzz/seeds/$name" ||
        broken="$broken $name"
done
[ -z "$broken" ] || {
    echo "Broken:$broken; the inputs are in build-asan/fuzz" >&2
    exit 1
}
