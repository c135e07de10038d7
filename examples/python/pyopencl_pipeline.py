"""A transformer's norm, gate and quantisation on one queue: arrays stay on the device, and only the end waits.

    python pyopencl_pipeline.py [SELECTOR]      such as "gpu;cpu"; by default the device of CLNORM_DEVICE, or a CPU
"""

import sys

import numpy
import pyopencl
import pyopencl.array

import clnorm

device = pyopencl.Device.from_int_ptr(clnorm.select(*sys.argv[1:2]).int_ptr)
queue = pyopencl.CommandQueue(pyopencl.Context([device]))
rng = numpy.random.default_rng(0)
x, residual, gate = (pyopencl.array.to_device(queue, rng.standard_normal((512, 768), numpy.float32)) for _ in range(3))

summed = clnorm.rms_norm(x, residual=residual, z=gate)  # y = silu(gate) · norm(x + residual), and residual_out, the sum
activated = clnorm.gelu(summed.y)
codes = clnorm.quantize(activated, scaling="row")
back = clnorm.dequantize(*codes)

error = numpy.abs(back.get() - activated.get()).max() / numpy.abs(activated.get()).max()
print(f"{device.name}: {codes.q.nbytes} bytes instead of {x.nbytes}, largest error {error:.3f} of the largest value")
assert error < 2**-4
