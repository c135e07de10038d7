#!/bin/sh
# Fetches the OpenCL loader of Khronos, which Debian has from forky on; programs use it in place of ocl-icd with
# LD_LIBRARY_PATH=FOLDER. apt checks the signature of what it fetches, and its state here is not the system's.
#
#   khronos_loader.sh FOLDER     puts libOpenCL.so.1 there, unless it is there
set -eu
folder=$1
[ ! -e "$folder/libOpenCL.so.1" ] || exit 0

state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/archives/partial" "$folder"
echo "deb ${DEBIAN_MIRROR:-http://deb.debian.org/debian} forky main" >"$state/sources.list"
cat >"$state/apt.conf" <<END
Dir::State::Lists "$state/lists";
Dir::Cache "$state";
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
END
APT_CONFIG=$state/apt.conf
export APT_CONFIG

apt-get update -qq
cd "$state"
apt-get download -qq khronos-opencl-icd-libopencl1
dpkg-deb --extract khronos-opencl-icd-libopencl1_*.deb .
cd "$OLDPWD"
cp "$state"/usr/lib/*/libOpenCL.so.1.0.0 "$folder/libOpenCL.so.1"
