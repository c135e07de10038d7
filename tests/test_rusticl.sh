#!/bin/sh
# Runs a test program on rusticl with llvmpipe, a second implementation of OpenCL on the CPU. Exits with 77, skipped, where it
# is not installed. Programs run smaller cases there: rusticl 22.3 ends loops after about 65,535 iterations in all.
#
#   test_rusticl.sh PROGRAM [ARGUMENT …]
set -u

icd=/etc/OpenCL/vendors/rusticl.icd
if [ ! -e "$icd" ]; then
    echo "$icd is not installed" >&2
    exit 77
fi

vendors=$(mktemp -d)
trap 'rm -rf "$vendors"' EXIT
cp "$icd" "$vendors"
OCL_ICD_VENDORS=$vendors RUSTICL_ENABLE=llvmpipe "$@"
