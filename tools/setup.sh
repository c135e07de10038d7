# shellcheck shell=sh disable=SC2034
# Functions of quickstart.sh and test.sh, read with `.`: they install the Debian packages that are missing.

build_packages="gcc libc6-dev cmake ninja-build pkg-config opencl-headers ocl-icd-opencl-dev libxxhash-dev libpopt-dev
    libjansson-dev pocl-opencl-icd"

say() {
    printf '==> %s\n' "$*"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

missing_packages() {
    for package in "$@"; do
        [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            printf '%s ' "$package"
    done
}

# Runs a command silently; when it fails, shows its output.
quietly() {
    log=$(mktemp) || die "cannot make a temporary file"
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
    else
        cat "$log" >&2
        rm -f "$log"
        die "failed: $*"
    fi
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        quietly env DEBIAN_FRONTEND=noninteractive "$@"
    else
        quietly sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

install_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "apt-get not found. Install these under the names of your system:" "$@"
        return
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || die "needs root or sudo to install: $missing"
    say "Installing $missing"
    as_root apt-get update
    # shellcheck disable=SC2086 # a list of words
    as_root apt-get install -y --no-install-recommends $missing
}
