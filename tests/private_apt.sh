# shellcheck shell=sh
# For scripts that fetch packages of another Debian without installing them. Read with `.`; needs no root.

# private_apt FOLDER SUITE: from here on apt-get knows SUITE alone, and keeps its state in FOLDER. It checks the signature of
# what it fetches. Packages are from DEBIAN_MIRROR, else deb.debian.org.
private_apt() {
    mkdir -p "$1/lists/partial" "$1/archives/partial"
    : >"$1/status"
    echo "deb ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $2 main" >"$1/sources.list"
    cat >"$1/apt.conf" <<END
Dir::State "$1";
Dir::State::status "$1/status";
Dir::Cache "$1";
Dir::Etc::SourceList "$1/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
END
    APT_CONFIG=$1/apt.conf
    export APT_CONFIG
    apt-get update -qq
}
