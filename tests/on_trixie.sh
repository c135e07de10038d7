#!/bin/sh
# Runs README's two commands in a Debian 13 root, which has PoCL 6. The second command runs the quick tests. It needs root,
# debootstrap and a Debian mirror (DEBIAN_MIRROR, else deb.debian.org).
#
#   tests/on_trixie.sh FOLDER     FOLDER keeps the root, with what is built there, for later runs: 2 GiB
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
root=$folder/trixie

if [ ! -e "$root/made" ]; then
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase trixie "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
    mkdir "$root/source"
    touch "$root/made"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir -p "$root/etc/ssl"
cp -r /etc/ssl/certs "$root/etc/ssl/" # pip may need a proxy's certificates

# Replaces the sources, and keeps earlier builds.
find "$root/source" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | tar -cf - --null --files-from=- | tar -xf - -C "$root/source"

# PoCL reads the number of cores and the memory size from the first two. A test runs the tool on a terminal.
trap 'umount "$root/proc" "$root/sys" "$root/dev/pts" 2>/dev/null || :' EXIT # also where a mount fails
for folder in proc sys dev/pts; do
    mount --bind "/$folder" "$root/$folder"
done
inside() {
    echo "+ $*"
    chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 \
        PIP_CERT=/etc/ssl/certs/ca-certificates.crt sh -ec "cd /source && $*"
}
inside tools/quickstart.sh
inside tools/test.sh
