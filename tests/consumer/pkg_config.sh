#!/bin/sh
# Builds the consumer with pkg-config and a plain compiler, shared and static, and runs it.
#
#   pkg_config.sh COMPILER LIBDIR WORKDIR     LIBDIR: of the installed tree
set -eu
compiler=$1
libdir=$2
workdir=$3
program=$(dirname "$0")/rms_norm.c
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
mkdir -p "$workdir"

# Options of pkg-config are quoted for a shell: folders may have spaces.
build() {
    output=$1
    eval "set -- $2"
    "$compiler" -std=c99 -Wall -Wextra -pedantic -Werror "$program" -o "$workdir/$output" "$@"
}

# needs_library PROGRAM: whether it loads libclnorm.so when it starts.
needs_library() {
    readelf --dynamic "$workdir/$1" | grep -q 'NEEDED.*libclnorm\.so'
}

build shared "$(pkg-config --cflags --libs clnorm)"
build static "$(pkg-config --static --cflags --libs clnorm)"
needs_library shared
! needs_library static || {
    echo "pkg-config --static linked the shared library" >&2
    exit 1
}

LD_LIBRARY_PATH=$libdir:${LD_LIBRARY_PATH-} "$workdir/shared"
"$workdir/static"
