#!/bin/sh
# A build without the dependencies of the tool and the tests, and without OpenCL.pc: the library is built, a line names each
# part that is left out, and pkg-config finds what is installed, also where the library's folder is not below the prefix.
#
#   plain_build.sh CMAKE COMPILER SOURCES WORKDIR
set -eu
cmake=$1
compiler=$2
sources=$3
workdir=$4

rm -rf "$workdir"
mkdir -p "$workdir/nothing"
configure() {
    name=$1
    shift
    # pkg-config finds nothing in an empty folder.
    PKG_CONFIG_LIBDIR=$workdir/nothing "$cmake" -S "$sources" -B "$workdir/$name" "-DCMAKE_C_COMPILER=$compiler" "$@" \
        >"$workdir/$name.log" 2>&1
}

# says NAME TEXT: a line of that configuration's output has the text.
says() {
    tr -s ' \n' ' ' <"$workdir/$1.log" | grep -qF -e "$2" || {
        cat "$workdir/$1.log"
        echo "^^^ expected: $2"
        exit 1
    }
}

configure auto "-DCMAKE_INSTALL_PREFIX=$workdir/installed" "-DCMAKE_INSTALL_LIBDIR=$workdir/elsewhere/lib"
says auto "-- Left out: the command-line tool. Debian packages that are missing: libpopt-dev libjansson-dev"
says auto "-- Left out: the tests. Debian packages that are missing: libcmocka-dev"
"$cmake" --build "$workdir/auto" --parallel 2
ls "$workdir/auto/libclnorm.so" "$workdir/auto/libclnorm.a"
"$cmake" --install "$workdir/auto" >/dev/null
[ ! -e "$workdir/installed/bin" ]
folder() {
    PKG_CONFIG_PATH=$workdir/elsewhere/lib/pkgconfig pkg-config --variable="$1" clnorm
}
ls "$(folder libdir)/libclnorm.so" "$(folder includedir)/clnorm/clnorm.h"
[ "$(cd "$(folder prefix)" && pwd)" = "$(cd "$workdir/installed" && pwd)" ]
PKG_CONFIG_LIBDIR=$workdir/nothing "$(dirname "$0")/consumer/pkg_config.sh" "$compiler" "$workdir/elsewhere/lib" \
    "$workdir/consumer"

configure tool -DCLNORM_BUILD_TOOLS=ON && exit 1
says tool "CLNORM_BUILD_TOOLS is ON. Debian packages that are missing: libpopt-dev libjansson-dev."
configure tests -DCLNORM_BUILD_TESTS=ON && exit 1
says tests "CLNORM_BUILD_TESTS is ON. Debian packages that are missing: libcmocka-dev."
configure word -DCLNORM_BUILD_TESTS=maybe && exit 1
says word "CLNORM_BUILD_TESTS is 'maybe'; expected ON, OFF or AUTO"
configure library -DXXHASH_INCLUDE_DIR=XXHASH_INCLUDE_DIR-NOTFOUND -DCMAKE_FIND_ROOT_PATH="$workdir/nothing" \
    -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY && exit 1
says library "The library cannot be built. Debian packages that are missing: opencl-headers libxxhash-dev"
