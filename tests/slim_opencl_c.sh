#!/bin/sh
# Prints a PoCL's opencl-c.h without the functions that no kernel names: slim_opencl_c.sh HEADER. PoCL reads this header anew for
# each program, which is most of the time of a small build. What it makes of a kernel stays the same, since the names that the
# header loses occur in no kernel.
#
# A function is a line with __ovld. Names are compared without digits, as kernels join vload and a number. Conversions without
# a rounding mode stay, as kernels join their names and those of types.
set -eu
header=$1
cd "$(dirname "$0")/.."
awk -v "header=$header" '
    function stem(name) {
        gsub(/[0-9]/, "", name)
        sub(/_rte$/, "", name)
        return name
    }
    FILENAME != header {
        while (match($0, /[A-Za-z_][A-Za-z_0-9]*/)) {
            used[stem(substr($0, RSTART, RLENGTH))]
            $0 = substr($0, RSTART + RLENGTH)
        }
        next
    }
    /__ovld.*;/ && match($0, /[A-Za-z_0-9]+\(/) {
        name = substr($0, RSTART, RLENGTH - 1)
        if (!(stem(name) in used) && name !~ /^convert_[a-z]+[0-9]*$/)
            next
    }
    { print }' cl/*/* tools/clnorm/*_kernels.c tools/clnorm/bench_host.c tests/program_case.c tests/test_philox.c \
    tests/test_program*.c "$header"
