#!/bin/sh
# Fetches the OpenCL loader of Khronos, which Debian has from forky on. With LD_LIBRARY_PATH=FOLDER, programs use it in
# place of ocl-icd.
#
#   khronos_loader.sh FOLDER     puts libOpenCL.so.1 there, unless it is there
set -eu
folder=$1
[ ! -e "$folder/libOpenCL.so.1" ] || exit 0
# shellcheck source=tests/private_apt.sh
. "$(dirname "$0")/private_apt.sh"

private_apt forky
mkdir -p "$folder"
cd "$state"
apt-get download -qq khronos-opencl-icd-libopencl1
dpkg-deb --extract khronos-opencl-icd-libopencl1_*.deb .
cd "$OLDPWD"
cp "$state"/usr/lib/*/libOpenCL.so.1.0.0 "$folder/libOpenCL.so.1"
