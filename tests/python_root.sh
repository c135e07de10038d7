#!/bin/sh
# Installs the wheel with `[cpu]` in a Debian 12 root that has only Python, neither a compiler nor OpenCL, and runs the tests
# of NumPy there. It needs root, debootstrap and a Debian mirror (DEBIAN_MIRROR, by default deb.debian.org).
#
#   tests/python_root.sh FOLDER     FOLDER keeps the root for later runs: 1.5 GiB
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
root=$folder/bookworm

if [ ! -e "$root/made" ]; then
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root" \
        "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
    touch "$root/made"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp -r /etc/ssl/certs "$root/etc/ssl/" # they include a proxy's
rm -rf "$root/work"
mkdir "$root/work"
python3 -m venv "$folder/pip"
"$folder/pip/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$root/work" ./python
cp -r python/tests examples/python/numpy_norm.py "$root/work/"

# Intel's runtime reads the number of cores there.
trap 'umount "$root/proc" "$root/sys" 2>/dev/null || :' EXIT # also where the second mount fails
mount --bind /proc "$root/proc"
mount --bind /sys "$root/sys"
inside() {
    echo "+ $*"
    chroot "$root" /usr/bin/env -i PATH=/work/venv/bin:/usr/bin:/bin:/sbin HOME=/root LANG=C.UTF-8 \
        PIP_CERT=/etc/ssl/certs/ca-certificates.crt sh -ec "cd /work && $*"
}
inside '! command -v cc && ! ldconfig -p | grep OpenCL'
inside 'python3 -m venv venv && pip install --quiet "clnorm[cpu] @ file://$(echo /work/clnorm-*.whl)"'
inside python numpy_norm.py
inside python -m clnorm devices
inside pip install --quiet pytest hypothesis ml_dtypes
inside python -m pytest --quiet tests/test_numpy.py tests/test_arguments.py tests/test_layouts.py tests/test_rope.py \
    tests/test_slices.py tests/test_process.py
