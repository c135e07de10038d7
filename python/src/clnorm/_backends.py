"""The backend of an array: `_arrays` describes backends."""

from __future__ import annotations

import functools

import numpy

from clnorm._arrays import Dlpack, Numpy, PyOpenCL


@functools.lru_cache(None)
def backend_of_type(kind: type):
    """The backend of a type of arrays, or None."""
    if issubclass(kind, numpy.ma.MaskedArray):
        return None  # its mask would be lost
    for base in kind.__mro__:
        if base is numpy.ndarray:
            return Numpy
        if (base.__module__, base.__name__) in (("torch", "Tensor"), ("torch._tensor", "Tensor")):
            from clnorm._torch_arrays import Torch  # which imports PyTorch

            return Torch
        if (base.__module__, base.__name__) == ("pyopencl.array", "Array"):
            return PyOpenCL
    return Dlpack if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__") else None
