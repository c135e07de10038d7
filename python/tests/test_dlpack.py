"""Arrays of other packages, by DLPack: dtypes that NumPy lacks, capsules of both kinds, memory of OpenCL, ownership."""

import ctypes
import gc

import ml_dtypes
import numpy
import pyopencl as cl
import pytest
import reference
import torch
from pyopencl import array as cl_array

import clnorm
from clnorm import _dlpack


class Foreign:
    """An array of another package with DLPack only."""

    def __init__(self, array, versions=True):
        self.array, self.versions = array, versions

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("max_version")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        return Foreign

    @staticmethod
    def from_dlpack(array):
        return Foreign(torch.from_dlpack(array))


class Plain(Foreign):
    """An array whose package has no from_dlpack."""

    __array_namespace__ = None


def exact(tensor):
    return tensor.detach().double().numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("versions", [True, False])
def test_in_and_out(dtype, versions):
    torch.manual_seed(1)
    x, weight = torch.randn(5, 48, dtype=dtype), torch.randn(48, dtype=dtype)
    y = clnorm.layer_norm(Foreign(x, versions), Foreign(weight, versions))
    assert isinstance(y, Foreign) and y.array.dtype == dtype
    if dtype == torch.bfloat16:
        y.array = y.array.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    reference.assert_close(numpy.asarray(y.array), reference.norm(exact(x), exact(weight)), 48)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bits(dtype):
    x = torch.randn(8, 64)
    q, scale = clnorm.quantize(Foreign(x), dtype, scaling="row")
    assert q.array.dtype == getattr(torch, dtype) and scale.array.dtype == torch.float32
    expected = clnorm.quantize(x, dtype, scaling="row")
    assert torch.equal(q.array.view(torch.uint8), expected.q.view(torch.uint8))
    back = clnorm.dequantize(q, scale)
    assert torch.equal(back.array, clnorm.dequantize(expected.q, expected.scale))


def test_views():
    x = torch.randn(6, 5, 32, dtype=torch.bfloat16)
    for view in (x[1:, 2:], x.transpose(0, 1), x[..., ::2], x[:0], x[0, 0].expand(3, 32)):
        y = clnorm.rms_norm(Foreign(view))
        assert torch.equal(y.array, clnorm.rms_norm(view)), view.stride()


def test_outputs_need_a_writable_export():
    x = torch.randn(4, 16, dtype=torch.bfloat16)
    out = Foreign(torch.empty_like(x))
    assert clnorm.gelu(Foreign(x), out=out) is out
    assert torch.equal(out.array, clnorm.gelu(x))
    array = numpy.zeros((4, 16), "f4")
    with pytest.raises(ValueError, match="out: expected an array that its __dlpack__ exports for writing"):
        clnorm.gelu(Foreign(array), out=Foreign(array, versions=False))
    array.flags.writeable = False
    assert clnorm.gelu(Foreign(array)).array.shape == (4, 16)
    with pytest.raises(ValueError, match="out: expected an array that its __dlpack__ exports for writing"):
        clnorm.gelu(Foreign(array), out=Foreign(array))


def test_an_output_of_another_package_is_refused():
    """A tensor as `out` would be written through its capsule, which autograd does not notice."""
    out = torch.zeros(4, 16)
    for other in (out, numpy.zeros((4, 16), "f4")):
        with pytest.raises(ValueError, match="out: expected an array with __dlpack__, as the input is, got <class"):
            clnorm.gelu(Foreign(torch.ones(4, 16)), out=other)
    assert not out.any()


def test_a_package_without_from_dlpack_gets_an_array_of_numpy():
    y = clnorm.gelu(Plain(torch.ones(2, 8, dtype=torch.bfloat16)))
    assert isinstance(y, numpy.ndarray) and y.dtype == ml_dtypes.bfloat16


def test_softmax_without_a_shape_takes_only_the_last_dimension():
    x = torch.randn(6, 24)
    y = clnorm.softmax(Foreign(x))
    assert torch.equal(y.array, clnorm.softmax(x))
    assert torch.equal(clnorm.softmax_backward(Foreign(x), y, -1).array, clnorm.softmax_backward(x, y.array))
    for dim in (0, 1, -2, "last"):
        with pytest.raises(ValueError, match="dim: expected -1, the last dimension, as Foreign has no shape"):
            clnorm.softmax(Foreign(x), dim)
        with pytest.raises(ValueError, match="dim: expected -1, the last dimension, as Foreign has no shape"):
            clnorm.softmax_backward(Foreign(x), y, dim)


def test_an_object_without_a_device_is_refused():
    class WithoutDevice:
        def __dlpack__(self):
            raise AssertionError("it was read")

    with pytest.raises(ValueError, match="x: expected a NumPy array, torch tensor, pyopencl array or one with __dlpack__"):
        clnorm.gelu(WithoutDevice())


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]


class Made:
    """An array with a capsule written by hand: in memory of OpenCL, which no package on PyPI exports, or with wrong fields."""

    def __init__(self, address, shape, device=(4, 0), dtype=(2, 32), lanes=1, offset=0, version=(1, 1), flags=0):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        tensor = Tensor(address, device, len(shape), *dtype, lanes, ctypes.addressof(self.shape), None, offset)
        self.managed = Versioned(version, None, None, flags, tensor)
        self.device, self.dropped = device, 0
        self.destructor = DESTRUCTOR(self.drop)

    def drop(self, capsule):
        self.dropped += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, max_version=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", self.destructor)


class MadeWithOwner(Made):
    def __array_namespace__(self):
        return MadeWithOwner

    @staticmethod
    def from_dlpack(array):
        tensor, writable = _dlpack._tensor_of(array.__dlpack__(max_version=(1, 1)))
        assert writable and array.__dlpack_device__() == (4, 0) == (tensor.device_type, tensor.device_id)
        return cl.Buffer.from_int_ptr(tensor.data), tensor.byte_offset, tensor.shape[: tensor.ndim], tensor.code


@pytest.fixture
def queue():
    devices = [d for p in cl.get_platforms() for d in p.get_devices() if p.name == clnorm.select().platform]
    return cl.CommandQueue(cl.Context(devices[:1]))


def test_memory_of_opencl(rng, queue):
    x = rng.standard_normal((8, 64)).astype("f4")
    on_device = cl_array.to_device(queue, x)
    queue.finish()
    made = Made(on_device.base_data.int_ptr, (6, 64), offset=2 * 64 * 4)
    y = clnorm.rms_norm(made)
    assert isinstance(y, cl_array.Array)
    reference.assert_close(y.get(), reference.norm(x[2:], layer=False), 64)
    assert clnorm.rms_norm(made, out=made) is made
    reference.assert_close(on_device.get()[2:], reference.norm(x[2:], layer=False), 64)
    numpy.testing.assert_array_equal(on_device.get()[:2], x[:2])
    with pytest.raises(ValueError, match="out: expected an array that its __dlpack__ exports for writing"):
        clnorm.gelu(made, out=Made(on_device.base_data.int_ptr, (6, 64), flags=1))
    with pytest.raises(ValueError, match="x: expected a device below 1 of its context, got 3"):
        clnorm.gelu(Made(on_device.base_data.int_ptr, (6, 64), device=(4, 3)))


def test_results_in_memory_of_opencl_go_back_to_their_owner(rng, queue):
    x = rng.standard_normal((8, 64)).astype(ml_dtypes.bfloat16)
    on_device = cl_array.to_device(queue, x)
    queue.finish()
    made = MadeWithOwner(on_device.base_data.int_ptr, (8, 64), dtype=(4, 16))
    memory, offset, shape, code = clnorm.gelu(made)
    y = numpy.empty((8, 64), ml_dtypes.bfloat16)
    cl.enqueue_copy(queue, y, memory, src_offset=offset)
    assert shape == [8, 64] and code == 4
    numpy.testing.assert_array_equal(y, clnorm.gelu(x))


def test_a_result_without_elements_is_exported_without_memory(queue):
    array = cl_array.empty(queue, (0, 64), "f4")
    tensor, _ = _dlpack._tensor_of(_dlpack._Exported(array, (4, 0)).__dlpack__(max_version=(1, 1)))
    assert tensor.data is None and tensor.shape[:2] == [0, 64]
    assert (tensor.device_type, tensor.code, tensor.bits) == (4, 2, 32)


def test_memory_is_released_after_a_call(rng):
    x = numpy.zeros((4, 16), "f4")
    made = Made(x.ctypes.data, (4, 16), device=(1, 0))
    clnorm.gelu(made)
    gc.collect()
    assert made.dropped == 1
    with pytest.raises(ValueError):
        clnorm.gelu(made, out=Foreign(x[:2]))
    gc.collect()
    assert made.dropped == 2


@pytest.mark.parametrize("message,made", [
    (r"x: expected memory of the CPU or of OpenCL .*, got device 2: move", {"device": (2, 0)}),
    (r"x: expected memory .* that can be shared: version 2.0 of DLPack", {"version": (2, 0)}),
    (r"x: expected a dtype of float32, .* got DLPack's type code 2 of 4 × 32 bits", {"lanes": 4}),
    (r"x: expected a dtype of float32, .* got DLPack's type code 14 of 1 × 8 bits", {"dtype": (14, 8)}),
])
def test_what_is_refused(message, made):
    x = numpy.zeros((4, 16), "f4")
    with pytest.raises(ValueError, match=message):
        clnorm.gelu(Made(x.ctypes.data, (4, 4), **{"device": (1, 0), **made}))


def test_a_tensor_that_its_package_does_not_export_is_refused():
    with pytest.raises(ValueError, match="x: expected memory .* that can be shared: .*grad"):
        clnorm.gelu(Foreign(torch.ones(2, 8, requires_grad=True)))
