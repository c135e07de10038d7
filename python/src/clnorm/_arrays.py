"""Arrays: how those of NumPy, PyTorch and pyopencl lie in memory, and how new ones like them are made.

A backend has
  layout(name, array)        a hashable (shape, strides, dtype) in the framework's own terms; an error for an array without
  tensor(layout)             the same as a Tensor, with strides in elements
  contiguous(array)          a copy whose elements lie one after the other; only where `copies` is True
  empty(like, shape, dtype)  a new array on the device and queue of `like`
  large(like, shape, dtype)  the same in kept memory, for an array of _kept_memory.LARGE bytes or more
  maker(make, shape, dtype)  the replacement of `make`, one of these two, in repeated calls: (function, arguments), or
                             (type, shape, dtype), from which _repeated_calls makes an array itself
  full(like, number)         one float32 there, of shape (1,)
  addresses_of(tensors)      a function from a list of such arrays to their addresses, as uintptr_t; a tensor is None
                             where it has gaps
  check_output(name, array)  an error for an array that cannot be written
  note_write(array)          tells the framework that the array was written
"""

from __future__ import annotations

import functools
import math
import struct
from typing import NamedTuple

import numpy

from clnorm import _kept_memory
from clnorm._native import ffi, lib

DTYPES = {
    "float32": lib.CLNORM_F32,
    "float16": lib.CLNORM_F16,
    "bfloat16": lib.CLNORM_BF16,
    "float64": lib.CLNORM_F64,
    "float8_e4m3fn": lib.CLNORM_F8_E4M3,
    "float8_e5m2": lib.CLNORM_F8_E5M2,
}
SIZES = {name: lib.clnorm_dtype_size(number) for name, number in DTYPES.items()} | {"int32": 4, "bool": 1}
DLPACK_DTYPES = {  # type code and bits
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16), "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8), "int32": (0, 32), "bool": (6, 8),
}
QUICK_TYPES: set[type] = {numpy.ndarray}  # the types that _repeated_calls can read
FLOATS_OF_8_BITS = ("float8_e4m3fn", "float8_e5m2")


class Tensor(NamedTuple):
    """shape; strides in elements; dtype: a key of SIZES; swapped: of the other byte order, so that it has to be copied."""

    shape: tuple
    strides: tuple
    dtype: str
    swapped: bool = False


def dense_strides(shape: tuple) -> tuple:
    """The strides, in elements, of an array whose elements lie one after the other."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(shape[i], 1)
    return tuple(strides)


def dense(shape: tuple, dtype: str) -> Tensor:
    return Tensor(tuple(shape), dense_strides(shape), dtype)


@functools.lru_cache(None)
def numpy_dtype(name: str):
    """NumPy's dtype of a name; bfloat16 and float8 need ml_dtypes."""
    if name in ("bfloat16", *FLOATS_OF_8_BITS):
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError(f"NumPy has no {name} of its own: pip install ml_dtypes") from None
        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


def dtype_name(argument: str, dtype) -> str:
    """The name of a dtype of NumPy or PyTorch, or of text."""
    text = str(dtype)
    if not isinstance(dtype, str) and text.startswith("torch."):
        text = text.removeprefix("torch.")
    elif not isinstance(dtype, str) and dtype is not None:
        try:
            text = numpy.dtype(dtype).name
        except TypeError:
            pass
    if text not in DTYPES:
        raise ValueError(f"{argument}: expected one of {', '.join(DTYPES)}, got {dtype!r}")
    return text


def optional_dtype(argument: str, dtype) -> str | None:
    """The same; None stands for the dtype that a result has by default."""
    return None if dtype is None else dtype_name(argument, dtype)


_NOT_OF_PYTHON = ("bfloat16", *FLOATS_OF_8_BITS)
_POINTERS = ffi.typeof("char *[]")


def _strided_addresses(arrays):
    return struct.pack(f"{len(arrays)}P", *[array.__array_interface__["data"][0] for array in arrays])


def _buffer_addresses(arrays):
    return ffi.new(_POINTERS, list(map(ffi.from_buffer, arrays)))


class Numpy:
    kind = "a NumPy array"
    on_queue, copies = False, True

    @staticmethod
    def layout(name, array):
        return array.shape, array.strides, array.dtype

    @staticmethod
    def tensor(layout):
        shape, strides, dtype = layout
        size = dtype.itemsize or 1  # numpy.void may have none
        if any(stride % size for stride in strides):
            strides = (-size,) * len(shape)  # no stride in elements describes it: negative ones have it copied
        return Tensor(shape, tuple(stride // size for stride in strides), dtype.name, not dtype.isnative)

    @staticmethod
    def contiguous(array):
        return numpy.ascontiguousarray(array, array.dtype.newbyteorder("="))

    @staticmethod
    def empty(like, shape, dtype):
        return numpy.empty(shape, numpy_dtype(dtype))

    @staticmethod
    def zeros(like, shape, dtype):
        return numpy.zeros(shape, numpy_dtype(dtype))

    @staticmethod
    def large(like, shape, dtype):
        return _kept_memory.take(math.prod(shape) * SIZES[dtype]).view(numpy_dtype(dtype)).reshape(shape)

    @staticmethod
    def maker(make, shape, dtype):
        return (numpy.empty, (shape, numpy_dtype(dtype))) if make is Numpy.empty else (make, (None, shape, dtype))

    @staticmethod
    def full(like, number):
        return numpy.full(1, number, "f4")

    @staticmethod
    def addresses_of(tensors):
        """Python's buffers are the fastest way to an address; arrays with gaps or of ml_dtypes have none."""
        have_none = any(tensor is None or tensor.dtype in _NOT_OF_PYTHON for tensor in tensors)
        return _strided_addresses if have_none else _buffer_addresses

    @staticmethod
    def check_output(name, array):
        if not array.flags.writeable or not array.dtype.isnative:
            raise ValueError(f"{name}: expected an array that can be written, in the byte order of this machine")

    @staticmethod
    def note_write(array):
        pass


class PyOpenCL:
    kind = "a pyopencl array"
    on_queue, copies = True, False
    layout, tensor, note_write = Numpy.layout, Numpy.tensor, Numpy.note_write

    @staticmethod
    def empty(like, shape, dtype):
        from pyopencl import array

        return array.empty(like.queue, shape, numpy_dtype(dtype), allocator=like.allocator)

    large = empty

    @staticmethod
    def zeros(like, shape, dtype):
        from pyopencl import array

        return array.zeros(like.queue, shape, numpy_dtype(dtype), allocator=like.allocator)

    @staticmethod
    def full(like, number):
        return PyOpenCL.empty(like, (1,), "float32").fill(numpy.float32(number))

    @staticmethod
    def check_output(name, array):
        pass


class Dlpack:
    """An array that _dlpack reads as one of NumPy or pyopencl."""

    kind = "an array with __dlpack__"
