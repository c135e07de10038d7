#!/bin/sh
# Builds the consumer with clnorm as a subproject, runs it, and checks that its installation has no file of clnorm.
#
#   subproject.sh CMAKE COMPILER SOURCES WORKDIR
set -eu
cmake=$1
compiler=$2
sources=$3
workdir=$4

rm -rf "$workdir"
"$cmake" -S "$(dirname "$0")" -B "$workdir/build" "-DCMAKE_C_COMPILER=$compiler" "-DCONSUMER_SOURCES=$sources"
"$cmake" --build "$workdir/build" --parallel 2
"$workdir/build/rms_norm_shared"
"$workdir/build/rms_norm_static"

"$cmake" --install "$workdir/build" --prefix "$workdir/installed"
installed=$(cd "$workdir/installed" && find . -type f)
[ "$installed" = ./bin/rms_norm_static ] || {
    printf 'the consumer installed more than its program:\n%s\n' "$installed" >&2
    exit 1
}
