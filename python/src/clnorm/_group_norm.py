"""Group norm, of channels first or last."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple, Optional

from clnorm._call import COLUMNS, MATRIX, PLAIN, Description, Operation, Output, call, fail
from clnorm._native import lib
from clnorm._norm import Norm
from clnorm._shapes import ACTIVATIONS, chosen, columns_shape, real, same_shape, statistics

Array = Any
Result = Any  # an array, or a Norm
_LAYOUTS = {False: lib.CLNORM_LAYOUT_FIRST, True: lib.CLNORM_LAYOUT_LAST}


class GroupNormGradients(NamedTuple):
    """Gradients of group_norm; dweight and dbias are None without a weight and a bias."""

    dx: Any
    dweight: Any = None
    dbias: Any = None


def _describe(tensors, options, outputs, fields) -> Description:
    num_groups, eps, activation, channels_last = options[:4]
    shape = tensors["x"].shape
    if len(shape) < 2 or 0 in shape[1:]:
        fail("x", "samples, channels and positions, of which there are channels and positions", f"shape {shape}")
    channels = shape[-1] if channels_last else shape[1]
    if not isinstance(num_groups, numbers.Integral) or num_groups < 1 or channels % num_groups:
        fail("num_groups", f"a divisor of the {channels} channels", num_groups)
    same_shape(tensors, "x", "dy", "residual")
    statistics(tensors, (shape[0], num_groups))
    columns_shape(tensors, (channels,), "weight", "bias")
    fields = fields | {
        "spatial": math.prod(shape[1:]) // channels, "groups": num_groups, "eps": eps,
        "activation": chosen("activation", activation, ACTIVATIONS), "layout": _LAYOUTS[bool(channels_last)],
    }
    kinds = {role: COLUMNS if role in ("weight", "bias") else PLAIN if role in ("mean", "rstd") else MATRIX
             for role in tensors}
    return Description(shape[0], channels, 1, kinds, tuple(outputs), fields)


def _describe_forward(tensors, options) -> Description:
    x, save_stats = tensors["x"], options[4]
    outputs = [Output("y", x.shape, x.dtype)]
    if "residual" in tensors:
        outputs.append(Output("residual_out", x.shape, tensors["residual"].dtype))
    if save_stats:
        outputs += [Output(name, (x.shape[0], options[0]), real(x.dtype), PLAIN) for name in ("mean", "rstd")]
    return _describe(tensors, options, outputs, {"save_mean": save_stats, "save_rstd": save_stats})


def _describe_backward(tensors, options) -> Description:
    x = tensors["x"]
    outputs = [Output("dx", x.shape, x.dtype)]
    outputs += [Output(f"d{role}", tensors[role].shape, tensors[role].dtype, COLUMNS)
                for role in ("weight", "bias") if role in tensors]
    return _describe(tensors, options, outputs, {"statistics_given": "mean" in tensors})


_INPUTS = ("x", "weight", "bias", "residual")
_BACKWARD_INPUTS = ("dy", "x", "weight", "bias", "mean", "rstd")
_FORWARD = Operation("clnorm_group_norm", "clnorm_group_norm_desc", _INPUTS, _INPUTS, _describe_forward)
_BACKWARD = Operation(
    "clnorm_group_norm_backward", "clnorm_group_norm_backward_desc", _BACKWARD_INPUTS, _BACKWARD_INPUTS, _describe_backward
)


def group_norm(x: Array, num_groups: int, weight: Optional[Array] = None, bias: Optional[Array] = None,
               eps: float = 1e-5, *, residual: Optional[Array] = None, activation: Optional[str] = None,
               channels_last: bool = False, save_stats: bool = False, out: Optional[Array] = None,
               backend=None) -> Result:
    """Group normalisation (Wu, He 2018): statistics over a group of neighbouring channels of each sample.

        s = x + residual, or x
        y = activation((s - mean) / sqrt(variance + eps) * weight + bias)

    x:              (samples, channels, *positions), or with channels_last (samples, *positions, channels), contiguous in
                    a sample. float32, float16, bfloat16 or float64.
    num_groups:     a divisor of the channels; as many as channels: instance norm.
    weight, bias:   (channels,). None: ones and zeros.
    residual:       x's shape: added before the norm. The result is then a `Norm`.
    activation:     None, "gelu", "gelu_tanh" or "silu".
    save_stats:     the result is a `Norm` with mean and rstd, (samples, num_groups).
    out:            where y goes; it may be x itself.

    Returns y as x is; or a `Norm`.
    """
    options = (num_groups, eps, activation, channels_last, save_stats)
    results = iter(call(_FORWARD, (x, weight, bias, residual), options, out, backend=backend))
    y = next(results)
    if residual is None and not save_stats:
        return y
    return Norm(y, None if residual is None else next(results), next(results, None), next(results, None))


def group_norm_backward(dy: Array, x: Array, num_groups: int, weight: Optional[Array] = None,
                        bias: Optional[Array] = None, eps: float = 1e-5, *, mean: Optional[Array] = None,
                        rstd: Optional[Array] = None, activation: Optional[str] = None, channels_last: bool = False,
                        out: Optional[Array] = None, backend=None) -> GroupNormGradients:
    """The gradients of group_norm.

    dy, x:       of one shape: the gradient of y, and the forward's x, or its residual_out where it had a residual.
    mean, rstd:  as the forward saved them, both or neither. All others as in group_norm; out is where dx goes.
    Returns a `GroupNormGradients`: dx, dweight, dbias.
    """
    if (mean is None) != (rstd is None):
        fail("mean", "mean and rstd, or neither")
    options = (num_groups, eps, activation, channels_last)
    results = iter(call(_BACKWARD, (dy, x, weight, bias, mean, rstd), options, out, backend=backend))
    return GroupNormGradients(
        next(results), None if weight is None else next(results), None if bias is None else next(results)
    )
