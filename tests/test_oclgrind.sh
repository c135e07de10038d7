#!/bin/sh
# Runs a test program on Oclgrind, which looks for accesses outside of buffers, data races between work-items and misused
# API calls; any finding fails. test_oclgrind.sh PROGRAM [races] [OPTION-OF-OCLGRIND…]; 77 where Oclgrind is not installed.
#
# races: work-groups exchange messages, which Oclgrind takes for races, so it does not look for them.
#
# -cl-opt-disable: Oclgrind 21.10 does not know some instructions that its compiler's optimiser makes (freeze).
# -DINLINED=static: nor noalias.scope.decl, which is what remains of an inlined function that returns a struct.
# --local-mem-size: it counts the local memory of all kernels of a program together, which would exceed its 32 KiB.
# --uninitialized is for those programs that have no vectors of 16 elements: of those it takes halves for uninitialised.
set -u

program=$1
shift
if ! command -v oclgrind >/dev/null; then
    echo "oclgrind is not installed" >&2
    exit 77
fi

races=--data-races
if [ "${1-}" = races ]; then
    shift
    races=
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
oclgrind --build-options "-cl-opt-disable -DINLINED=static" --local-mem-size 65536 --check-api $races --log "$log" "$@" "$program"
status=$?
if [ -s "$log" ]; then
    head -n 100 "$log" >&2
    exit 1
fi
exit "$status"
