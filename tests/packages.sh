#!/bin/sh
# Makes the Debian packages, installs them in a clean Debian 12 root, uses their files, and removes them. It needs root,
# debootstrap and a Debian mirror (DEBIAN_MIRROR, else deb.debian.org), and about 3 minutes.
#
#   tests/packages.sh
set -eu
cd "$(dirname "$0")/.."
packages=$PWD/build-packages/packages
root=$PWD/build-packages/root

die() {
    echo "packages.sh: $*" >&2
    exit 1
}
[ "$(id -u)" -eq 0 ] || die "chroot needs root"
command -v debootstrap >/dev/null || die "debootstrap is not installed"

cmake --preset packages
cmake --build --preset packages
rm -rf "$packages"
cpack --config build-packages/CPackConfig.cmake -B "$packages"

# The root is made once; each run works on a copy of it.
base=$PWD/build-packages/bookworm.tar
if [ ! -e "$base" ]; then
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
    tar -C "$root" -cf "$base.new" .
    mv "$base.new" "$base"
fi
rm -rf --one-file-system "$root"
mkdir -p "$root"
tar -C "$root" -xf "$base"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir "$root/packages"
cp "$packages"/*.deb tests/data/sample.safetensors tests/consumer/rms_norm.c "$root/packages/"
# PoCL reads the number of cores and the memory size from these.
trap 'umount "$root/proc" "$root/sys" 2>/dev/null || :' EXIT # also where the second mount fails
mount --bind /proc "$root/proc"
mount --bind /sys "$root/sys"

inside() {
    echo "+ $*"
    chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root DEBIAN_FRONTEND=noninteractive sh -ec "$*"
}

inside 'apt-get update -qq'
inside 'apt-get install -qq -y --no-install-recommends /packages/*.deb >/dev/null' # fails where a package does not name a dependency
inside 'clnorm --version'
inside 'cd /usr/share && ls man/man1/clnorm.1 bash-completion/completions/clnorm zsh/vendor-completions/_clnorm \
    fish/vendor_completions.d/clnorm.fish'
inside 'apt-get install -qq -y --no-install-recommends pocl-opencl-icd gcc libc6-dev pkg-config >/dev/null'
inside 'clnorm run layer_norm --in /packages/sample.safetensors --verify'
inside 'gcc /packages/rms_norm.c -o /shared $(pkg-config --cflags --libs clnorm) && /shared'
inside 'gcc /packages/rms_norm.c -o /static $(pkg-config --static --cflags --libs clnorm) && /static'

# A purge must leave no file.
inside 'apt-get purge -qq -y clnorm libclnorm-dev "libclnorm[0-9]*" >/dev/null'
left=$(find "$root/usr" -name '*clnorm*')
[ -z "$left" ] || die "left after a purge: $left"
echo "The packages install, work, and leave nothing."
