"""Normalisation on any OpenCL device, forward and backward: layer norm, RMS norm, group norm, L2 norm; with softmax, GELU
and FP8 quantisation.

    >>> import numpy, clnorm
    >>> x = numpy.random.default_rng(0).standard_normal((8, 512), numpy.float32)
    >>> y = clnorm.rms_norm(x, activation="silu")            # NumPy in, NumPy out
    >>> out = clnorm.rms_norm(x, residual=y)                 # out.y and out.residual_out
    >>> gradients = clnorm.rms_norm_backward(out.y, x)       # gradients.dx

Functions take and return what they are given:

NumPy             worked on where it lies on a CPU device, copied to a GPU and back; bfloat16 and float8 are ml_dtypes'
torch             CPU tensors likewise, without gradients; clnorm.torch has operators and modules with them
pyopencl arrays   on their queue, without a copy and without waiting
__dlpack__        of any package, in memory of the CPU, worked on as NumPy arrays, or of OpenCL (its data is a cl_mem), as
                  pyopencl arrays, which that needs; bfloat16 and float8 too. Results go through the from_dlpack of the
                  first array's namespace or package; one that has none gets an array of NumPy or pyopencl. out has to be
                  exported for writing. OpenCL memory has to be ready: a call waits for itself alone

Memory of results of 32 MiB and up is used again when they are gone, as malloc does with smaller ones: new memory takes
longer to touch than to compute on. Of NumPy and torch, 256 MiB of it are kept, or CLNORM_KEPT_MIB. Such an array, and
any result that is a torch tensor, cannot be resized in place.

Calls may come from several threads: Python's lock is free while the device works. A process that was forked after a first
call cannot make another. The device is CLNORM_DEVICE's, or what select() chose.
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
