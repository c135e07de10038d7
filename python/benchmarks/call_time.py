"""Microseconds of a call through the package, and of the C call below it: the one-call function and clFinish on existing
buffers. The rows are so small that the device's part is only the launch.

    python benchmarks/call_time.py [CALLS]
"""

import statistics
import struct
import sys
import time

import numpy
import pyopencl
import pyopencl.array
from clnorm._native import ffi, lib

import clnorm
from clnorm import _call, _device


def medians(functions, calls):
    """The median microseconds of a call of each function. They are called in turns, so that the device's threads have been
    idle for as long before each of them."""
    for function in functions:
        function()
    times = [[] for _ in functions]
    for _ in range(calls):
        for function, its_times in zip(functions, times):
            start = time.perf_counter()
            function()
            its_times.append(time.perf_counter() - start)
    return [statistics.median(its_times) * 1e6 for its_times in times]


def c_call(x, weight, bias):
    """The C function on buffers of a queue, and clFinish."""
    device = pyopencl.Device.from_int_ptr(clnorm.select().int_ptr)
    queue = pyopencl.CommandQueue(pyopencl.Context([device]))
    arrays = [pyopencl.array.to_device(queue, array) for array in (x, weight, bias, numpy.empty_like(x))]
    clnorm.layer_norm(*arrays[:3], out=arrays[3])
    queue.finish()
    record = next(record for key, record in _call._records.items() if key[4])
    places = struct.pack("8P", *[n for array in arrays for n in (array.base_data.int_ptr, array.offset)])
    context, native = _call._queue_context(queue), record.native
    handle = ffi.cast("cl_command_queue", queue.int_ptr)

    def run():
        _device.check(lib.cln_queue_run(context, handle, native, places, 0, 0, 0, ffi.NULL, ffi.NULL))
        queue.finish()

    run.arrays = arrays
    return run


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    x, weight, bias = numpy.ones((1, 64), "f4"), numpy.ones(64, "f4"), numpy.zeros(64, "f4")
    y = numpy.empty_like(x)
    functions = {
        "C call and clFinish": c_call(x, weight, bias),
        "clnorm.layer_norm(x, weight, bias)": lambda: clnorm.layer_norm(x, weight, bias),
        "clnorm.layer_norm(…, out=y)": lambda: clnorm.layer_norm(x, weight, bias, out=y),
    }
    if _has_torch():
        import torch

        from clnorm import torch as operators

        tensors = [torch.from_numpy(array) for array in (x, weight, bias)]
        functions["clnorm.layer_norm of torch tensors"] = lambda: clnorm.layer_norm(*tensors)
        functions["clnorm.torch.layer_norm"] = lambda: operators.layer_norm(tensors[0], (64,), *tensors[1:])
    times = medians(list(functions.values()), calls)
    for name, microseconds in zip(functions, times):
        print(f"{name:40s} {microseconds:7.1f} µs  {microseconds - times[0]:+6.1f}")


def _has_torch():
    import importlib.util

    return importlib.util.find_spec("torch") is not None


if __name__ == "__main__":
    main()
