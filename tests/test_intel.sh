#!/bin/sh
# Runs a program on Intel's OpenCL for CPUs, which fetch_intel.sh has put into FOLDER. test_intel.sh FOLDER PROGRAM
# [ARGUMENT …]. Exits with 77 where it is not there.
set -u
folder=$1
shift
if [ ! -e "$folder/intel.icd" ]; then
    echo "$folder has no OpenCL runtime: tests/fetch_intel.sh $folder" >&2
    exit 77
fi

vendors=$(mktemp -d)
trap 'rm -rf "$vendors"' EXIT
cp "$folder/intel.icd" "$vendors"
OCL_ICD_VENDORS=$vendors "$@"
