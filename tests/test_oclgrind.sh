#!/bin/sh
# Runs a test program on Oclgrind, which finds accesses outside of buffers, data races between work-items and misused API
# calls. Any finding fails the test. Exits with 77, skipped, where Oclgrind is not installed.
#
#   test_oclgrind.sh PROGRAM [races] [OPTION-OF-OCLGRIND…]
#
# races: data races are not reported. Oclgrind takes the messages that work-groups exchange for races, and what
# cl/common/waiting.h lets them read.
#
# -O1: Oclgrind 21.10 lacks an instruction that its compiler emits with -O2 (freeze). Without optimisation tests take twice as
# long, but with -O1 --uninitialized crashes.
# -fno-inline -DINLINED=static: it also lacks noalias.scope.decl, which an inlined function that returns a struct leaves behind.
# --local-mem-size: it adds up the local memory of all kernels of a program, which may exceed that of a device.
# --uninitialized is an option for programs without vectors of 16 elements: it takes their halves for uninitialised.
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
optimised=-O1
case " $* " in
*" --uninitialized "*) optimised=-cl-opt-disable ;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
oclgrind --build-options "$optimised -fno-inline -DINLINED=static" --local-mem-size 131072 --check-api $races --log "$log" "$@" "$program"
status=$?
if [ -s "$log" ]; then
    head -n 100 "$log" >&2
    exit 1
fi
exit "$status"
