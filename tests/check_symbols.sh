#!/bin/sh
# The shared library exports just the functions of the public headers, each in the version that its name has; every global
# of the static one has our prefix.
#
#   check_symbols.sh NM HEADERS SHARED STATIC VERSION     VERSION: CLNORM_0.1; empty where the linker knows no versions
set -eu
nm=$1
headers=$2
shared=$3
static=$4
version=$5
names() {
    sort -u | tr '\n' ' '
}

# nm writes a default version behind @@, and the version itself as an absolute symbol.
declared=$(sed -n "s/^CLNORM_API .*[ *]\(clnorm_[a-z0-9_]*\)(.*/\1${version:+@@$version}/p" "$headers"/*.h | names)
exported=$("$nm" --dynamic --defined-only --with-symbol-versions "$shared" | awk '$2 != "A" { print $3 }' | names)
[ -n "$declared" ]
if [ "$declared" != "$exported" ]; then
    printf 'declared: %s\nexported: %s\n' "$declared" "$exported"
    exit 1
fi

globals=$("$nm" --extern-only --defined-only "$static" | awk 'NF == 3 { print $3 }' | names)
[ -n "$globals" ]
foreign=$(echo "$globals" | tr ' ' '\n' | grep -vE '^((cln|clnorm)_.*)?$' | names)
if [ -n "$foreign" ]; then
    printf 'globals of the static library without our prefix: %s\n' "$foreign"
    exit 1
fi
