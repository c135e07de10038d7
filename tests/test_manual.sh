#!/bin/bash
# The manual page formats without a warning, in 80 columns, and has every option; completions know commands, operations,
# options and their values.
#
#   test_manual.sh TOOL FOLDER     FOLDER: where clnorm.1 and completions/ are
set -eu
tool=$1
folder=$2
failures=0

complain() {
    echo "$*" >&2
    failures=$((failures + 1))
}

warnings=$(groff -man -Tutf8 -w mac "$folder/clnorm.1" 2>&1 >/dev/null)
[ -z "$warnings" ] || complain "groff: $warnings"
page=$(groff -man -Tascii -P-cbou "$folder/clnorm.1") # without overstriking and escapes
wide=$(awk 'length > 80' <<<"$page")
[ -z "$wide" ] || complain "clnorm.1 has lines of more than 80 columns: $wide"
commands=$("$tool" --help | sed -n 's/^  \([a-z]*\)  *.*/\1/p')
[[ "$commands" == *check* ]] || complain "clnorm --help lists no command 'check'"
for command in $commands; do
    grep -q "^   clnorm $command " <<<"$page" || complain "clnorm.1 lacks the command $command"
    for option in $("$tool" "$command" --help | grep -o -e '--[a-z][a-z-]*' | sort -u); do
        grep -qE -e "$option([^a-z-]|\$)" <<<"$page" || complain "clnorm.1 lacks $option of $command"
    done
done

# completes EXPECTED WORD …: bash must offer EXPECTED, on one line, for a line of these words.
. "$folder/completions/clnorm"
completes() {
    local expected=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _clnorm
    [ "${COMPREPLY[*]}" = "$expected" ] || complain "bash: '$*' gives '${COMPREPLY[*]}'; expected '$expected'"
}
completes run clnorm ru
completes "check" clnorm ch
completes "rms_norm rms_norm_backward rms_norm_backward_from_y" clnorm run rms_
completes "--gate --gate-first" clnorm run rms_norm --gat
completes sigmoid clnorm run rms_norm --gate sig
completes "path list clear --verbose --help" clnorm cache ""
completes sigmoid clnorm run rms_norm --gate = sig
completes "silu sigmoid" clnorm run rms_norm --gate =
completes "$folder/clnorm.1" clnorm tensors "$folder/clnorm."
completes clear clnorm cache cl
completes "f32 f16 f64" clnorm bench --dtypes f
completes "f8e4m3 f8e5m2" clnorm run quantize --dtype f8
completes "" clnorm run --seed l

if command -v zsh >/dev/null; then
    zsh -n "$folder/completions/_clnorm" || complain "zsh cannot read _clnorm"
fi
if command -v fish >/dev/null; then
    offered=$(fish --no-config -c "source '$folder/completions/clnorm.fish'; complete -C 'clnorm ru'" | cut -f 1)
    [ "$offered" = run ] || complain "fish: 'clnorm ru' gives '$offered'; expected 'run'"
fi
[ "$failures" -eq 0 ]
