#!/bin/sh
# Runs the commands of the tool in README as they are printed, except those that take minutes.
#
#   readme_commands.sh FOLDER     FOLDER: where the tool is
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
PATH=$1:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tests"
ln -s "$root/tests/data" "$dir/tests/data"
cd "$dir"

sed -n 's/^    \(clnorm .*\)/\1/p' "$root/README.md" | grep -vE '^clnorm (check|tune)' >commands
[ -s commands ] || {
    echo "README shows no command of the tool" >&2
    exit 1
}
while read -r command; do
    echo "$ $command"
    sh -c "$command" </dev/null || {
        echo "README: '$command' fails" >&2
        exit 1
    }
done <commands
