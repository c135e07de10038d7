"""Layer norm and RMS norm. An array is of NumPy, torch (CPU), pyopencl, or has __dlpack__."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from clnorm._norm import NormGradients, norm_backward, norm_forward
from clnorm._rope import Rope

Array = Any
Result = Any  # an array, or a Norm: an annotation of both would make type checkers refuse the use of either
Shape = Union[int, Sequence[int], None]
Seed = Union[int, Sequence[int], None]

_FORWARD = """{title}

    s = residual + row_scale * dropout(x), of which what is absent is left out; x * gate(z) with gate_first
    {formula}
    y = activation(x_hat * (weight_offset + weight) + bias), then * gate(z) without gate_first

x:                 (*rows, *columns). Statistics are over the columns, which are the dimensions of weight, or of
                   normalized_shape, or the last one. float32, float16, bfloat16, float64; float8 with x_scale.
weight, bias:      (*columns), of such a dtype but float8; float32 or float64 where x has float64. None: ones and zeros.
normalized_shape:  the sizes of the columns, as in PyTorch.
eps:               added to {what}, 0 or more.
group_size:        columns that share statistics, a divisor of all columns; 0: all of them.
residual:          x's shape: added before the norm. The result is then a `Norm`, whose residual_out is the sum.
row_scale:         (*rows): a factor of each row of x, float32 (stochastic depth).
z, gate:           x's shape: the gate. "silu" multiplies with z * sigmoid(z), "sigmoid" with sigmoid(z).
gate_first:        with a z: the gate is applied to x before the statistics.
activation:        None, "gelu", "gelu_tanh" or "silu", of each element of the result.
dropout, seed:     the probability p that an element of x is 0, others being divided by 1 - p; the seed, or (seed, offset)
                   of 64 bits each, of its mask. A seed without dropout has no use, and does no harm.
weight_offset:     1 for zero-centred weights.
weight_repeat:     weight and bias are of (weight_rows, *columns), and row r of x takes their row
                   (r // weight_repeat) % weight_rows: 1 for weights by head, a sample's rows for weights by sample.
rope:              a `Rope`, (cos, sin, position, style): the result is rotated by position, as queries and keys are.
dtype, scaling:    of y: "float8_e4m3fn" or "float8_e5m2" quantises it, with a scale for the "tensor", a "row" or a "group"
                   of scale_group columns (16, 32, 64 or 128), measured unless scale gives the tensor's. None: as x. The
                   result is a `Norm` where they are given, or y has 8 bits.
x_scale:           the scales of a float8 x: (1,), (*rows), or with x_scale_group (*rows, columns / x_scale_group).
save_stats:        the result is a `Norm` with the statistics that the backward can take.
y_transposed:      the result has a copy of an 8-bit y of (columns, rows), of all columns and all rows, besides.
batch_invariant:   a row's results have the same bits for any number of rows, which may take longer.
out:               where y goes, of x's shape; it may be x itself.

Returns y as x is; or a `Norm`. A view whose normalised dimensions are innermost and dense is read where it is, and `out`
written so: a part of a packed array, swapped leading dimensions (up to 3 strides), broadcast ones. Any other is copied.
Sums are in float32 (float64 for float64), and the same call gives the same bits.

    >>> import numpy, clnorm
    >>> y = clnorm.{name}(numpy.ones((4, 8), numpy.float32))
    >>> y.shape
    (4, 8)
"""

_BACKWARD = """The gradients of {name}, from dy, the gradient of y.

dy, x:             as the forward's y and x.
mean, rstd:        statistics that the forward saved ({saved}); None: they are computed again.
residual:          the forward's, where x is the forward's x; or x_is_sum=True, where x is the forward's residual_out.
dresidual_out:     x's shape: the gradient that has come to residual_out, which is added.
needs:             the gradients to compute, of "dx", "dweight", "dbias", "dz", "dresidual"; None: all that there are.
dx_dtype:          of dx, where that is not x's: 16 bits or more. None: x's, or dy's where x has 8 bits.
dweight, dbias:    arrays that these gradients are added to, both where both are computed, of any dtype that weight can
                   have: float32 sums for bfloat16 weights. The result has these arrays.
batch_invariant:   as in {name}, of all but dweight and dbias.
out:               where the first of the gradients goes; dx may go where dy or x is.
All others are as in {name}; the same seed makes the same mask.

Returns a `NormGradients`: dx, dweight and dbias in their tensors' dtype, dz, dresidual; None for what was not computed.
The same call gives the same bits.
"""


def layer_norm(x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *, normalized_shape: Shape = None,
               eps: float = 1e-5, group_size: int = 0, residual: Optional[Array] = None,
               row_scale: Optional[Array] = None, z: Optional[Array] = None, gate: str = "silu",
               gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0, seed: Seed = None,
               weight_offset: float = 0.0, weight_repeat: Optional[int] = None, rope: Optional[Rope] = None,
               x_scale: Optional[Array] = None, x_scale_group: int = 0, dtype: Any = None,
               scaling: Optional[str] = None, scale_group: int = 0, scale: float = 0.0, save_stats: bool = False,
               y_transposed: bool = False, batch_invariant: bool = False, out: Optional[Array] = None) -> Result:
    return norm_forward("layer_norm", x, weight, bias, normalized_shape, eps, group_size, residual, row_scale, z, gate,
                        gate_first, activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group,
                        dtype, scaling, scale_group, scale, save_stats, y_transposed, batch_invariant, out)


def rms_norm(x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *, normalized_shape: Shape = None,
             eps: float = 1e-5, group_size: int = 0, residual: Optional[Array] = None, row_scale: Optional[Array] = None,
             z: Optional[Array] = None, gate: str = "silu", gate_first: bool = False, activation: Optional[str] = None,
             dropout: float = 0.0, seed: Seed = None, weight_offset: float = 0.0,
             weight_repeat: Optional[int] = None, rope: Optional[Rope] = None, x_scale: Optional[Array] = None,
             x_scale_group: int = 0, dtype: Any = None, scaling: Optional[str] = None, scale_group: int = 0,
             scale: float = 0.0, save_stats: bool = False, y_transposed: bool = False, batch_invariant: bool = False,
             out: Optional[Array] = None) -> Result:
    return norm_forward("rms_norm", x, weight, bias, normalized_shape, eps, group_size, residual, row_scale, z, gate,
                        gate_first, activation, dropout, seed, weight_offset, weight_repeat, rope, x_scale, x_scale_group,
                        dtype, scaling, scale_group, scale, save_stats, y_transposed, batch_invariant, out)


def layer_norm_backward(dy: Array, x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *,
                        mean: Optional[Array] = None, rstd: Optional[Array] = None, normalized_shape: Shape = None,
                        eps: float = 1e-5, group_size: int = 0, residual: Optional[Array] = None,
                        dresidual_out: Optional[Array] = None, x_is_sum: bool = False,
                        row_scale: Optional[Array] = None, z: Optional[Array] = None, gate: str = "silu",
                        gate_first: bool = False, activation: Optional[str] = None, dropout: float = 0.0,
                        seed: Seed = None, weight_offset: float = 0.0, weight_repeat: Optional[int] = None,
                        rope: Optional[Rope] = None, x_scale: Optional[Array] = None, x_scale_group: int = 0,
                        dx_dtype: Any = None, needs: Optional[Sequence[str]] = None, dweight: Optional[Array] = None,
                        dbias: Optional[Array] = None, batch_invariant: bool = False,
                        out: Optional[Array] = None) -> NormGradients:
    return norm_backward("layer_norm", dy, x, weight, bias, mean, rstd, normalized_shape, eps, group_size, residual,
                         dresidual_out, x_is_sum, row_scale, z, gate, gate_first, activation, dropout, seed, weight_offset,
                         weight_repeat, rope, x_scale, x_scale_group, dx_dtype, needs, dweight, dbias, batch_invariant, out)


def rms_norm_backward(dy: Array, x: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *,
                      rstd: Optional[Array] = None, normalized_shape: Shape = None, eps: float = 1e-5,
                      group_size: int = 0, residual: Optional[Array] = None, dresidual_out: Optional[Array] = None,
                      x_is_sum: bool = False, row_scale: Optional[Array] = None, z: Optional[Array] = None,
                      gate: str = "silu", gate_first: bool = False, activation: Optional[str] = None,
                      dropout: float = 0.0, seed: Seed = None, weight_offset: float = 0.0,
                      weight_repeat: Optional[int] = None, rope: Optional[Rope] = None,
                      x_scale: Optional[Array] = None, x_scale_group: int = 0, dx_dtype: Any = None,
                      needs: Optional[Sequence[str]] = None, dweight: Optional[Array] = None,
                      dbias: Optional[Array] = None, batch_invariant: bool = False,
                      out: Optional[Array] = None) -> NormGradients:
    return norm_backward("rms_norm", dy, x, weight, bias, None, rstd, normalized_shape, eps, group_size, residual,
                         dresidual_out, x_is_sum, row_scale, z, gate, gate_first, activation, dropout, seed, weight_offset,
                         weight_repeat, rope, x_scale, x_scale_group, dx_dtype, needs, dweight, dbias, batch_invariant, out)


layer_norm.__doc__ = _FORWARD.format(
    name="layer_norm", title="Layer normalisation (Ba, Kiros, Hinton 2016), with what is fused into it.",
    formula="x_hat = (s - mean(s)) / sqrt(mean((s - mean(s))^2) + eps)", what="the variance",
)
rms_norm.__doc__ = _FORWARD.format(
    name="rms_norm", title="RMS normalisation (Zhang, Sennrich 2019), with what is fused into it.",
    formula="x_hat = s / sqrt(mean(s^2) + eps)", what="the mean square",
)
layer_norm_backward.__doc__ = _BACKWARD.format(name="layer_norm", saved="both or neither")
rms_norm_backward.__doc__ = _BACKWARD.format(name="rms_norm", saved="rstd alone").replace("mean, rstd:", "rstd:      ")
