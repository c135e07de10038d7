#!/bin/sh
# Runs a program of this machine with the libraries and the PoCL 6 of Debian 13, which fetch_trixie.sh has put into ROOT.
# Exits with 77, skipped, where ROOT lacks them, or the system lacks name spaces for mounts. The program's root is ROOT, with
# this repository, /proc, /sys and /dev mounted in a name space that ends with the program.
#
#   test_trixie.sh ROOT PROGRAM [ARGUMENT …]
set -u
root=$1
shift
if [ ! -e "$root/made" ]; then
    echo "$root is no Debian 13: tests/fetch_trixie.sh $root" >&2
    exit 77
fi
root=$(cd "$root" && pwd)

name_space=--mount
[ "$(id -u)" -eq 0 ] || name_space="--map-root-user --mount"
# shellcheck disable=SC2086 # a list of words
if ! unshare $name_space true; then
    echo "there are no name spaces for mounts" >&2
    exit 77
fi
source=$(cd "$(dirname "$0")/.." && pwd)
header=/usr/share/pocl/include/opencl-c.h # of which PoCL gets a slim one
slim=$(mktemp)
trap 'rm -f "$slim"' EXIT
"$source/tests/slim_opencl_c.sh" "$root$header" >"$slim" || exit 1
# shellcheck disable=SC2016,SC2086 # the inner shell expands variables; name_space is a list of words
unshare $name_space sh -euc '
    root=$1
    source=$2
    mount --bind "$3" "$root$4"
    shift 4
    mkdir -p "$root$source"
    for folder in /proc /sys /dev "$source"; do
        mount --rbind "$folder" "$root$folder"
    done
    exec chroot "$root" /usr/bin/env --unset=OCL_ICD_VENDORS --chdir="$PWD" HOME=/tmp PATH=/usr/bin:/usr/sbin \
        POCL_CACHE_DIR=/tmp/pocl CLNORM_CACHE_DIR=/tmp/clnorm "$@"
' sh "$root" "$source" "$slim" "$header" "$@"
