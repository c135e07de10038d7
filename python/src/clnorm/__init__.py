"""Normalisation on any OpenCL device, forward and backward: layer norm, RMS norm, group norm, L2 norm; with softmax, GELU
and FP8 quantisation.

    >>> import numpy, clnorm
    >>> x = numpy.random.default_rng(0).standard_normal((8, 512), numpy.float32)
    >>> y = clnorm.rms_norm(x, activation="silu")            # NumPy in, NumPy out
    >>> out = clnorm.rms_norm(x, residual=y)                 # out.y and out.residual_out
    >>> gradients = clnorm.rms_norm_backward(out.y, x)       # gradients.dx

A function returns arrays of the kind that it is given:

NumPy             a CPU device works in the array's memory; a GPU gets a copy. bfloat16 and float8 are those of ml_dtypes
torch             CPU tensors, likewise, without gradients: clnorm.torch has operators and modules with gradients
pyopencl arrays   on their queue, without a copy and without waiting
__dlpack__        arrays of any package in memory of the CPU, or of OpenCL where pyopencl is installed (the array's data is
                  a cl_mem), bfloat16 and float8 included. Results go through the from_dlpack of the first array's
                  namespace or package; without one they are arrays of NumPy or pyopencl. out has to be such an array too,
                  exported for writing. OpenCL memory has to be ready, and a call returns when its results are

The memory of results of 32 MiB and more is kept when they are freed, and reused: the first access to new memory takes
longer than a norm. At most 256 MiB are kept for NumPy and torch; CLNORM_KEPT_MIB sets another limit. Such a result, and
most torch results, cannot be resized in place.

Several threads may call at once: Python's lock is released while the device works. A process that is forked after the first
call cannot call again. select() chooses the device; until then it is that of CLNORM_DEVICE.
"""

from clnorm._device import ClnormError, Device, devices, select
from clnorm._group_norm import GroupNormGradients, group_norm, group_norm_backward
from clnorm._native import ffi as _ffi
from clnorm._native import lib as _lib
from clnorm._norm import Norm, NormGradients
from clnorm._rope import Rope
from clnorm.elementwise import (
    L2Norm,
    L2NormGradients,
    Quantized,
    QuantizedTransposed,
    dequantize,
    gelu,
    gelu_backward,
    l2_norm,
    l2_norm_backward,
    quantize,
    softmax,
    softmax_backward,
)
from clnorm.norms import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from clnorm.slices import moments_merge, norm_apply, norm_backward_apply, norm_backward_statistics, norm_statistics

__version__ = _ffi.string(_lib.clnorm_version()).decode()
__all__ = [
    "ClnormError", "Device", "GroupNormGradients", "L2Norm", "L2NormGradients", "Norm", "NormGradients", "Quantized",
    "QuantizedTransposed", "Rope", "dequantize", "devices", "gelu", "gelu_backward", "group_norm", "group_norm_backward",
    "l2_norm", "l2_norm_backward", "layer_norm", "layer_norm_backward", "moments_merge", "norm_apply",
    "norm_backward_apply", "norm_backward_statistics", "norm_statistics", "quantize", "rms_norm", "rms_norm_backward",
    "select", "softmax", "softmax_backward",
]
