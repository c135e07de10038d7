#!/bin/sh
# The shared library exports just the functions of the public headers; every global of the static one has our prefix.
#
#   check_symbols.sh NM HEADERS SHARED STATIC
set -eu
nm=$1
headers=$2
shared=$3
static=$4
names() {
    sort -u | tr '\n' ' '
}

declared=$(sed -n 's/^CLNORM_API .*[ *]\(clnorm_[a-z0-9_]*\)(.*/\1/p' "$headers"/*.h | names)
exported=$("$nm" --dynamic --defined-only "$shared" | awk '{ print $NF }' | names)
[ -n "$declared" ]
if [ "$declared" != "$exported" ]; then
    printf 'declared: %s\nexported: %s\n' "$declared" "$exported"
    exit 1
fi

foreign=$("$nm" --extern-only --defined-only "$static" | awk 'NF == 3 && $3 !~ /^(cln|clnorm)_/ { print $3 }' | names)
if [ -n "$foreign" ]; then
    printf 'globals of the static library without our prefix: %s\n' "$foreign"
    exit 1
fi
