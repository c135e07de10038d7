#!/bin/sh
# Makes FOLDER/icd, from which the loader takes the driver of an .icd file. A PoCL whose headers lie as in PoCL 3.1 is loaded by
# a path in FOLDER, beside which it finds the header of slim_opencl_c.sh. ARCHITECTURE is that of the folder in /usr/lib:
# slim_driver.sh FOLDER ICD ARCHITECTURE
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
folder=$1
icd=$2
architecture=$3
new=$folder.new
rm -rf "$folder" "$new"
mkdir -p "$new/icd"
cp "$icd" "$new/icd"
library=$(cat "$icd")
[ "${library#/}" != "$library" ] || library=/usr/lib/$architecture/$library
own=$(dirname "$library")
share=$own/../../share/pocl

slim() {
    lib=lib/$(basename "$own")
    mkdir -p "$new/$lib" "$new/share/pocl/include"
    ln -s "$library" "$own/pocl" "$new/$lib"
    ln -s "$share"/*.bc "$new/share/pocl"
    ln -s "$share"/include/* "$new/share/pocl/include"
    header=$new/share/pocl/include/opencl-c.h
    rm "$header"
    "$tests/slim_opencl_c.sh" "$share/include/opencl-c.h" >"$header"
    echo "$folder/$lib/$(basename "$library")" >"$new/icd/$(basename "$icd")"
}

case $library in
/usr/lib/*/libpocl.so*) [ ! -e "$library" ] || [ ! -e "$share/include/opencl-c.h" ] || slim ;;
esac
mv "$new" "$folder"
