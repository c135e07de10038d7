#!/bin/sh
# Checks that the shared library exports exactly the functions of the public headers, each with the symbol version, and that
# every global of the static library has our prefix.
#
#   check_symbols.sh NM HEADERS SHARED STATIC VERSION     VERSION: such as CLNORM_0.2; empty without symbol versions
set -eu
nm=$1
headers=$2
shared=$3
static=$4
version=$5
names() {
    sort -u | tr '\n' ' '
}

# nm writes a default version after @@, and the version itself as an absolute symbol.
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
