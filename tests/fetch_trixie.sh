#!/bin/sh
# Unpacks the parts of Debian 13 that test programs need: C library, OpenCL loader and PoCL 6. It installs nothing, runs no
# script of a package, and needs seconds and no root.
#
#   fetch_trixie.sh ROOT     makes the folder ROOT (550 MiB), unless it is there
set -eu
root=$1
[ ! -e "$root/made" ] || exit 0
# shellcheck source=tests/private_apt.sh
. "$(dirname "$0")/private_apt.sh"

private_apt trixie
# PoCL runs the linker of binutils.
apt-get install -qq --yes --download-only pocl-opencl-icd ocl-icd-libopencl1 binutils libc6-dev coreutils dash sed grep diffutils \
    libcmocka0 libpopt0 libjansson4

rm -rf "$root"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
for folder in bin lib lib64 sbin; do
    ln -s "usr/$folder" "$root/$folder"
done
for package in "$state"/archives/*.deb; do
    dpkg-deb --extract "$package" "$root"
done
ldconfig -r "$root"
touch "$root/made"
