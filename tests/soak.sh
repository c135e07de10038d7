#!/bin/sh
# A soak: enqueues of random plans from 4 threads to 8 queues, results compared with those of the first time, memory that must
# not grow; before that, processes killed while they write the program cache. CLNORM_DEVICE picks the device, PoCL without it.
#
#   tests/soak.sh [ENQUEUES [KILLS [SEED]]]     1000000, 200 and 1
set -eu
cd "$(dirname "$0")/.."
cmake --preset dev >/dev/null
cmake --build --preset dev --target soak
if [ -z "${CLNORM_DEVICE-}" ] && [ -z "${OCL_ICD_VENDORS-}" ]; then
    CLNORM_DEVICE=platform=portable
    export CLNORM_DEVICE
fi
exec env CLNORM_TUNING=0 build-dev/tests/soak "${1:-1000000}" "${2:-200}" "${3:-1}"
