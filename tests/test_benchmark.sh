#!/bin/sh
# tools/benchmark.py on tiny shapes: the table of our measurements and a peer's, as Markdown and as SVG, and refused lines.
# tools/chart.py on that table. README's picture must be the chart of BENCHMARKS.md.
#
#   test_benchmark.sh CLNORM
set -eu
script=$(dirname "$0")/../tools/benchmark.py
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

die() {
    echo "$*" >&2
    exit 1
}

# says FILE TEXT
says() {
    grep -qF -- "$2" "$1" || {
        cat "$1" >&2
        die "\"$2\" is not in $1"
    }
}

# refuses TEXT ARGUMENT …
refuses() {
    text=$1
    shift
    code=0
    "$script" --out "$dir/refused" "$@" 2>"$dir/err" || code=$?
    [ "$code" -eq 2 ] || die "exit code $code, not 2: $*"
    says "$dir/err" "$text"
    [ "$(wc -l <"$dir/err")" -le 2 ] || die "more than a line: $(cat "$dir/err")"
}

cat >"$dir/peers" <<'EOF'
# what another program says
{"op": "gelu_erf_forward", "provider": "slow", "rows": 8, "cols": 64, "dtype": "f32", "us": 9, "limit_us": 0.00001}

{"op": "gelu_erf_forward", "provider": "a<b&c", "rows": 8, "cols": 64, "dtype": "f32", "us": 3, "limit_us": 400}
{"op": "gelu", "provider": "elsewhere", "rows": 9, "cols": 64, "dtype": "f32", "us": 3, "limit_us": 2}
EOF
"$script" --clnorm "$1" --out "$dir/table" --peers "$dir/peers" -- gelu add_rms_norm --unfused --shapes 8x64,4x64 \
    --dtypes f32 --runs 1 --seconds 0
says "$dir/table.md" "| operation, dtype | 8×64 | 4×64 | peers / ours |"
says "$dir/table.md" "** (a<b&c 0.01)" # bold, as no provider is 100 times faster than a copy
says "$dir/table.md" "| add_rms_norm, f32, in separate calls | "
says "$dir/table.md" "| gelu, f32 | "
says "$dir/table.md" "clnorm bench gelu add_rms_norm --unfused"
says "$dir/table.md" "$(date +%Y)-"
says "$dir/table.svg" "a&lt;b&amp;c"
[ "$(grep -c '^| ' "$dir/table.md")" -eq 4 ] || die "rows of the table: $(cat "$dir/table.md")"
[ "$(grep -c '"provider": "clnorm"' "$dir/table.json")" -eq 4 ] || die "lines: $(cat "$dir/table.json")"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/table.svg"

# a number past the end of the bars has an arrow; no line is longer than the picture is wide
cat >"$dir/slow" <<'END'
{"op": "gelu", "provider": "clnorm", "rows": 8, "cols": 64, "dtype": "f32", "us": 9.5, "limit_us": 1}
{"op": "gelu", "provider": "clnorm", "rows": 4, "cols": 64, "dtype": "f32", "us": 2, "limit_us": 1}
END
sed -i 's/"limit_us"/"command": "clnorm bench '"$(yes f32,bf16 | head -n 40 | tr '\n' ' ')"'", "limit_us"/' "$dir/slow"
"$script" --out "$dir/slow" --ours "$dir/slow"
[ "$(grep -c '<path class="ours".*class="past".*>9.50</text>' "$dir/slow.svg")" -eq 1 ] || die "arrows: $(cat "$dir/slow.svg")"
[ "$(grep -c '<path' "$dir/slow.svg")" -eq 1 ] || die "arrows: $(cat "$dir/slow.svg")"
[ "$(grep -c '<text class="command"' "$dir/slow.svg")" -ge 4 ] || die "lines: $(cat "$dir/slow.svg")"
grep '<text class="command"' "$dir/slow.svg" | while read -r line; do
    [ ${#line} -lt 140 ] || die "too long: $line"
done

"$script" --out "$dir/again" --peers "$dir/peers" --ours "$dir/table.json"
cmp "$dir/table.md" "$dir/again.md"
cmp "$dir/table.svg" "$dir/again.svg"

# the date and the command are those of the measurements; lines of clnorm bench itself have none
sed '1s/"date": "[0-9-]*"/"date": "2001-02-03"/; 1s/"command": "[^"]*"/"command": "clnorm bench early"/' "$dir/table.json" \
    >"$dir/early"
"$script" --out "$dir/again" --ours "$dir/early"
says "$dir/again.md" "2001-02-03 and $(date +%Y)-"
says "$dir/again.md" "clnorm bench early; clnorm bench gelu"
sed 's/"date": "[^"]*", "command": "[^"]*"/"runs": 1/' "$dir/table.json" >"$dir/bare"
"$script" --out "$dir/again" --ours "$dir/bare"
says "$dir/again.md" "an unknown date: \`from $dir/bare\`"
sed '2s/"device": "[^"]*"/"device": "another"/' "$dir/table.json" >"$dir/bad"
refuses "expected lines of one device, not of " --ours "$dir/bad"
sed '2s/"device": "[^"]*"/"device": ["another"]/' "$dir/table.json" >"$dir/bad"
refuses "bad:2: device: expected a string" --ours "$dir/bad"

echo '{"op": "gelu_erf_forward", "provider": "p", "rows": 8, "cols": 64, "dtype": "f32", "us": 3}' >"$dir/bad"
refuses "bad:1: limit_us" --ours "$dir/table.json" --peers "$dir/bad"
echo 'nothing' >"$dir/bad"
refuses "bad:1: " --ours "$dir/table.json" --peers "$dir/bad"
echo '{"op": "o", "provider": "p", "rows": 8, "cols": 64, "dtype": "f32", "us": 0, "limit_us": 1}' >"$dir/bad"
refuses "more than 0" --ours "$dir/bad"
refuses "no/such" --ours "$dir/no/such"
: >"$dir/bad"
refuses "expected a line with the provider clnorm" --ours "$dir/bad"
refuses "'sofmax'" --clnorm "$1" -- sofmax
refuses "no/clnorm" --clnorm "$dir/no/clnorm"

root=$(dirname "$0")/..
chart=$root/tools/chart.py
"$chart" "$dir/table.md" "$dir/chart.svg" --dtype f32 --shapes 8x64
says "$dir/chart.svg" "Geometric mean over 8×64"
says "$dir/chart.svg" ">GELU</text>"
[ "$(grep -c 'class="ours"' "$dir/chart.svg")" -eq 2 ] || die "a bar and its key: $(cat "$dir/chart.svg")"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/chart.svg"

# chart_refuses TEXT ARGUMENT …
chart_refuses() {
    text=$1
    shift
    code=0
    "$chart" "$@" 2>"$dir/err" || code=$?
    [ "$code" -eq 2 ] || die "exit code $code, not 2: $*"
    says "$dir/err" "$text"
}
chart_refuses "no/such" "$dir/no/such" "$dir/refused.svg"
chart_refuses "expected a table" "$dir/peers" "$dir/refused.svg"
chart_refuses "expected cells of f64" "$dir/table.md" "$dir/refused.svg" --dtype f64 --shapes 8x64
chart_refuses "'9×9'" "$dir/table.md" "$dir/refused.svg" --shapes 9x9
chart_refuses "no/folder" "$dir/table.md" "$dir/no/folder/a.svg" --dtype f32 --shapes 8x64

"$chart" "$root/BENCHMARKS.md" "$dir/readme.svg"
cmp "$dir/readme.svg" "$root/docs/benchmark.svg" || die "docs/benchmark.svg: draw it again: tools/chart.py BENCHMARKS.md docs/benchmark.svg"
