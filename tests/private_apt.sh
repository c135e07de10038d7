# shellcheck shell=sh
# For scripts that fetch packages of another Debian without installing them. Read with `.`; needs no root.

# private_apt SUITE: from here on apt-get uses SUITE alone, and keeps its state in the folder $state, which is removed when
# the shell exits. It checks signatures. Packages are from DEBIAN_MIRROR, else deb.debian.org.
private_apt() {
    state=$(mktemp -d)
    trap 'rm -rf "$state"' EXIT
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    : >"$state/status"
    echo "deb ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $1 main" >"$state/sources.list"
    cat >"$state/apt.conf" <<END
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
END
    APT_CONFIG=$state/apt.conf
    export APT_CONFIG
    apt-get update -qq
}
