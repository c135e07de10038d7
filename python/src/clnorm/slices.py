"""Layer norm and RMS norm of rows whose columns are distributed over processes. An array is as in clnorm.norms."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import numpy

from clnorm._arrays import Dlpack, PyOpenCL, optional_dtype
from clnorm._backends import backend_of_type
from clnorm._call import call, first
from clnorm._device import check
from clnorm._native import ffi, lib
from clnorm._norm import NormGradients
from clnorm._record import COLUMNS, MATRIX, PLAIN, Description, Operation, Output, fail
from clnorm._shapes import (
    chosen,
    columns_shape,
    groups_shape,
    integer,
    number,
    real,
    same_shape,
    split,
    wide_dtype,
    with_dx,
)

Array = Any
_NORMS = {"layer_norm": lib.CLNORM_LAYER_NORM, "rms_norm": lib.CLNORM_RMS_NORM}
_KINDS = {"weight": COLUMNS, "bias": COLUMNS, "moments": PLAIN, "sums": PLAIN}


def _describe(tensors, norm, group_size, outputs, **fields) -> Description:
    x = tensors["x"]
    lead = split("x", x.shape, 1)
    same_shape(tensors, "x", "dy")
    columns_shape(tensors, x.shape[-1:], "weight", "bias")
    for role, numbers in (("moments", 3), ("sums", 2)):
        shape = _numbers_shape(x, group_size, numbers)
        if role in tensors and (tensors[role].shape, tensors[role].dtype) != (shape, real(x.dtype)):
            fail(role, f"shape {shape} and dtype {real(x.dtype)}", f"{tensors[role].shape} and {tensors[role].dtype}")
    fields |= {"norm": chosen("norm", norm, _NORMS), "group_size": group_size}
    kinds = {role: _KINDS.get(role, MATRIX) for role in tensors}
    return Description(math.prod(x.shape[:lead]), x.shape[-1], lead, kinds, tuple(outputs), fields)


def _numbers_shape(x, group_size, numbers) -> tuple:
    split("x", x.shape, 1)
    return (*groups_shape(x.shape[:-1], x.shape[-1], group_size), numbers)


def _describe_statistics(tensors, options):
    x, (norm, group_size) = tensors["x"], options
    return _describe(tensors, norm, group_size, [Output("moments", _numbers_shape(x, group_size, 3), real(x.dtype), PLAIN)])


def _describe_apply(tensors, options):
    norm, group_size, eps, dtype = options
    outputs = [Output("y", tensors["x"].shape, wide_dtype("dtype", dtype, tensors))]
    return _describe(tensors, norm, group_size, outputs, eps=eps)


def _describe_backward_statistics(tensors, options):
    x, (norm, group_size, eps) = tensors["x"], options
    sums = Output("sums", _numbers_shape(x, group_size, 2), real(x.dtype), PLAIN)
    return _describe(tensors, norm, group_size, [sums], eps=eps)


def _describe_backward_apply(tensors, options):
    x, (norm, group_size, eps, dx_dtype, wanted) = tensors["x"], options
    dtype = tensors.get("weight", x).dtype
    outputs = [Output("dx", x.shape, wide_dtype("dx_dtype", dx_dtype, tensors))]
    outputs += [Output(name, x.shape[-1:], dtype, COLUMNS) for name in wanted if name != "dx"]
    return _describe(tensors, norm, group_size, outputs, eps=eps)


def _options(norm, group_size, eps) -> tuple:
    return norm, integer("group_size", group_size), number("eps", eps)


def _operation(name, describe, *inputs):
    return Operation(f"clnorm_{name}", f"clnorm_{name}_desc", inputs, inputs, describe)


_STATISTICS = _operation("norm_statistics", _describe_statistics, "x")
_APPLY = _operation("norm_apply", _describe_apply, "x", "moments", "weight", "bias")
_BACKWARD_STATISTICS = _operation(
    "norm_backward_statistics", _describe_backward_statistics, "dy", "x", "moments", "weight"
)
_BACKWARD_APPLY = _operation("norm_backward_apply", _describe_backward_apply, "dy", "x", "moments", "sums", "weight")


def norm_statistics(x: Array, *, norm: str = "layer_norm", group_size: int = 0) -> Array:
    """The moments of a slice of the columns: the first of four steps of a norm whose columns are distributed.

        moments = clnorm.norm_statistics(x)                          # of this process' columns
        for others in …: clnorm.moments_merge(moments, others)       # those of all other processes
        y = clnorm.norm_apply(x, moments, weight, bias)              # weight and bias of these columns
        sums = clnorm.norm_backward_statistics(dy, x, moments, weight)
        sums = …                                                     # added up over the processes
        gradients = clnorm.norm_backward_apply(dy, x, moments, sums, weight)

    x:           (*rows, columns): the slice. float32, float16, bfloat16 or float64.
    norm:        "layer_norm" or "rms_norm".
    group_size:  columns that a segment has in the slice, a divisor of its columns; 0: one segment a row.

    Returns (*rows, 3): mean, sum of (x - mean)^2, count; with more segments than one (segments, *rows, 3). float32, or
    float64 where x has it. Of "rms_norm" the mean is 0.
    """
    return call(_STATISTICS, (x,), (norm, integer("group_size", group_size)))[0]


def norm_apply(x: Array, moments: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *,
               norm: str = "layer_norm", eps: float = 1e-5, group_size: int = 0, dtype: Any = None,
               out: Optional[Array] = None) -> Array:
    """The norm of a slice by the merged moments of all slices: y = (x - mean) * rstd * weight + bias.

    moments:       the merged results of `norm_statistics`.
    weight, bias:  (columns,), of the slice. None: ones and zeros.
    dtype:         of y, of 16 bits or more; float64 where x has it, and only there. None: x's.
    out:           the array that y is written to; it may be x itself.
    All others are as in `norm_statistics` and `layer_norm`.

    Returns y as x is.
    """
    options = (*_options(norm, group_size, eps), optional_dtype("dtype", dtype))
    return call(_APPLY, (x, moments, weight, bias), options, first(out))[0]


def norm_backward_statistics(dy: Array, x: Array, moments: Array, weight: Optional[Array] = None, *,
                             norm: str = "layer_norm", eps: float = 1e-5, group_size: int = 0) -> Array:
    """The sums over a slice's columns, which have to be added up over the slices for the gradients of any of them.

    dy, x:  of one shape: the gradient of y, and x. All others are as in `norm_apply`.
    Returns (*rows, 2), with more segments than one (segments, *rows, 2): the sums of x_hat * weight * dy and weight * dy.
    """
    return call(_BACKWARD_STATISTICS, (dy, x, moments, weight), _options(norm, group_size, eps))[0]


def norm_backward_apply(dy: Array, x: Array, moments: Array, sums: Array, weight: Optional[Array] = None, *,
                        norm: str = "layer_norm", eps: float = 1e-5, group_size: int = 0, dx_dtype: Any = None,
                        needs: Optional[Sequence[str]] = None, out: Optional[Array] = None) -> NormGradients:
    """The gradients of a slice by the added sums of all slices.

    sums:      the results of `norm_backward_statistics`, added up over the slices.
    dx_dtype:  of dx, as dtype in `norm_apply`. None: x's.
    needs:     the gradients to compute, "dx" and names of "dweight", "dbias"; None: all of them.
    out:       the array that dx is written to; it may be dy or x. All others are as in `norm_apply`.
    Returns a `NormGradients`: dx, dweight and dbias. The last two are of the slice's columns, over the rows of this call.
    """
    wanted = with_dx(needs, "dweight", "dbias")
    options = (*_options(norm, group_size, eps), optional_dtype("dx_dtype", dx_dtype), wanted)
    results = call(_BACKWARD_APPLY, (dy, x, moments, sums, weight), options, first(out))
    return NormGradients(**dict(zip(wanted, results)))


def _moments(name, array, written=False):
    """Moments as a NumPy array in their memory. Another kind of array would be copied, and the merge lost."""
    backend = backend_of_type(type(array))
    if backend in (None, Dlpack, PyOpenCL):
        fail(name, "a NumPy array or torch tensor", type(array))
    tensor = backend.tensor(backend.layout(name, array))
    if tensor.dtype not in ("float32", "float64") or tensor.shape[-1:] != (3,):
        fail(name, "float32 or float64 of shape (…, 3)", f"{tensor.dtype} of {tensor.shape}")
    if written:
        backend.check_output(name, array)
    moments = numpy.asarray(array)
    if tensor.swapped or not (moments.flags.c_contiguous and moments.flags.aligned):
        fail(name, "a contiguous array in the byte order of this machine", f"strides {tensor.strides}")
    return moments


def moments_merge(into: Array, others: Array) -> None:
    """Adds the moments of another slice to those of one, on the host: NumPy arrays or torch tensors, (…, 3), contiguous
    and apart in memory."""
    arrays = [_moments("into", into, written=True), _moments("others", others)]
    if arrays[0].shape != arrays[1].shape or arrays[0].dtype != arrays[1].dtype:
        fail("others", f"shape {arrays[0].shape} and dtype {arrays[0].dtype}", f"{arrays[1].shape} and {arrays[1].dtype}")
    if numpy.may_share_memory(*arrays):  # contiguous arrays overlap where their bounds do
        fail("others", "memory that does not overlap into")
    dtype = lib.CLNORM_F64 if arrays[0].dtype.itemsize == 8 else lib.CLNORM_F32
    pointers = [ffi.cast("void *", array.ctypes.data) for array in arrays]
    check(lib.clnorm_moments_merge(dtype, *pointers, arrays[0].size // 3))
    kind: type = type(into)
    backend_of_type(kind).note_write(into)
