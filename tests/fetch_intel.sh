#!/bin/sh
# Fetches Intel's OpenCL runtime for CPUs from PyPI; any x86-64 processor runs it.
#
#   fetch_intel.sh FOLDER     puts it there with an intel.icd (850 MiB), unless it is there
set -eu
folder=$1
version=2026.2.0
[ ! -e "$folder/intel.icd" ] || exit 0

rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet "intel-opencl-rt==$version" "intel-cmplr-lib-rt==$version"
echo "$(cd "$folder" && pwd)/lib/libintelocl.so" >"$folder/intel.icd" # the wheel's own file names a folder of its builder
