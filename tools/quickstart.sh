#!/bin/sh
# From nothing to a normalised tensor: installs what is missing, builds, and runs layer norm on the best OpenCL device.
#
#   tools/quickstart.sh                         the sample tensors of tests/data
#   tools/quickstart.sh FILE [OPTION …]         your .safetensors or .npy, with options of `clnorm run layer_norm`
set -eu
caller_dir=$PWD
cd "$(dirname "$0")/.."
. tools/setup.sh

case "${1-}" in
-h | --help)
    sed -n '2,5s/^# \{0,1\}//p' tools/quickstart.sh
    exit 0
    ;;
esac

# shellcheck disable=SC2086 # a list of words
install_packages $build_packages

say "Building into build/"
quietly cmake --preset release
quietly cmake --build --preset release

say "OpenCL devices, best first"
build/tools/clnorm devices

if [ $# -eq 0 ]; then
    set -- "$PWD/tests/data/sample.safetensors"
fi
clnorm=$PWD/build/tools/clnorm
cd "$caller_dir"
say "clnorm run layer_norm --in $* --verify"
"$clnorm" run layer_norm --in "$@" --verify
