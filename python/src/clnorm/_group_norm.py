"""Group norm, with channels first or last."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Sequence

from clnorm._arrays import optional_dtype
from clnorm._call import call, first, first_and_sums
from clnorm._native import lib
from clnorm._norm import Norm
from clnorm._record import COLUMNS, MATRIX, PLAIN, Description, Operation, Output, fail
from clnorm._shapes import (
    ACTIVATIONS,
    chosen,
    columns_shape,
    flag,
    input_scale,
    integer,
    number,
    output_scale,
    real,
    result_dtype,
    same_shape,
    statistics,
    wide_dtype,
    with_dx,
)

Array = Any
Result = Any  # an array, or a Norm
_KINDS = {"weight": COLUMNS, "bias": COLUMNS, "mean": PLAIN, "rstd": PLAIN, "x_scale": PLAIN}
_LAYOUTS = {False: lib.CLNORM_LAYOUT_FIRST, True: lib.CLNORM_LAYOUT_LAST}


class GroupNormGradients(NamedTuple):
    """Gradients of group_norm; those that were not computed are None."""

    dx: Any
    dweight: Any = None
    dbias: Any = None
    dresidual: Any = None


def _options(num_groups, eps, activation, channels_last) -> tuple:
    return integer("num_groups", num_groups, 1), number("eps", eps), activation, flag("channels_last", channels_last)


def _describe(tensors, options, outputs, fields, constants=()) -> Description:
    num_groups, eps, activation, channels_last = options[:4]
    shape = tensors["x"].shape
    if len(shape) < 2 or 0 in shape[1:]:
        order = "(samples, *positions, channels)" if channels_last else "(samples, channels, *positions)"
        fail("x", f"shape {order} with one channel and one position at least", shape)
    channels = shape[-1] if channels_last else shape[1]
    if num_groups < 1 or channels % num_groups:
        fail("num_groups", f"a divisor of the {channels} channels", num_groups)
    same_shape(tensors, "x", "dy", "residual", "dresidual_out")
    statistics(tensors, (shape[0], num_groups))
    columns_shape(tensors, (channels,), "weight", "bias")
    fields = fields | {
        "spatial": math.prod(shape[1:]) // channels, "groups": num_groups, "eps": eps,
        "activation": chosen("activation", activation, ACTIVATIONS), "layout": _LAYOUTS[channels_last],
    }
    fields |= input_scale("x", tensors, "x_scale", 1, 0)
    kinds = {role: _KINDS.get(role, MATRIX) for role in tensors}
    return Description(shape[0], channels, 1, kinds, tuple(outputs), fields, constants=constants)


def _describe_forward(tensors, options) -> Description:
    x, (save_stats, dtype, scaling, scale, scale_dtype) = tensors["x"], options[4:]
    if scaling not in (None, "tensor", "row"):
        fail("scaling", "one of 'tensor', 'row'", repr(scaling))
    dtype = result_dtype("dtype", dtype or x.dtype, x.dtype)
    fields, scales, constants = output_scale("y", x.shape, 1, dtype, scaling, 0, scale, scale_dtype)
    outputs = [Output("y", x.shape, dtype)]
    if "residual" in tensors:
        outputs.append(Output("residual_out", x.shape, tensors["residual"].dtype))
    if save_stats:
        outputs += [Output(name, (*x.shape[:1], options[0]), real(x.dtype), PLAIN) for name in ("mean", "rstd")]
    outputs += scales
    return _describe(tensors, options, outputs, fields | {"save_mean": save_stats, "save_rstd": save_stats}, constants)


def _describe_backward(tensors, options) -> Description:
    x = tensors["x"]
    accumulate, wanted, dx_dtype = options[4:]
    outputs = [Output("dx", x.shape, wide_dtype("dx_dtype", dx_dtype, tensors))]
    outputs += [Output(f"d{role}", tensors[role].shape, tensors[role].dtype, COLUMNS, accumulate)
                for role in ("weight", "bias") if f"d{role}" in wanted]
    if "dresidual" in wanted:
        outputs.append(Output("dresidual", x.shape, wide_dtype("x", None, tensors)))
    return _describe(tensors, options, outputs, {"statistics_given": "mean" in tensors, "accumulate": accumulate})


_INPUTS = ("x", "weight", "bias", "residual", "x_scale")
_BACKWARD_INPUTS = ("dy", "x", "weight", "bias", "mean", "rstd", "dresidual_out", "x_scale")
_FORWARD = Operation("clnorm_group_norm", "clnorm_group_norm_desc", _INPUTS, _INPUTS, _describe_forward, ("x",))
_BACKWARD = Operation(
    "clnorm_group_norm_backward", "clnorm_group_norm_backward_desc", _BACKWARD_INPUTS, _BACKWARD_INPUTS, _describe_backward,
    ("x",),
)


def group_norm(x: Array, num_groups: int, weight: Optional[Array] = None, bias: Optional[Array] = None,
               eps: float = 1e-5, *, residual: Optional[Array] = None, activation: Optional[str] = None,
               channels_last: bool = False, x_scale: Optional[Array] = None, dtype: Any = None,
               scaling: Optional[str] = None, scale: float = 0.0, scale_dtype: Any = None, save_stats: bool = False,
               out: Optional[Array] = None) -> Result:
    """Group normalisation (Wu, He 2018): statistics over a group of neighbouring channels of each sample.

        s = x + residual, or x
        y = activation((s - mean) / sqrt(variance + eps) * weight + bias)

    x:              (samples, channels, *positions), or with channels_last (samples, *positions, channels), contiguous in
                    a sample. float32, float16, bfloat16 or float64; float8 with x_scale.
    num_groups:     a divisor of the channels; as many as channels: instance norm.
    weight, bias:   (channels,). None: ones and zeros.
    residual:       x's shape: added before the norm. The result is then a `Norm`.
    activation:     None, "gelu", "gelu_tanh" or "silu".
    x_scale:        the scales of a float8 x: (1,) or (samples,).
    dtype, scaling: of y: "float8_e4m3fn" or "float8_e5m2" quantises it, with a scale for the "tensor" or each sample
                    ("row"), measured unless scale gives the tensor's. None: x's. The result is a `Norm` where either is
                    given, or y has 8 bits.
    scale_dtype:    of measured scales: float32, the default, or bfloat16.
    save_stats:     the result is a `Norm` with mean and rstd, (samples, num_groups).
    out:            the array that y is written to; it may be x itself.

    Returns y as x is; or a `Norm`.
    """
    options = (*_options(num_groups, eps, activation, channels_last), flag("save_stats", save_stats),
               optional_dtype("dtype", dtype), scaling, number("scale", scale), optional_dtype("scale_dtype", scale_dtype))
    results = call(_FORWARD, (x, weight, bias, residual, x_scale), options, first(out))
    if len(results) == 1 and scaling is None and dtype is None:
        return results[0]
    y, *rest = results
    residual_out = None if residual is None else rest.pop(0)
    mean, rstd = (rest.pop(0), rest.pop(0)) if save_stats else (None, None)
    return Norm(y, residual_out, mean, rstd, *rest)


def group_norm_backward(dy: Array, x: Array, num_groups: int, weight: Optional[Array] = None,
                        bias: Optional[Array] = None, eps: float = 1e-5, *, mean: Optional[Array] = None,
                        rstd: Optional[Array] = None, dresidual_out: Optional[Array] = None,
                        activation: Optional[str] = None, channels_last: bool = False, x_scale: Optional[Array] = None,
                        dx_dtype: Any = None, needs: Optional[Sequence[str]] = None, dweight: Optional[Array] = None,
                        dbias: Optional[Array] = None, out: Optional[Array] = None) -> GroupNormGradients:
    """The gradients of group_norm.

    dy, x:          of one shape: the gradient of y, and the forward's x, or its residual_out where it had a residual.
    mean, rstd:     as the forward saved them, both or neither.
    dresidual_out:  the gradient of residual_out, which is added to dx.
    dx_dtype:       the dtype of dx, of 16 bits or more. None: x's, or dy's where x has 8 bits.
    needs:          the gradients to compute, "dx" and names of "dweight", "dbias", "dresidual"; None: all possible ones but
                    dresidual.
    dweight, dbias: arrays that these gradients are added to, both where both are computed, of any dtype that weight can
                    have. The result has these arrays.
    All others are as in group_norm; dx is written to out.

    Returns a `GroupNormGradients`: dx, dweight, dbias, dresidual. dx is the residual's gradient too. dresidual is the same
    in the dtype that dx has without a dx_dtype, which is the residual's where x is its residual_out.
    """
    if (mean is None) != (rstd is None):
        fail("rstd" if rstd is None else "mean", "mean and rstd, or neither")
    possible = [f"d{name}" for name, array in (("weight", weight), ("bias", bias)) if array is not None]
    if needs is not None:  # in general dx serves the residual too
        possible.append("dresidual")
    wanted = with_dx(needs, *possible)
    sums = {name: array for name, array in (("dweight", dweight), ("dbias", dbias)) if array is not None}
    options = (*_options(num_groups, eps, activation, channels_last), bool(sums), wanted,
               optional_dtype("dx_dtype", dx_dtype))
    results = call(_BACKWARD, (dy, x, weight, bias, mean, rstd, dresidual_out, x_scale), options,
                   first_and_sums(out, wanted, sums))
    return GroupNormGradients(**dict(zip(wanted, results)))
