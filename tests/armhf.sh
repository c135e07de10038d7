#!/bin/sh
# Builds for 32-bit ARM and runs tests there: on Debian's PoCL for armhf, under QEMU's user emulation.
#
#   tests/armhf.sh [CTEST OPTION …]     options that select tests; default: tests that end within minutes
#
# Debian packages: gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static mmdebstrap ninja-build. DEBIAN_MIRROR names
# another mirror than deb.debian.org.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build-armhf
root=$build/root

# The packages are unpacked, and none of their scripts runs. Absolute links become relative, so that they stay inside the
# root.
if [ ! -e "$root/etc/OpenCL/vendors/pocl.icd" ]; then
    rm -rf "$root"
    mkdir -p "$build"
    mmdebstrap --variant=extract --architectures=armhf \
        --include=libc6-dev,libgcc-12-dev,ocl-icd-opencl-dev,libpopt-dev,libjansson-dev,libcmocka-dev,libxxhash-dev,pocl-opencl-icd \
        bookworm "$root" "deb ${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm main"
    find "$root/usr" "$root/lib" -type l -lname '/*' | while read -r link; do
        ln -sfr "$root$(readlink "$link")" "$link"
    done
fi

# Under QEMU the loader cannot read a folder of .icd files. OCL_ICD_VENDORS below names the library instead, and an empty
# CLNORM_TEST_ICD leaves that variable unchanged.
cmake -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/armhf.cmake "-DCMAKE_SYSROOT=$root" \
    -DCLNORM_BUILD_TOOLS=ON -DCLNORM_BUILD_TESTS=ON -DCLNORM_TEST_ICD= -DCLNORM_TEST_TIMEOUT=3000
cmake --build "$build"
[ $# -gt 0 ] || set -- --tests-regex '^test_(args|cache|cache_damage|cache_folder|cache_list|config|device|element|enqueue|fp8|one_call|plan|plan_store|program|reference|reference_backward|rows_args|safetensors|select|status|tensor_file|tuning_file|verify)$'
OCL_ICD_VENDORS=libpocl.so.2.10.0 ctest --test-dir "$build" --output-on-failure "$@"
