#!/bin/sh
# A soak: 4 threads enqueue random plans to 8 queues. Results must equal those of the first run, and memory must not grow.
# Before that, processes are killed while they write the program cache. CLNORM_DEVICE chooses the device; the default is
# PoCL.
#
#   tests/soak.sh [ENQUEUES [KILLS [SEED]]]     default: 1000000 200 1
set -eu
cd "$(dirname "$0")/.."
cmake --preset dev >/dev/null
cmake --build --preset dev --target soak
if [ -z "${CLNORM_DEVICE-}" ] && [ -z "${OCL_ICD_VENDORS-}" ]; then
    CLNORM_DEVICE=platform=portable
    export CLNORM_DEVICE
fi
exec env CLNORM_TUNING=0 build-dev/tests/soak "${1:-1000000}" "${2:-200}" "${3:-1}"
