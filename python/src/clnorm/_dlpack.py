"""DLPack: arrays of any package with `__dlpack__` are read as arrays of NumPy or pyopencl, and results are given back.

The protocol: https://dmlc.github.io/dlpack/latest/python_spec.html. A capsule keeps its memory alive, so the array that is
made from it holds it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

import numpy

from clnorm._arrays import DLPACK_DTYPES, DTYPES, dense_strides, numpy_dtype

CPU, OPENCL = 1, 4
_VERSION = (1, 1)  # the first with dtypes of 8 bits
_READ_ONLY = 1
_NAMES = {code: name for name, code in DLPACK_DTYPES.items()}


class _Tensor(ctypes.Structure):
    """DLTensor. strides, in elements, may be NULL: dense."""

    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned. The older DLManagedTensor begins with its `tensor`."""

    _fields_ = [
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _tensor_of(capsule):
    """The tensor of a capsule that is not consumed yet, and whether it may be written: capsules without a version do not
    say, and count as read-only."""
    if not _is_capsule(capsule, b"dltensor_versioned"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), False
    managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    if managed.major != _VERSION[0]:
        raise BufferError(f"version {managed.major}.{managed.minor} of DLPack")
    return managed.tensor, not managed.flags & _READ_ONLY


class _Memory:
    """Memory at an address, from which NumPy makes an array."""

    def __init__(self, owner, address, shape, strides, size, writable):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "shape": shape, "strides": tuple(stride * size for stride in strides), "typestr": f"|V{size}",
            "data": (address, not writable),
        }


def read(name: str, array, written: bool = False):
    """The array as one of NumPy or pyopencl, in its memory. written: it is an output."""
    expected = f"{name}: expected memory of the CPU or of OpenCL (DLPack's devices {CPU} and {OPENCL})"
    device = tuple(map(int, array.__dlpack_device__()))
    if device[0] not in (CPU, OPENCL):
        raise ValueError(f"{expected}, got device {device[0]}: move it to the CPU first")
    try:
        try:
            capsule = array.__dlpack__(max_version=_VERSION)
        except TypeError:  # a package from before versions
            capsule = array.__dlpack__()
        tensor, writable = _tensor_of(capsule)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{expected} that can be shared: {error}") from error
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else dense_strides(shape)
    dtype = _NAMES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise ValueError(f"{name}: expected a dtype of {', '.join(DTYPES)}, got DLPack's type code {tensor.code} of "
                         f"{tensor.lanes} × {tensor.bits} bits")
    if written and not writable:
        raise ValueError(f"{name}: expected an array that its __dlpack__ exports for writing, as a versioned capsule that "
                         "is not read-only")
    if tensor.device_type == OPENCL:
        return _read_opencl(name, capsule, tensor, shape, strides, dtype)
    if 0 in shape:
        return numpy.empty(shape, numpy_dtype(dtype))
    size = tensor.bits // 8
    memory = _Memory(capsule, tensor.data + tensor.byte_offset, shape, strides, size, writable)
    return numpy.asarray(memory).view(numpy_dtype(dtype))


@functools.lru_cache(None)
def _queue(context, device):
    import pyopencl

    return pyopencl.CommandQueue(context, device)


def _read_opencl(name, capsule, tensor, shape, strides, dtype):
    """A pyopencl array in a cl_mem. The tensor's device_id is an index into the devices of the memory's context."""
    import pyopencl
    from pyopencl.array import Array

    memory = pyopencl.Buffer.from_int_ptr(tensor.data)
    devices = memory.context.devices
    if not 0 <= tensor.device_id < len(devices):
        raise ValueError(f"{name}: expected a device below {len(devices)} of its context, got {tensor.device_id}")
    size = tensor.bits // 8
    array = Array(
        _queue(memory.context, devices[tensor.device_id]), shape, numpy_dtype(dtype), data=memory,
        offset=tensor.byte_offset, strides=tuple(stride * size for stride in strides),
    )
    array.capsule = capsule  # keeps the memory alive as long as the array
    return array


class _Exported:
    """A result as an array of NumPy or pyopencl, for the from_dlpack of another package."""

    def __init__(self, array, device):
        self._array, self._device = array, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if (dl_device is not None and tuple(dl_device) != self._device) or copy:
            raise BufferError("a result of clnorm is exported on its device and without a copy")
        return _capsule(self._array, self._device, max_version)


def _capsule(array, device, max_version):
    """NumPy makes the capsule, of integers at the address. The dtype and device, which NumPy cannot express, are written
    into it."""
    name, size = array.dtype.name, array.dtype.itemsize
    if device[0] == CPU:
        address, offset = array.ctypes.data, 0
    else:  # an array without elements has no cl_mem
        address, offset = (array.base_data.int_ptr if array.size else 0), array.offset
    strides = [stride // size for stride in array.strides]
    memory = _Memory(array, address, array.shape, strides, size, True)
    memory.__array_interface__["typestr"] = f"|u{size}" if size == 1 else f"<u{size}"
    has_versions = numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"
    options = {"max_version": max_version} if has_versions and max_version is not None else {}
    capsule = numpy.asarray(memory).__dlpack__(**options)
    tensor, _ = _tensor_of(capsule)
    tensor.data = address  # NumPy has put memory of its own in the place of NULL
    tensor.code, tensor.bits = DLPACK_DTYPES[name]
    tensor.device_type, tensor.device_id = device
    tensor.byte_offset = offset
    return capsule


def finish(arrays) -> None:
    """Waits for results on a queue, as a capsule has no events."""
    for array in arrays:
        if not isinstance(array, numpy.ndarray):
            array.finish()


def give(like, array):
    """Converts a result by the from_dlpack of an input's namespace or package. Without one the result stays an array of
    NumPy or pyopencl."""
    namespace = getattr(like, "__array_namespace__", None)
    owner = namespace() if namespace else sys.modules.get(type(like).__module__.split(".")[0])
    convert = getattr(owner, "from_dlpack", None)
    return convert(_Exported(array, tuple(map(int, like.__dlpack_device__())))) if convert else array
