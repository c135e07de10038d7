"""A transformer's norm, gate and quantisation on one queue: arrays stay on the device, and nothing waits before the end."""

import numpy
import pyopencl
import pyopencl.array

import clnorm

wanted = clnorm.select().platform
device = next(d for p in pyopencl.get_platforms() for d in p.get_devices() if p.name == wanted)
queue = pyopencl.CommandQueue(pyopencl.Context([device]))
rng = numpy.random.default_rng(0)
x, residual, gate = (pyopencl.array.to_device(queue, rng.standard_normal((512, 768), numpy.float32)) for _ in range(3))

summed = clnorm.rms_norm(x, residual=residual, z=gate)  # act(gate) · norm(x + residual), and the sum
activated = clnorm.gelu(summed.y)
codes = clnorm.quantize(activated, scaling="row")
back = clnorm.dequantize(*codes)

error = numpy.abs(back.get() - activated.get()).max() / numpy.abs(activated.get()).max()
print(f"{device.name}: {codes.q.nbytes} bytes instead of {x.nbytes}, largest error {error:.3f} of the largest value")
assert error < 2**-4
