#!/bin/sh
# Builds the consumer by pkg-config and a plain compiler, shared and static, and runs it.
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
    "$compiler" -std=c99 -Wall -Wextra -pedantic -Werror "$program" -o "$workdir/$output" "$@" -lm "-Wl,-rpath,$libdir"
}

build shared "$(pkg-config --cflags --libs clnorm)"
# Beside libclnorm.a lies libclnorm.so, which -lclnorm prefers; the archive is asked for by its file name.
build static "$(pkg-config --static --cflags --libs clnorm | sed 's/-lclnorm/-l:libclnorm.a/')"

"$workdir/shared"
"$workdir/static"
