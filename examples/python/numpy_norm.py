"""RMS norm of NumPy rows, forward and backward, on the device of CLNORM_DEVICE, or a CPU."""

import numpy

import clnorm

x = numpy.random.default_rng(0).standard_normal((4096, 1024), numpy.float32)
weight = numpy.ones(1024, numpy.float32)
y = clnorm.rms_norm(x, weight)
gradients = clnorm.rms_norm_backward(y, x, weight)
expected = x / numpy.sqrt(numpy.square(x).mean(-1, keepdims=True) + 1e-5)
print(clnorm.select(), "largest error:", numpy.abs(y - expected).max(), "dweight:", gradients.dweight[:3])
assert numpy.abs(y - expected).max() < 1e-5
